package view

import (
	"cmp"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// applyTask folds a fact of a task, and those of the session about its edges.
func (s *Session) applyTask(e event.Envelope) {
	if p, ok := e.Data.(event.TaskDependencyUpdated); ok && e.IDs.Task != "" {
		s.task(e.IDs.Task).edge(p)
		return
	}
	if _, ok := e.Data.(event.TaskArchived); ok && e.IDs.Task != "" {
		s.task(e.IDs.Task).Archived = true
		return
	}
	if p, ok := e.Data.(event.TaskProgress); ok && p.Check != nil && e.IDs.Task != "" {
		s.task(e.IDs.Task).checked(p)
		return
	}
	if e.Stream.Kind() != belay.KindTask || e.IDs.Task == "" {
		return
	}
	t := s.task(e.IDs.Task)
	switch p := e.Data.(type) {
	case event.TaskCreated:
		t.Objective, t.Thread, t.Status = preview(p.Objective.Text), p.Thread, "accepted"
		t.Title, t.Owner, t.Priority, t.Planned, t.Parent = preview(p.Title), p.Owner, p.Priority, p.Planned, e.IDs.ParentTask
		t.Assignee = p.Assignee
		t.required(p.Acceptance)
	case event.TaskAccepted:
		t.Status, t.Reason = "accepted", ""
	case event.TaskUpdated:
		t.Title, t.Owner = cmp.Or(preview(p.Title), t.Title), cmp.Or(p.Owner, t.Owner)
		if p.Objective != nil {
			t.Objective = preview(p.Objective.Text)
		}
		if p.Priority != nil {
			t.Priority = *p.Priority
		}
		if p.Assignee != nil {
			t.Assignee = *p.Assignee
		}
		if p.Acceptance != nil {
			t.required(*p.Acceptance)
		}
	case event.TaskProgress:
		if t.Delivery = cmp.Or(p.Delivery, t.Delivery); p.Delivery != "" {
			break
		}
		t.Progress = &TaskProgress{p.Phase, preview(p.Summary.Text), p.Done, p.Total}
	case event.TaskQueued:
		t.Status, t.Reason, t.Thread = "queued", p.Reason, cmp.Or(p.Thread, t.Thread)
	case event.TaskStarted:
		t.Status, t.Reason = "running", ""
	case event.TaskPaused:
		t.Status, t.Reason = event.Paused, preview(p.Reason)
	case event.TaskResumed:
		t.Status, t.Reason = p.Status, ""
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

// required keeps what the task must pass.
func (t *Task) required(checks []belay.Check) {
	t.Checks = nil
	for _, k := range checks {
		t.Checks = append(t.Checks, TaskCheck{ID: k.ID, Kind: k.Kind})
	}
}

// checked keeps the result of a check.
func (t *Task) checked(p event.TaskProgress) {
	if p.Check.Status == event.CheckNoted {
		return
	}
	t.Progress = &TaskProgress{Phase: p.Phase, Total: len(t.Checks)}
	for i := range t.Checks {
		k := &t.Checks[i]
		if k.ID == p.Check.ID {
			k.Status, k.Reason = p.Check.Status, preview(p.Check.Reason)
		}
		if k.Status == event.CheckPassed || k.Status == event.CheckWaived {
			t.Progress.Done++
		}
	}
}

// edge keeps an edge of the task.
func (t *Task) edge(p event.TaskDependencyUpdated) {
	target := cmp.Or(string(p.Target), p.To)
	i := slices.IndexFunc(t.Edges, func(e TaskEdge) bool { return e.Relation == p.Relation && e.Target == target })
	switch {
	case p.Op == event.EdgeRemoved && i >= 0:
		t.Edges = slices.Delete(t.Edges, i, i+1)
	case p.Op == event.EdgeMet && i >= 0:
		t.Edges[i].Met = true
	case p.Op == event.EdgeAdded && i >= 0:
		t.Edges[i].OnFailed = p.OnFailed
	case p.Op == event.EdgeAdded && len(t.Edges) < maxEdges:
		t.Edges = append(t.Edges, TaskEdge{Relation: p.Relation, Target: target, OnFailed: p.OnFailed})
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
