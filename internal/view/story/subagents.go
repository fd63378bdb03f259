package story

import (
	"cmp"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Subagents counts the agents that agents started: those that are open by state, the others
// by how they ended, those that were refused by the limit or the code, and those that were
// admitted beyond a limit, which must be none.
type Subagents struct {
	States    map[string]int        `json:"states,omitempty"` // queued, running, paused
	Outcomes  map[belay.Outcome]int `json:"outcomes,omitempty"`
	Refused   map[string]int        `json:"refused,omitempty"`
	Incidents int                   `json:"-"`

	open     map[belay.SubagentID]openAgent
	families map[belay.SessionID]*familyCount
}

type openAgent struct {
	state, before string // before it was paused
	parent        belay.ThreadID
}

// familyCount recounts a session's family.
type familyCount struct {
	limits belay.AgentLimits
	depth  map[belay.ThreadID]int
	open   map[belay.ThreadID]int // children
	total  int
	all    int // that are open
}

// NewSubagents counts nothing yet.
func NewSubagents() *Subagents {
	return &Subagents{States: map[string]int{}, Outcomes: map[belay.Outcome]int{}, Refused: map[string]int{}, open: map[belay.SubagentID]openAgent{}, families: map[belay.SessionID]*familyCount{}}
}

// Apply counts one fact. Facts of one stream come in their order.
func (s *Subagents) Apply(e event.Envelope) {
	switch p := e.Data.(type) {
	case event.SessionCreated:
		s.family(e.IDs.Session).limits = p.Settings.Agents.OrDefaults()
	case event.SessionUpdated:
		if p.Settings != nil {
			s.family(e.IDs.Session).limits = p.Settings.Agents.OrDefaults()
		}
	case event.SubagentSpawned:
		f := s.family(e.IDs.Session)
		f.total++
		f.depth[p.Thread] = f.depth[e.IDs.Thread] + 1
		s.admit(e, f, p.Waits)
		if f.total > f.limits.Total || f.depth[p.Thread] > f.limits.Depth {
			s.Incidents++
		}
	case event.SubagentInput:
		if p.Again {
			s.admit(e, s.family(e.IDs.Session), p.Waits)
		}
	case event.SubagentStatus:
		s.turns(e.IDs.Subagent, p.Status)
	case event.SubagentCompleted:
		s.ended(e, p.AttemptEnd, "")
	case event.SubagentFailed:
		s.ended(e, p.AttemptEnd, p.Code)
	}
}

func (s *Subagents) family(id belay.SessionID) *familyCount {
	f := s.families[id]
	if f == nil {
		f = &familyCount{limits: belay.AgentLimits{}.OrDefaults(), depth: map[belay.ThreadID]int{}, open: map[belay.ThreadID]int{}}
		s.families[id] = f
	}
	return f
}

// admit counts an agent that is open from now on.
func (s *Subagents) admit(e event.Envelope, f *familyCount, waits bool) {
	a := openAgent{state: "running", parent: e.IDs.Thread}
	if waits {
		a.state = "queued"
	}
	s.open[e.IDs.Subagent] = a
	s.States[a.state]++
	f.all++
	if f.open[a.parent]++; f.open[a.parent] > f.limits.Children || f.all > belay.MaxOpenAgents {
		s.Incidents++
	}
}

// turns notes another state of an open agent.
func (s *Subagents) turns(id belay.SubagentID, status string) {
	a, open := s.open[id]
	next := a
	switch {
	case !open:
		return
	case status == event.SubagentRunning && a.state == "queued":
		next.state = "running"
	case status == event.Paused && a.state != event.Paused:
		next.state, next.before = event.Paused, a.state
	case status == event.Resumed && a.state == event.Paused:
		next.state = a.before
	}
	s.leaves(a.state)
	s.States[next.state]++
	s.open[id] = next
}

func (s *Subagents) leaves(state string) {
	if s.States[state]--; s.States[state] == 0 {
		delete(s.States, state)
	}
}

func (s *Subagents) ended(e event.Envelope, end belay.AttemptEnd, code string) {
	if code != "" { // it was never opened
		limit, _, _ := strings.Cut(end.Reason, " ")
		if !strings.HasPrefix(limit, "agents-") {
			limit = ""
		}
		s.Refused[cmp.Or(limit, code)]++
		return
	}
	a, open := s.open[e.IDs.Subagent]
	if !open {
		return
	}
	delete(s.open, e.IDs.Subagent)
	s.leaves(a.state)
	s.Outcomes[end.Outcome]++
	f := s.family(e.IDs.Session)
	f.open[a.parent]--
	f.all--
}

// Open is how many haven't ended.
func (s *Subagents) Open() int { return len(s.open) }

// Ended is how many have.
func (s *Subagents) Ended() (n int) {
	for _, of := range s.Outcomes {
		n += of
	}
	return n
}
