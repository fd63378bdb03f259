package thread

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Agent is what a sub-agent is besides its parent's rules.
type Agent struct {
	Name         string
	Instructions string
	ReadOnly     bool // it has only tools that change nothing
}

// Agents are the built-in ones.
var Agents = []Agent{
	{Name: "general", Instructions: "You do a part of a larger task for another agent. It reads only what you put into complete_task: say there what you found or did, with file names and line numbers."},
	{Name: "explore", ReadOnly: true, Instructions: "You look for something for another agent, and change nothing. It reads only what you put into complete_task: say there what you found, with file names and line numbers, and what you did not find."},
	{Name: "plan", ReadOnly: true, Instructions: "You make a plan for another agent, and change nothing. Read what the plan depends on. It reads only what you put into complete_task: the steps in order, with the files that each of them changes, and how to check the result."},
}

// ChildWish is what a call asks for its child.
type ChildWish struct {
	Agent  string
	Tools  []string // names; empty: all that the agent may have
	Limits belay.Limits
	Depth  int
	File   bool // the agent is kept as a file: its rules are narrowed by that
}

// Child are the rules of a sub-agent under these: no tool, mode, boundary or limit that
// the parent hasn't got. prompt is what every agent in a task begins with; complete is the
// tool that ends it, which a parent in a conversation hasn't got.
func (r *Rules) Child(w ChildWish, prompt string, complete belay.ToolSpec) (*Rules, *event.Problem) {
	i := slices.IndexFunc(Agents, func(a Agent) bool { return a.Name == cmp.Or(w.Agent, Agents[0].Name) })
	switch {
	case w.File:
		i = 0
	case i < 0:
		return nil, &event.Problem{Class: "not_found", Code: "UNKNOWN_AGENT", Message: "there is no agent " + event.CutText(w.Agent, maxWord), Hint: "there are " + agentNames()}
	}
	agent := Agents[i]
	agent.Name = cmp.Or(w.Agent, agent.Name)
	child := *r
	child.content, child.set = nil, nil
	child.Agent, child.System = agent.Name, strings.TrimRight(prompt, "\n")+"\n\n# Your part\n"+agent.Instructions+"\n"
	child.Settings.Agent, child.AgentFile = "", nil
	child.Settings.Completion, child.Output = belay.CompletionRequired, nil
	child.Settings.Limits, child.Settings.Budget = w.Limits, belay.Amounts{}
	child.Tools = nil
	for _, t := range r.Tools {
		named := len(w.Tools) == 0 || slices.Contains(w.Tools, t.Name)
		switch {
		case t.Handled == "complete":
			continue
		case t.Handled == "ask":
		case t.Handled != "" && w.Depth >= r.Settings.Agents.OrDefaults().Depth: // it could start none
			continue
		case !named || agent.ReadOnly && t.Handled == "" && !t.ReadOnly:
			continue
		}
		child.Tools = append(child.Tools, t)
	}
	child.Tools = append(child.Tools, complete)
	for _, name := range w.Tools {
		if _, has := child.Tool(name); !has {
			return nil, &event.Problem{Class: "denied", Code: "NOT_COVERED", Message: "agent " + agent.Name + " can't have " + event.CutText(name, maxWord) + " here", Hint: "name tools that you have yourself"}
		}
	}
	return &child, nil
}

func agentNames() string {
	var names []string
	for _, a := range Agents {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// IsKind reports whether a name is that of a built-in agent; none is the first of them.
func IsKind(name string) bool {
	return name == "" || slices.ContainsFunc(Agents, func(a Agent) bool { return a.Name == name })
}
