package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// AgentLife is what facts tell of an agent's life: of its file, and of its last runs.
type AgentLife struct {
	File []Phase    `json:"file"` // registered, changed, refused, removed
	Runs []AgentRun `json:"runs"` // the oldest first
}

// AgentRun is a turn of an agent.
type AgentRun struct {
	Session  belay.SessionID  `json:"sessionId"`
	Thread   belay.ThreadID   `json:"threadId"`
	Turn     belay.TurnID     `json:"turnId"`
	Subagent belay.SubagentID `json:"subagentId,omitempty"`
	Task     belay.TaskID     `json:"taskId,omitempty"`
	Phases   []Phase          `json:"phases"`
}

// Phase is a part of a life, by the facts that tell of it.
type Phase struct {
	Name  string    `json:"name"` // initialised, executing, validating, ended, integrated, cleaned up
	At    time.Time `json:"at"`   // of the first of them
	Facts []string  `json:"facts"`
	Note  string    `json:"note,omitempty"`
}

// Bounds of what is told of an agent's life.
const (
	maxLifeRuns = 5
	maxLifeFile = 5
)

// LifeFold finds the runs of an agent among the facts of sessions, and what became of its
// file among those of the system session.
type LifeFold struct {
	agent, path string
	begun       map[belay.ThreadID][]event.Envelope // of threads: what came before their next turn
	file        []Phase
	runs        []AgentRun
}

// NewLifeFold knows nothing yet. called is the agent's name in facts.
func NewLifeFold(called, path string) *LifeFold {
	return &LifeFold{agent: called, path: path, begun: map[belay.ThreadID][]event.Envelope{}}
}

// Sum is what the facts told: the last of it.
func (f *LifeFold) Sum() *AgentLife {
	slices.SortStableFunc(f.runs, func(a, b AgentRun) int { return a.Phases[0].At.Compare(b.Phases[0].At) })
	return &AgentLife{File: append([]Phase{}, f.file[max(0, len(f.file)-maxLifeFile):]...), Runs: append([]AgentRun{}, f.runs[max(0, len(f.runs)-maxLifeRuns):]...)}
}

// run is the newest run that a fact is about.
func (f *LifeFold) run(is func(*AgentRun) bool) *AgentRun {
	for i := range slices.Backward(f.runs) {
		if is(&f.runs[i]) {
			return &f.runs[i]
		}
	}
	return nil
}

// Apply takes a fact. Those of one session come in their order.
func (f *LifeFold) Apply(e event.Envelope) {
	ofTurn := func(r *AgentRun) bool { return r.Turn == e.IDs.Turn }
	ofTask := func(r *AgentRun) bool { return r.Task != "" && r.Task == e.IDs.Task }
	ofAgent := func(r *AgentRun) bool { return r.Subagent != "" && r.Subagent == e.IDs.Subagent }
	switch p := e.Data.(type) {
	case event.ArtifactChanged:
		name := map[string]string{"defined": "registered", "edited": "changed", "refused": "refused", "removed": "removed"}[p.Op]
		if p.Kind == "agent" && p.Path == f.path && name != "" {
			f.file = append(f.file, Phase{Name: name, At: e.Time, Facts: []string{e.Type()}, Note: strings.TrimSuffix(p.Digest.Short()+", "+p.Note, ", ")})
		}
	case event.SubagentSpawned:
		f.begun[p.Thread] = append(f.begun[p.Thread], e)
	case event.LimitChanged:
		switch r := f.run(func(r *AgentRun) bool { return r.Thread == p.Thread }); {
		case p.Thread == "":
		case p.Op == event.LimitGranted && (r == nil || r.has("ended")):
			f.begun[p.Thread] = append(f.begun[p.Thread], e)
		case p.Op == event.LimitGranted:
			r.note("initialised", e, "")
		case p.Op == event.LimitReturned && r.has("ended"):
			r.note("cleaned up", e, "what it kept of the budget came back")
		}
	case event.TurnStarted:
		if p.Agent == nil || p.Agent.Name != f.agent {
			return
		}
		r := AgentRun{Session: e.IDs.Session, Thread: e.IDs.Thread, Turn: e.IDs.Turn, Task: e.IDs.Task}
		for _, b := range f.begun[e.IDs.Thread] {
			if s, is := b.Data.(event.SubagentSpawned); is {
				r.Subagent = b.IDs.Subagent
				r.note("initialised", b, fmt.Sprintf("depth %d", s.Depth))
			} else {
				r.note("initialised", b, "")
			}
		}
		delete(f.begun, e.IDs.Thread)
		if old := f.run(func(o *AgentRun) bool { return o.Thread == r.Thread }); r.Subagent == "" && old != nil {
			r.Subagent = old.Subagent // it goes on
		}
		r.note("initialised", e, p.Agent.Title()+" "+p.Agent.Digest.Short())
		f.runs = append(f.runs, r)
	case event.ToolCatalogResolved:
		f.run(ofTurn).note("initialised", e, fmt.Sprintf("%d tools", len(p.Tools)))
	case event.ModelRequested:
		f.run(ofTurn).note("executing", e, "")
	case event.TaskProgress:
		switch {
		case p.Check != nil && p.Check.Status != event.CheckRunning:
			f.run(ofTask).note("validating", e, p.Check.ID+" "+p.Check.Status)
		case p.Phase == event.PhaseVerifying:
			f.run(ofTask).note("validating", e, "")
		case p.Delivery != "":
			f.run(ofTask).note("integrated", e, p.Delivery)
		}
	case event.TurnCompleted:
		f.run(ofTurn).note("ended", e, string(belay.Completed))
	case event.TurnFailed:
		f.run(ofTurn).note("ended", e, string(p.Outcome))
	case event.TaskDependencyUpdated:
		if p.Op == event.EdgeMet {
			f.run(func(r *AgentRun) bool { return r.Task != "" && r.Task == p.Target }).note("integrated", e, string(e.IDs.Task)+" may begin")
		}
	case event.SubagentStatus:
		if p.Status == event.SubagentSettled && p.Worktree != nil {
			f.run(ofAgent).note("cleaned up", e, map[bool]string{true: "its worktree was removed", false: "its worktree stays"}[p.Worktree.Removed])
		}
	case event.SubagentClosed:
		f.run(ofAgent).note("cleaned up", e, p.Reason)
	case event.SubagentCompleted:
		f.run(ofAgent).note("cleaned up", e, "its place is free")
	case event.SubagentFailed:
		f.run(ofAgent).note("cleaned up", e, "its place is free")
	}
}

// has reports whether a phase has begun.
func (r *AgentRun) has(phase string) bool {
	return r != nil && slices.ContainsFunc(r.Phases, func(p Phase) bool { return p.Name == phase })
}

// note adds a fact to a phase. What is told of it is told once.
func (r *AgentRun) note(phase string, e event.Envelope, note string) {
	if r == nil {
		return
	}
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == phase })
	if i < 0 {
		i = len(r.Phases)
		r.Phases = append(r.Phases, Phase{Name: phase, At: e.Time})
	}
	p := &r.Phases[i]
	if t := e.Type(); !slices.Contains(p.Facts, t) {
		p.Facts = append(p.Facts, t)
	}
	switch {
	case note == "" || len(p.Note) > maxLifeNote:
	case p.Note == "":
		p.Note = note
	default:
		p.Note += ", " + note
	}
}

// maxLifeNote is how much is told of a phase, in bytes, or little more.
const maxLifeNote = 300
