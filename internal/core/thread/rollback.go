package thread

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// restore is a rollback that is announced and not over.
type restore struct {
	Started int64 `json:"started"` // the fact that announced it
	event.HistoryRollbackStarted
}

// How much of a rollback's turns and effects its facts name, in bytes.
const (
	roomForTurns = 4 << 10
	roomForKept  = 4 << 10
)

// rollBack announces that files, and the conversation with them, go back to the
// end of a turn. It is made on a plan, which holds only while the thread is as
// it was then.
func (h *handler) rollBack(c belay.RollBack) error {
	switch {
	case !h.Open:
		return belay.Errorf(belay.CodeBadState, "the thread isn't open")
	case h.Restore != nil:
		return belay.Errorf(belay.CodeBadState, "files are being restored already").At(string(h.Session)).WithHint("belay sessions resume %s", h.Session)
	case h.Turn != nil || h.Keep != nil || h.Undo != "" || len(h.Queue) > 0:
		return belay.Errorf(belay.CodeBadState, "a turn hasn't ended").At(string(h.Session)).WithHint("belay sessions interrupt %s, or belay sessions resume %s", h.Session, h.Session)
	case c.After != h.Seq:
		return belay.Errorf(belay.CodeBadState, "the thread has gone on since the plan was made").At(string(h.Session)).WithHint("repeat the command")
	case c.Scope != event.ScopeThread && c.Scope != event.ScopeFiles:
		return belay.Errorf(belay.CodeBadCommand, "a rollback can't have scope %q", c.Scope)
	}
	var target int64
	if c.To != "" {
		k := h.known(c.To)
		if k == nil || k.End == 0 || k.Back {
			return belay.Errorf(belay.CodeNotFound, "%s is not one of the turns that can be gone back to", c.To).At(string(h.Session)).
				WithHint("belay fork %s --turn %s begins a new session there", h.Session, c.To)
		}
		target = k.End
	}
	p := event.HistoryRollbackStarted{Scope: c.Scope, Target: target, To: c.To, Plan: c.Plan, Files: c.Files,
		Kept: event.Fitting(c.Kept, roomForKept), By: h.order.Principal, Reason: event.CutText(c.Reason, maxSaid)}
	p.Turns, p.Count = h.after(target)
	h.record(Rollback(belay.IDs{Session: h.Session, Thread: h.Thread}, p)...)
	return nil
}

// Rollback are the facts that announce a rollback; with no file to restore it is
// over at once.
func Rollback(ids belay.IDs, p event.HistoryRollbackStarted) []core.Fact {
	facts := []core.Fact{{IDs: ids, Data: p}}
	if p.Plan == nil {
		facts = append(facts, core.Fact{IDs: ids, Data: completed(p)})
	}
	return facts
}

// completed is how a rollback ends, but for the outcome of the files.
func completed(p event.HistoryRollbackStarted) event.HistoryRollbackCompleted {
	return event.HistoryRollbackCompleted{Scope: p.Scope, Target: p.Target, To: p.To, Turns: p.Turns, Count: p.Count, Kept: p.Kept}
}

// after are the turns in force that ended after a fact, as many as fit.
func (q *queueState) after(target int64) (turns []belay.TurnID, count int) {
	room := roomForTurns
	for _, k := range q.Known {
		if k.Start == 0 || k.End <= target || k.Back {
			continue
		}
		count++
		if room -= event.TextLen(string(k.Turn)) + 3; room >= 0 {
			turns = append(turns, k.Turn)
		}
	}
	return turns, count
}

// restore is the effect of a rollback that is announced.
func (s *State) restore() core.RestoreFiles {
	return core.RestoreFiles{IDs: belay.IDs{Session: s.Session, Thread: s.Thread}, Started: s.Restore.Started, Plan: *s.Restore.Plan,
		Event: completed(s.Restore.HistoryRollbackStarted), Dir: s.Workspace}
}

// goesBack is the effect that looks what taking back the cancelled turn means.
// What it finds is a fact, and a rollback like any other.
func (s *State) goesBack() core.GoBack {
	e := core.GoBack{IDs: belay.IDs{Session: s.Session, Thread: s.Thread}, Turn: s.Undo, Dir: s.Workspace}
	undone := s.known(s.Undo)
	for _, k := range s.Known {
		if undone != nil && k.End < undone.Start && k.End > e.Target && !k.Back { // turns that were part of another end where it does
			e.To, e.Target = k.Turn, k.End
		}
	}
	return e
}

// wentBack makes the state what it was at the target. What the thread knows of
// the world stays: which calls were lost, what was allowed, which ids were used.
func (s *State) wentBack(p event.HistoryRollbackCompleted) {
	s.Restore = nil
	if p.Scope != event.ScopeThread {
		return
	}
	s.Prev, s.Back = nil, true
	s.Files.back(p.Target)
	if s.PlanAt > p.Target { // what it was then is not known here; the conversation has it
		s.Plan, s.PlanAt, s.Recall = nil, 0, false
	}
	for i := range s.Known {
		k := &s.Known[i]
		switch {
		case k.End > p.Target:
			k.Back = true
			s.Gone = slices.DeleteFunc(s.Gone, func(g endedProcess) bool { return g.Turn == k.Turn })
		case k.End > 0 && !k.Back:
			s.Prev = &Ended{Turn: k.Turn, Outcome: k.Outcome}
		}
	}
}

// known is a turn that was submitted, or nil.
func (q *queueState) known(id belay.TurnID) *Known {
	return find(q.Known, func(k *Known) bool { return k.Turn == id })
}
