package view

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// applyTask folds a fact of a task's stream.
func (s *Session) applyTask(e event.Envelope) {
	if e.Stream.Kind() != belay.KindTask || e.IDs.Task == "" {
		return
	}
	t := s.task(e.IDs.Task)
	switch p := e.Data.(type) {
	case event.TaskCreated:
		t.Objective, t.Thread, t.Status = preview(p.Objective.Text), p.Thread, "accepted"
	case event.TaskStarted:
		t.Status = "running"
	case event.TaskRetrying:
		t.Status, t.Reason = "retrying", preview(p.Reason)
	case event.TaskCancelRequested:
		t.Status, t.Reason = "cancelling", preview(p.Reason)
	case event.TaskAttemptStarted:
		t.Status, t.Attempts, t.Thread, t.Run = "running", p.Number, p.Thread, e.IDs.Run
	case event.TaskOver:
		t.Status, t.Reason = event.TaskStatus(p), preview(p.End().Reason)
	}
}

// task finds a task, or takes it up as the newest.
func (s *Session) task(id belay.TaskID) *Task {
	for i := len(s.Tasks) - 1; i >= 0; i-- {
		if s.Tasks[i].ID == id {
			return &s.Tasks[i]
		}
	}
	s.Counts.Tasks++
	s.Tasks = newest(append(s.Tasks, Task{ID: id}), maxTasks)
	return &s.Tasks[len(s.Tasks)-1]
}
