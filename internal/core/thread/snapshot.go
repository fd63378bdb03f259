package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// snapshot keeps the workspace before the first step of a turn whose rules ask
// for it. What was asked for and can't be had ends the turn: a person relies on it.
func snapshot(d *decision) bool {
	t := d.Turn
	switch {
	case d.rules.Settings.Snapshot == "" || t.Kept != "" || t.Step != nil:
		return false
	case t.KeptNot != "":
		d.fail(belay.Failed, "SNAPSHOT_FAILED", "the workspace could not be kept before the turn: "+t.KeptNot)
	default:
		d.want(*d.keep(d.rules.Settings.Snapshot, "before"))
	}
	return true
}

// keep is the effect that keeps the workspace before or after the running turn.
func (s *State) keep(how, when string) *core.TakeSnapshot {
	return &core.TakeSnapshot{IDs: belay.IDs{Session: s.Session, Thread: s.Thread, Turn: s.Turn.Turn}, How: how, When: when, Dir: s.Workspace}
}

// kept folds that the workspace was kept, or could not be.
func (s *State) kept(e event.Envelope, p event.ArtifactChanged) {
	if p.Name == "after" {
		s.Keep = nil
		return
	}
	if s.Turn == nil || s.Turn.Turn != e.IDs.Turn {
		return
	}
	if p.Op == "failed" {
		s.Turn.KeptNot = p.Note
		return
	}
	s.Turn.Kept = p.Scope
}
