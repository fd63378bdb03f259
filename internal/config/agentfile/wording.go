package agentfile

import (
	"strings"

	"github.com/belay-run/belay"
)

// Word takes the template of the agent's domain; render fills it with values.
func (a *Agent) Word(template string, render func(values map[string]string) (string, error), variables []string) {
	known := map[string]string{"task": belay.TaskPlace, "agent": a.Name, "description": a.Description, "priority": a.Priority}
	values := map[string]string{}
	for _, v := range variables {
		if known[v] != "" {
			values[v] = known[v]
		}
	}
	text, err := render(values)
	if err == nil && !strings.Contains(text, belay.TaskPlace) {
		a.find(Warning, CodeTemplate, "", "give it a variable task, of the type text, and use it", "the template %s of its domain has no place for the task: the agent is told the task alone", template)
		return
	}
	if err != nil {
		a.find(Warning, CodeTemplate, "", "its variables can be task, agent, description and priority; others need a default", "the template %s of its domain can't be filled (%v): the agent is told the task alone", template, err)
		return
	}
	a.Wording = &belay.Wording{Template: template, Text: text}
}

// Worded is a person's task in the words of the domain of the agent that begins it.
func (c *Catalog) Worded(agent, task string) string {
	if agent == "" {
		return task
	}
	a, err := c.Find(agent)
	if err != nil { // who makes the rules of the turn meets it
		return task
	}
	return a.Wording.Of(task)
}

// AmbiguousWording says that two templates are for the agent's domain.
func (a *Agent) AmbiguousWording(one, other string) {
	a.find(Warning, CodeTemplate, "", "give one of them another kind", "the templates %s and %s are both for tasks of its domain: the agent is told the task alone", one, other)
}
