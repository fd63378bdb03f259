package block

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Agent is an agent that the followed one started, or one of those that it started.
type Agent struct {
	Name  string // that it was given; empty: none
	Kind  string // name of its definition
	Task  string
	Depth int    // 1 is a child of the followed one
	Waits bool   // for a place
	Doing string // the call that began last
	Calls int
	Began time.Time // it works since then
	Cost  event.CostSum
	End   *belay.AttemptEnd // nil: it is open

	thread belay.ThreadID // its own; that of the block is its parent's
}

// family takes what happens to agents that were started, and reports whether nothing
// else is to be shown of the fact. Of what they do only their questions are blocks.
func (f *Fold) family(ev event.Envelope) bool {
	switch p := ev.Data.(type) {
	case event.SubagentSpawned:
		if f.agents == nil {
			f.agents, f.spawned = map[belay.StreamID]belay.SubagentID{}, map[belay.CallID]belay.SubagentID{}
		}
		f.spawned[ev.IDs.Call] = ev.IDs.Subagent
		f.agents[p.Thread.Stream()] = ev.IDs.Subagent
		if call := f.find(KindCall, string(ev.IDs.Call)); call != nil { // the agent stands for it
			f.drop(call)
		}
		f.begin(ev, KindAgent, string(ev.IDs.Subagent)).Agent = &Agent{Name: p.Nickname, Kind: p.Agent, Task: p.Objective.Text, Depth: p.Depth, Waits: p.Waits, Began: ev.Time, thread: p.Thread}
	case event.SubagentInput:
		if p.Again && f.find(KindAgent, string(ev.IDs.Subagent)) == nil {
			f.begin(ev, KindAgent, string(ev.IDs.Subagent)).Agent = &Agent{Name: p.Nickname, Kind: p.Agent, Task: p.Text.Text, Depth: p.Depth, Waits: p.Waits, Began: ev.Time}
		}
	case event.SubagentStatus:
		if b := f.find(KindAgent, string(ev.IDs.Subagent)); b != nil && p.Status == event.SubagentRunning {
			b.Agent.Waits, b.Agent.Began = false, ev.Time
		}
	case event.SubagentCompleted:
		f.agentEnded(ev, p.AttemptEnd)
	case event.SubagentFailed:
		f.agentEnded(ev, p.AttemptEnd)
	default:
		id, spawned := f.spawned[ev.IDs.Call]
		if p, ok := ev.Data.(event.ToolFailed); ok && spawned && p.Final { // its end comes when its parent has ended, and perhaps nobody looks any more
			f.leave(id, ev.Time, p.Problem.Message)
		}
		return spawned || f.ofAgent(ev)
	}
	return true
}

// leave folds an agent that nothing waits for any more, and those below it that work: they
// end.
func (f *Fold) leave(id belay.SubagentID, at time.Time, why string) {
	b := f.find(KindAgent, string(id))
	if b == nil {
		return
	}
	for _, below := range slices.Clone(f.live) {
		if below.Kind == KindAgent && below.Thread == b.Agent.thread {
			f.leave(belay.SubagentID(below.ID), at, why)
		}
	}
	b.Agent.End = &belay.AttemptEnd{Outcome: belay.Cancelled, Reason: why, AttemptUse: belay.AttemptUse{Calls: b.Agent.Calls, Active: belay.Duration(at.Sub(b.Agent.Began))}}
	f.done(b)
}

func (f *Fold) agentEnded(ev event.Envelope, end belay.AttemptEnd) {
	if b := f.find(KindAgent, string(ev.IDs.Subagent)); b != nil { // else it was never opened
		b.Agent.End = &end
		f.done(b)
	}
}

// ofAgent takes a fact of an agent that was started.
func (f *Fold) ofAgent(ev event.Envelope) bool {
	id, started := f.agents[ev.Stream]
	if !started {
		return false
	}
	b := f.find(KindAgent, string(id))
	if b != nil {
		b.Agent.Cost = b.Agent.Cost.Add(ev.Cost())
	}
	switch p := ev.Data.(type) {
	case event.ActionRequired, event.ActionResolved:
		return false
	case event.ToolStarted:
		if b != nil {
			b.Agent.Doing = Line(p.Name)
			b.Agent.Calls++
		}
	}
	return true
}

// agent renders an agent on one line, and behind its end what it says.
func (o Options) agent(b Block) []string {
	a := b.Agent
	name := Line(a.Kind)
	if a.Name != "" {
		name = Line(a.Name) + " (" + name + ")"
	}
	indent := strings.Repeat("  ", max(a.Depth-1, 0))
	if a.End == nil {
		state := cmp.Or(a.Doing, "begins")
		if a.Waits {
			state = "waits for a place"
		}
		after := []string{state, Plural(a.Calls, "call")}
		if !a.Waits && !a.Began.IsZero() && !o.Now.IsZero() {
			after = append(after, lasted(o.Now.Sub(a.Began)))
		}
		if a.Cost.State() != "unknown" {
			after = append(after, Money(a.Cost))
		}
		sep := o.pick(" · ", ", ")
		head, tail := indent+"agent "+name, strings.Join(after, sep)
		room := maxTask
		if o.Width > 0 { // what it does stands behind what it is to do, and is never cut for it
			room = min(room, o.Width-ansi.StringWidth(head)-ansi.StringWidth(tail)-2*len(", "))
		}
		if room >= minTask {
			head += sep + Short(Line(a.Task), room)
		}
		return []string{o.shorten(head+sep+tail, o.Width)}
	}
	sign, colour := o.pick("● ", "* "), green
	if a.End.Outcome != belay.Completed {
		sign, colour = o.pick("✗ ", "x "), red
	}
	if o.ScreenReader {
		sign, indent = "", ""
	}
	parts := []string{"agent " + name, string(a.End.Outcome), Plural(a.End.Calls, "call"), Millis(time.Duration(a.End.Active).Milliseconds())}
	if a.End.Usage.Reported {
		parts = append(parts, Count(a.End.Usage.Total())+" tokens")
	}
	if a.Cost.State() != "unknown" {
		parts = append(parts, Money(a.Cost))
	}
	lines := o.wrap(indent+o.paint(colour, sign), indent+"  ", strings.Join(parts, o.pick(" · ", ", ")))
	if said := cmp.Or(a.End.Summary.Text, a.End.Reason); said != "" {
		lines = append(lines, o.wrap(indent+"  ", indent+"  ", Short(Line(said), maxSaid))...)
	}
	return lines
}

// lasted is a time that goes on, short enough for a narrow line.
func lasted(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return Ago(d)
}

// Characters of an agent's task, and of what it says at its end, that are shown.
const (
	maxTask = 60
	minTask = 8
	maxSaid = 400
)
