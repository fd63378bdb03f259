package thread

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/match"
)

// Agent is what a sub-agent is besides its parent's rules.
type Agent struct {
	Name         string
	For          string // what it is for
	Instructions string
	ReadOnly     bool            // it has only tools that change nothing
	Output       json.RawMessage // the schema of its output; nil: it has none
}

// Agents are the built-in ones that a call names.
var Agents = []Agent{
	{Name: "general", For: "Does a part of the work, with its starter's tools.", Instructions: "You do a part of a larger task for another agent. It reads only what you put into complete_task: say there what you found or did, with file names and line numbers."},
	{Name: "explore", For: "Looks for something, and changes nothing.", ReadOnly: true, Instructions: "You look for something for another agent, and change nothing. It reads only what you put into complete_task: say there what you found, with file names and line numbers, and what you did not find."},
	{Name: "plan", For: "Makes a plan, and changes nothing.", ReadOnly: true, Instructions: "You make a plan for another agent, and change nothing. Read what the plan depends on. It reads only what you put into complete_task: the steps in order, with the files that each of them changes, and how to check the result."},
}

// BuiltIn are all built-in agents.
func BuiltIn() []Agent { return append(slices.Clone(Agents), judge) }

// ChildWish is what a call asks for its child.
type ChildWish struct {
	Agent  string
	Tools  []string // names; empty: all that the agent may have
	Limits belay.Limits
	Depth  int
	File   bool // the agent is kept as a file: its rules are narrowed by that
	Judges bool // it judges its parent's work: it reads, and starts nothing
}

// Child are the rules of a sub-agent under these: no tool, mode, boundary or limit that
// the parent hasn't got. prompt is what every agent in a task begins with; complete is the
// tool that ends it, which a parent in a conversation hasn't got.
func (r *Rules) Child(w ChildWish, prompt string, complete belay.ToolSpec) (*Rules, *event.Problem) {
	i := slices.IndexFunc(Agents, func(a Agent) bool { return a.Name == cmp.Or(w.Agent, Agents[0].Name) })
	switch {
	case w.File || w.Judges && (w.Agent == "" || w.Agent == judge.Name):
		i = 0
	case i < 0:
		return nil, &event.Problem{Class: "not_found", Code: CodeUnknownAgent, Message: "there is no agent " + event.CutText(w.Agent, maxWord), Hint: match.Hint(w.Agent, Kinds(), "there are "+strings.Join(Kinds(), ", "))}
	}
	agent := Agents[i]
	if w.Judges {
		w.Agent, agent = cmp.Or(w.Agent, judge.Name), judge
	}
	agent.Name = cmp.Or(w.Agent, agent.Name)
	child := *r
	child.content, child.set = nil, nil
	child.Agent, child.System = agent.Name, strings.TrimRight(prompt, "\n")+"\n\n# Your part\n"+agent.Instructions+"\n"
	child.Settings.Agent, child.AgentFile, child.Gates = "", nil, nil
	child.Settings.Completion, child.Output, child.Input = belay.CompletionRequired, nil, nil
	child.Settings.Limits, child.Settings.Budget = w.Limits, belay.Amounts{}
	if a := r.Asked; a != nil {
		s := &child.Settings
		s.Provider, s.Model, s.BaseURL, s.Fallback = a.Provider, a.Model, a.BaseURL, a.Fallback
		child.Routes, child.Profile, child.Environment, child.Asked = a.Routes, a.Profile, true, nil
	}
	if w.Judges {
		child.Output, child.Settings.Mode = judge.Output, belay.ModePlan
		child.AskOutput()
	}
	child.Tools, child.Withheld = nil, slices.Clip(r.Withheld)
	for _, t := range r.Tools {
		named := len(w.Tools) == 0 || slices.Contains(w.Tools, t.Name)
		switch {
		case t.Handled == "complete":
			continue
		case w.Judges && !readsFiles(t):
			child.Withheld = append(child.Withheld, t.Name)
			continue
		case t.Handled == "ask":
		case t.Handled == handledInput && r.Settings.Agents.Talk == belay.TalkTree: // to others of the tree
		case t.Handled != "" && w.Depth >= r.Settings.Agents.OrDefaults().Depth: // it could start none
			continue
		case !named || agent.ReadOnly && t.Handled == "" && !t.ReadOnly:
			child.Withheld = append(child.Withheld, t.Name)
			continue
		}
		child.Tools = append(child.Tools, t)
	}
	child.Tools = append(child.Tools, complete)
	for _, name := range w.Tools {
		if _, has := child.Tool(name); !has {
			return nil, NotCovered("agent "+agent.Name+" can't have "+event.CutText(name, maxWord)+" here", "name tools that you have yourself")
		}
	}
	return &child, nil
}

// readsFiles reports whether a tool reads files of the workspace and does nothing else.
func readsFiles(t belay.ToolSpec) bool {
	return t.Handled == "" && t.ReadOnly && t.PathArg != "" && len(t.Capabilities) == 0 && t.Server == ""
}

// NotCovered refuses an agent something that who starts it hasn't got.
func NotCovered(what, hint string) *event.Problem {
	return &event.Problem{Class: "denied", Code: "NOT_COVERED", Message: what, Hint: hint}
}

// CodeUnknownAgent refuses an agent that there isn't.
const CodeUnknownAgent = "UNKNOWN_AGENT"

// Kinds are the names of the built-in agents.
func Kinds() (names []string) {
	for _, a := range Agents {
		names = append(names, a.Name)
	}
	return names
}
