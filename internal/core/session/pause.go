package session

import (
	"cmp"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// pauseTask makes a task, its parts and the agents that work on them begin nothing more,
// or resumes them.
func (d *Decider) pauseTask(o belay.Order, c belay.PauseTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session")
	}
	c.By = o.Principal
	var facts []core.Fact
	var sends []core.Send
	for _, t := range s.parts(event.TaskPause{Task: c.Task, Op: c.Op, Thread: c.Thread}) {
		before := s.pauseOf(t.Task)
		if (before != nil) == (c.Op == event.Paused) && !c.Now {
			continue
		}
		if before != nil {
			t.Thread = cmp.Or(t.Thread, before.Thread)
		}
		facts = append(facts, core.Fact{IDs: s.ids(), Data: event.SessionUpdated{Pause: &t}})
		told := c
		told.Task, told.Thread = "", ""
		sends = append(sends, core.Send{To: t.Task.Stream(), Command: told})
		more, to := s.pauseThread(t, c)
		facts, sends = append(facts, more...), append(sends, to...)
	}
	return facts, sends, nil
}

// pauseThread pauses what works on a task: its thread and the agents that this started.
// A thread on which another task is paused stays so.
func (s *State) pauseThread(t event.TaskPause, c belay.PauseTask) (facts []core.Fact, sends []core.Send) {
	if t.Thread == "" || c.Op == event.Resumed && slices.ContainsFunc(s.Paused, func(p event.TaskPause) bool { return p.Thread == t.Thread && p.Task != t.Task }) {
		return nil, nil
	}
	to := belay.PauseThread{Op: c.Op, Now: c.Now, Reason: cmp.Or(c.Reason, "by "+c.By)}
	if child := s.Family.ByThread(t.Thread); child != nil {
		return s.pauseBelow(child, to)
	}
	for i := range s.Family {
		if s.Family[i].Parent == t.Thread {
			more, below := s.pauseBelow(&s.Family[i], to)
			facts, sends = append(facts, more...), append(sends, below...)
		}
	}
	return facts, append(sends, core.Send{To: t.Thread.Stream(), Command: to})
}

// parts are a task and those that are parts of it, with the threads on which they run.
func (s *State) parts(of event.TaskPause) []event.TaskPause {
	all := []event.TaskPause{of}
	for i := 0; i < len(all); i++ {
		if p := s.Plan.Find(all[i].Task); p != nil && p.Begun && !p.ended() {
			all[i].Thread = p.Thread
		}
		for _, p := range s.Plan {
			part := slices.ContainsFunc(p.Edges, func(e Edge) bool {
				return e.Relation == belay.RelationParent && e.Target == string(all[i].Task)
			})
			known := slices.ContainsFunc(all, func(t event.TaskPause) bool { return t.Task == p.Task })
			if part && !known && !p.ended() {
				all = append(all, event.TaskPause{Task: p.Task, Op: of.Op})
			}
		}
	}
	return all
}

// cancelTask ends a planned task with its parts: the wish is recorded for all of them, so
// that nothing of them starts any more, then they are told, the deepest first.
func (d *Decider) cancelTask(o belay.Order, c belay.CancelTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	root := s.Plan.Find(c.Task)
	if root == nil {
		return nil, nil, s.unplanned(c.Task)
	}
	var facts []core.Fact
	var sends []core.Send
	for _, t := range s.parts(event.TaskPause{Task: c.Task}) {
		p := s.Plan.Find(t.Task)
		if p == nil || p.ended() || p.Status == "cancelling" {
			continue
		}
		told := belay.CancelTask{Reason: c.Reason, By: o.Principal}
		if t.Task != c.Task {
			told.Reason = cmp.Or(c.Reason, "task "+string(c.Task)+" was cancelled")
		}
		facts = append(facts, s.planned(event.PlannedTask{Task: p.Task, Status: "cancelling", Reason: told.Reason}))
		sends = append(sends, core.Send{To: p.Task.Stream(), Command: told})
	}
	slices.Reverse(sends)
	return facts, sends, nil
}

// pauseOf is the pause of a task; nil: it isn't paused.
func (s *State) pauseOf(t belay.TaskID) *event.TaskPause {
	if i := slices.IndexFunc(s.Paused, func(p event.TaskPause) bool { return p.Task == t }); i >= 0 {
		return &s.Paused[i]
	}
	return nil
}

// applyPause folds that a task is paused, or isn't any more.
func (s *State) applyPause(p event.TaskPause) {
	s.Paused = slices.DeleteFunc(s.Paused, func(o event.TaskPause) bool { return o.Task == p.Task })
	if p.Op == event.Paused {
		s.Paused = append(s.Paused, p)
	}
}
