package story

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Branch is an agent in a tree of agents.
type Branch struct {
	Thread, Parent belay.ThreadID
	Text           string
}

// Tree draws agents below those that started them, a line each: those below root, or, if
// it is empty, below all that no other agent started.
func Tree(all []Branch, root belay.ThreadID) []string {
	var lines []string
	known := map[belay.ThreadID]bool{}
	for _, b := range all {
		known[b.Thread] = true
	}
	drawn := make([]bool, len(all)) // of a log with gaps the agents may be no tree
	var draw func(indent string, of func(Branch) bool)
	draw = func(indent string, of func(Branch) bool) {
		var here []Branch
		for i, b := range all {
			if !drawn[i] && of(b) {
				here, drawn[i] = append(here, b), true
			}
		}
		for i, b := range here {
			sign, below := "├─ ", "│  "
			if i == len(here)-1 {
				sign, below = "└─ ", "   "
			}
			lines = append(lines, indent+sign+b.Text)
			draw(indent+below, func(c Branch) bool { return c.Parent == b.Thread })
		}
	}
	draw("", func(b Branch) bool { return b.Parent == root || root == "" && !known[b.Parent] })
	return lines
}

// agent is one that another one started.
type agent struct {
	id      belay.SubagentID
	spawned *event.Envelope
	ended   *event.Envelope
	calls   int
	cost    event.CostSum
}

// tellFamily takes what happens to agents that were started, and what they do.
func (s *story) tellFamily(e *event.Envelope) {
	switch e.Data.(type) {
	case event.SubagentSpawned:
		s.agents.get(e.IDs.Subagent, agent{id: e.IDs.Subagent}).spawned = e
	case event.SubagentInput:
		if a := s.agents.by[e.IDs.Subagent]; a != nil && as[event.SubagentInput](e).Again {
			a.ended = nil
		}
	case event.SubagentCompleted, event.SubagentFailed:
		if a := s.agents.by[e.IDs.Subagent]; a != nil {
			a.ended = e
		}
	}
	if a := s.threads[e.IDs.Thread]; a != nil && e.Stream.Kind() == belay.KindThread {
		if _, starts := e.Data.(event.ToolStarted); starts {
			a.calls++
		}
		a.cost = a.cost.Add(e.Cost())
	}
	if p, ok := e.Data.(event.SubagentSpawned); ok {
		if s.threads == nil {
			s.threads = map[belay.ThreadID]*agent{}
		}
		s.threads[p.Thread] = s.agents.by[e.IDs.Subagent]
	}
}

// branch is the agent's line in a tree.
func (a *agent) branch(s *story) Branch {
	p := as[event.SubagentSpawned](a.spawned)
	name := p.Agent
	if p.Nickname != "" {
		name = p.Nickname + " (" + p.Agent + ")"
	}
	state, until := "open", s.end
	var end *belay.AttemptEnd
	switch p := payload(a.ended).(type) {
	case event.SubagentCompleted:
		end = &p.AttemptEnd
	case event.SubagentFailed:
		end = &p.AttemptEnd
	}
	took := until.Sub(a.spawned.Time)
	if end != nil {
		state, took = string(end.Outcome), time.Duration(end.Active)
	}
	text := fmt.Sprintf("%s %s: %s, %s, %s", name, short(string(a.id)), state, plural(a.calls, "call"), took.Round(time.Millisecond))
	if a.cost.State() != "unknown" {
		text += fmt.Sprintf(", $%.4f", float64(a.cost.MicroUSD)/1e6)
	}
	if end != nil {
		if said := cmp.Or(end.Summary.Text, end.Reason); said != "" {
			text += ": " + quote(strings.TrimSpace(said))
		}
	}
	return Branch{Thread: p.Thread, Parent: a.spawned.IDs.Thread, Text: Clean(text)}
}

// tree draws the agents of a session, or those below a thread.
func (s *story) tree(id belay.SessionID, root belay.ThreadID) []string {
	var all []Branch
	for _, a := range s.agents.list {
		if a.spawned != nil && a.spawned.IDs.Session == id {
			all = append(all, a.branch(s))
		}
	}
	return Tree(all, root)
}
