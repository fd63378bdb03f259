package snapshot

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// maxSubagents bounds the agents that are shown: those that were opened last.
const maxSubagents = 256

// Subagents are the agents that agents of the session started. There are no jobs.
type Subagents struct {
	Status   string         `json:"status"` // not_applicable: there were none; active: some are open; idle
	ByStatus map[string]int `json:"byStatus,omitempty"`
	Total    int            `json:"total"`
	Shown    int            `json:"shown"`
	Agents   []*Subagent    `json:"agents"`
	Jobs     State          `json:"jobs"`
}

// Subagent is an agent and who started it.
type Subagent struct {
	SubagentID  belay.SubagentID `json:"subagentId"`
	Parent      belay.ThreadID   `json:"parentThreadId"`
	ParentTurn  belay.TurnID     `json:"parentTurnId,omitempty"`
	ThreadID    belay.ThreadID   `json:"threadId"`
	TaskID      belay.TaskID     `json:"taskId"`
	Role        string           `json:"role"` // the name of its definition
	Nickname    string           `json:"nickname,omitempty"`
	Objective   string           `json:"objective,omitempty"` // its beginning
	Depth       int              `json:"depth"`
	Background  bool             `json:"background,omitempty"`
	Status      string           `json:"status"` // queued, running, paused, cancelling, or the outcome
	Reason      string           `json:"statusReason,omitempty"`
	Recoverable bool             `json:"recoverable"` // another process can continue it
	SpawnedAt   time.Time        `json:"spawnedAt"`
	EndedAt     time.Time        `json:"endedAt,omitzero"`

	belay.AttemptUse
	Resumes string `json:"resumesAs,omitempty"` // how it stands after a pause
}

// subagent folds a fact of the session about an agent.
func (f *Fold) subagent(e event.Envelope) {
	a := f.s.Subagents.find(e.IDs.Subagent)
	if p, ok := e.Data.(event.SubagentSpawned); ok && a == nil {
		a = &Subagent{SubagentID: e.IDs.Subagent, Parent: e.IDs.Thread, ParentTurn: e.IDs.Turn, ThreadID: p.Thread, TaskID: p.Task, Role: p.Agent, Nickname: cut(p.Nickname),
			Objective: cut(p.Objective.Text), Depth: p.Depth, Background: p.Background, Status: waiting(p.Waits), Recoverable: true, SpawnedAt: e.Time}
		f.s.Subagents.Total++
		f.s.Subagents.Agents = last(append(f.s.Subagents.Agents, a), maxSubagents)
		return
	}
	if a == nil {
		return
	}
	switch p := e.Data.(type) {
	case event.SubagentInput:
		if p.Again {
			a.Status, a.Reason, a.Background, a.Recoverable, a.EndedAt = waiting(p.Waits), "", true, true, time.Time{}
		}
	case event.SubagentStatus:
		switch p.Status {
		case event.Paused:
			a.Resumes, a.Status, a.Reason = a.Status, event.Paused, cut(p.Reason)
		case event.Resumed:
			a.Status, a.Resumes, a.Reason = a.Resumes, "", ""
		case event.SubagentRunning:
			a.Status = "running"
		}
	case event.SubagentClosed:
		a.Status, a.Reason = "cancelling", cut(p.Reason)
	case event.SubagentCompleted:
		a.ended(e, p.AttemptEnd)
	case event.SubagentFailed:
		a.ended(e, p.AttemptEnd)
	}
}

func waiting(waits bool) string {
	if waits {
		return "queued"
	}
	return "running"
}

func (a *Subagent) ended(e event.Envelope, end belay.AttemptEnd) {
	a.Status, a.Reason, a.Recoverable, a.EndedAt = string(end.Outcome), cut(end.Reason), false, e.Time
	a.AttemptUse = a.Plus(end.AttemptUse)
}

func (s *Subagents) find(id belay.SubagentID) *Subagent {
	for _, a := range s.Agents {
		if a.SubagentID == id {
			return a
		}
	}
	return nil
}

// finish counts the agents by how they are.
func (s *Subagents) finish() {
	s.Shown, s.ByStatus = len(s.Agents), nil
	s.Status, s.Jobs = notApplicable, State{notApplicable, "there are no jobs"}
	if s.Total == 0 {
		return
	}
	s.Status, s.ByStatus = "idle", map[string]int{}
	for _, a := range s.Agents {
		s.ByStatus[a.Status]++
		if a.Recoverable {
			s.Status = "active"
		}
	}
}
