// Package task is the decider of an objective: its attempts on a thread and how
// it ended. Attempts are kept, never replaced. A task doesn't know how work is
// done: it sends a turn to a thread and receives the outcome.
package task

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Version names what folding depends on besides the facts.
const Version = "task/7"

// maxAttempts bounds the attempts remembered in the state; all are in the log.
const maxAttempts = 32

// Decider is the task's decider.
type Decider struct{ s State }

var _ core.Decider = (*Decider)(nil)

// New is the decider of an empty stream.
func New(stream belay.StreamID) *Decider { return &Decider{State{Stream: stream}} }

// State is a look at the state; the caller must not change it.
func (d *Decider) State() *State { return &d.s }

// Handle answers a command.
func (d *Decider) Handle(o belay.Order, now time.Time) ([]core.Fact, []core.Send, error) {
	switch c := o.Command.(type) {
	case belay.CreateTask:
		return d.create(o, c)
	case belay.RetryTask:
		return d.retry(c)
	case belay.UpdateTask:
		return d.update(o, c)
	case belay.StartTask:
		return d.start(c)
	case belay.ContinueTask:
		return d.goOn(c)
	case belay.BlockTask:
		return d.block(c)
	case belay.NoteProgress:
		return d.progress(o, c)
	case belay.CompleteTask:
		return d.complete(o, c)
	case belay.FailTask:
		return d.fail(o, c)
	case belay.CancelTask:
		return d.cancel(o, c)
	case belay.PauseTask:
		return d.pause(o, c)
	case belay.EndAttempt:
		return d.endAttempt(c, now)
	}
	return nil, nil, belay.Errorf(belay.CodeBadCommand, "a task doesn't take %s", belay.CommandName(o.Command))
}

func (d *Decider) create(o belay.Order, c belay.CreateTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Status != "" {
		return nil, nil, nil
	}
	ids := belay.IDs{Session: o.Session, Task: belay.TaskID(o.Stream.ID()), ParentTask: c.Parent, Subagent: c.Subagent}
	by := cmp.Or(c.By, o.Principal)
	created := event.TaskCreated{Objective: c.Objective, Kind: "agent", Thread: c.Thread, By: by, Template: c.Template, Acceptance: c.Acceptance, Retry: c.Retry}
	if p := c.Plan; p != nil {
		created.Planned, created.Title, created.Owner, created.Priority, created.Acceptance = true, p.Title, p.Owner, p.Priority, p.Acceptance
		if p.Goal {
			created.Kind = event.TaskGoal
		}
		created.Retry, created.Assignee, created.Constraints = p.Retry, p.Assignee, p.Constraints
		return []core.Fact{{IDs: ids, Data: created}, {IDs: ids, Data: event.TaskAccepted{By: by}}}, nil, nil
	}
	if c.Retry.Max > 0 || len(c.Retry.Fallback) > 0 {
		created.Rules = &c.Rules
	}
	facts := []core.Fact{{IDs: ids, Data: created}}
	if c.Wait {
		return append(facts, core.Fact{IDs: ids, Data: event.TaskQueued{Reason: cmp.Or(c.Reason, "capacity"), Turn: c.Turn, Rules: &c.Rules, Priority: c.Priority}}), nil, nil
	}
	facts = append(facts, core.Fact{IDs: ids, Data: event.TaskStarted{}})
	attempt, send := s.attempt(ids, len(facts), 1, c.Thread, belay.SubmitTurn{Turn: c.Turn, Text: c.Objective, Rules: c.Rules, Queue: c.Queue, Place: c.Place, Priority: c.Priority, Budget: c.Budget, Checks: c.Acceptance})
	return append(facts, attempt), []core.Send{send}, nil
}

// start begins an attempt that waited, or says of a planned task what that is. One that
// was cancelled meanwhile doesn't begin.
func (d *Decider) start(c belay.StartTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	p := s.Planned
	if c.Turn != "" {
		switch {
		case p != nil && p.Turn == c.Turn && p.Reason != c.Reason: // it waits for something else now
			again := *p
			again.Reason = c.Reason
			return []core.Fact{{IDs: s.ids(), Data: again}}, nil, nil
		case p != nil || s.Status != "accepted":
			return nil, nil, nil
		}
		return []core.Fact{{IDs: s.ids(), Data: event.TaskQueued{Reason: c.Reason, Thread: c.Thread, Turn: c.Turn, Rules: &c.Rules, Priority: s.Priority}}}, nil, nil
	}
	if p == nil {
		return nil, nil, nil
	}
	ids, on := s.ids(), s.Thread
	facts := []core.Fact{{IDs: ids, Data: event.TaskStarted{Note: c.Note}}}
	if c.Subagent != "" {
		ids.Subagent, on = c.Subagent, c.Thread
		facts = append(facts, core.Fact{IDs: ids, Data: event.TaskDelegated{To: "subagent", Thread: on}})
	}
	turn := belay.SubmitTurn{Turn: p.Turn, Text: s.Objective, Rules: *p.Rules, Priority: p.Priority, Budget: c.Budget, Taint: slices.Concat(p.Taint, c.Taint), Checks: s.Acceptance, Note: c.Note}
	if p.Text != nil {
		turn.Text = *p.Text
	}
	if p.Limits != nil {
		turn.Limits = *p.Limits
	}
	attempt, send := s.attempt(ids, len(facts), s.Count+1, on, turn)
	return append(facts, attempt), []core.Send{send}, nil
}

// goOn begins an attempt with another text for the sub-agent. One that runs goes on
// beside it: both are one turn, if the text comes in time. The task ends with the last.
func (d *Decider) goOn(c belay.ContinueTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if c.Input <= s.Inputs {
		return nil, nil, nil
	}
	var facts []core.Fact
	if s.running() == nil {
		facts = append(facts, core.Fact{IDs: s.ids(), Data: event.TaskRetrying{Reason: "it was told more"}})
	}
	if c.Wait {
		queued := event.TaskQueued{Reason: cmp.Or(c.Reason, "capacity"), Turn: c.Turn, Rules: &c.Rules, Priority: c.Priority, Input: c.Input, Text: &c.Text, Taint: c.Taint, Limits: &c.Limits}
		return append(facts, core.Fact{IDs: s.ids(), Data: queued}), nil, nil
	}
	attempt, send := s.attempt(s.ids(), len(facts), s.Count+1, s.Thread, belay.SubmitTurn{Turn: c.Turn, Text: c.Text, Rules: c.Rules, Queue: c.Queue, Priority: c.Priority,
		Budget: c.Budget, Taint: c.Taint, Limits: c.Limits, Rest: c.Rest, Checks: s.Acceptance})
	started := attempt.Data.(event.TaskAttemptStarted)
	started.Input = c.Input
	attempt.Data = started
	return append(facts, attempt), append(s.marks("running", "it was told more"), send), nil
}

// block says that a task that waits can't start as things are.
func (d *Decider) block(c belay.BlockTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Planned == nil {
		return nil, nil, nil
	}
	return []core.Fact{{IDs: s.ids(), Data: event.TaskBlocked{TaskEnd: event.TaskEnd{Outcome: belay.Blocked, Reason: c.Reason}}}}, nil, nil
}

// update changes what a task is that hasn't ended.
func (d *Decider) update(o belay.Order, c belay.UpdateTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	p := event.TaskUpdated{By: o.Principal}
	changed := false
	if c.Title != "" && c.Title != s.Title {
		p.Title, changed = c.Title, true
	}
	if c.Owner != "" && c.Owner != s.Owner {
		p.Owner, changed = c.Owner, true
	}
	if c.Objective != nil && (c.Objective.Text != s.Objective.Text || c.Objective.Ref != s.Objective.Ref) {
		p.Objective, changed = c.Objective, true
	}
	if c.Priority != nil && *c.Priority != s.Priority {
		p.Priority, changed = c.Priority, true
	}
	if c.Assignee != nil && *c.Assignee != s.Assignee {
		p.Assignee, changed = c.Assignee, true
	}
	if c.Acceptance != nil {
		p.Acceptance, changed = c.Acceptance, true
	}
	if c.Constraints != nil {
		p.Constraints, changed = c.Constraints, true
	}
	if c.Retry != nil {
		p.Retry, changed = c.Retry, true
	}
	switch {
	case s.Status == "":
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such task")
	case !changed:
		return nil, nil, nil
	case s.Ended():
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is %s", s.Task, s.Status).WithHint("retry_task starts another attempt, create_task another task")
	}
	facts := []core.Fact{{IDs: s.ids(), Data: p}}
	if s.Plan && p.Priority != nil {
		return facts, []core.Send{{To: s.Session.Stream(), Command: belay.MarkTask{Task: s.Task, Status: s.Status, Priority: p.Priority}}}, nil
	}
	return facts, nil, nil
}

// progress records how far a task is that hasn't ended.
func (d *Decider) progress(o belay.Order, c belay.NoteProgress) ([]core.Fact, []core.Send, error) {
	s := &d.s
	switch {
	case s.Status == "":
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such task")
	case c.Delivery != "": // of what it ended with
		return []core.Fact{{IDs: s.ids(), Data: event.TaskProgress{Delivery: c.Delivery}}}, nil, nil
	case s.Ended():
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is %s", s.Task, s.Status).WithHint("retry_task starts another attempt, create_task another task")
	}
	return []core.Fact{{IDs: s.ids(), Data: event.TaskProgress{By: o.Principal, Phase: c.Phase, Summary: belay.Content{Text: c.Summary}, Done: c.Done, Total: c.Total}}}, nil, nil
}

// complete ends a task well on a person's word, once what it must pass holds.
func (d *Decider) complete(o belay.Order, c belay.CompleteTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if err := s.Closable(); err != nil || s.Status == "completed" {
		return nil, nil, err
	}
	by := cmp.Or(c.By, o.Principal)
	var facts []core.Fact
	left := append(slices.Clone(s.Acceptance), c.Gates...)
	for _, w := range c.Waive {
		i := slices.IndexFunc(left, func(k belay.Check) bool { return k.ID == w.Check })
		if i < 0 {
			return nil, nil, belay.Errorf(belay.CodeNotFound, "the task has no check %s", w.Check).WithHint("get_task lists them")
		}
		facts = append(facts, core.Fact{IDs: s.ids(), Data: event.TaskProgress{By: by, Phase: event.PhaseVerifying,
			Check: &event.CheckResult{ID: w.Check, Kind: left[i].Kind, Status: event.CheckWaived, Reason: w.Reason}}})
		left = slices.Delete(left, i, i+1)
	}
	if len(left) == 0 {
		return s.over(facts, "completed", event.TaskCompleted{TaskEnd: event.TaskEnd{Outcome: belay.Completed, Summary: c.Summary, Output: c.Output, By: by}})
	}
	if c.Turn == "" {
		return nil, nil, belay.Errorf(belay.CodeConflict, "the checks of task %s have changed", s.Task).WithHint("repeat the command")
	}
	attempt, send := s.attempt(s.ids(), len(facts), s.Count+1, c.Thread, belay.SubmitTurn{Turn: c.Turn, Text: c.Text, Rules: c.Rules, Checks: left, Rounds: 1})
	started := attempt.Data.(event.TaskAttemptStarted)
	started.Purpose, started.By = event.PurposeVerify, by
	attempt.Data = started
	return append(facts, attempt), []core.Send{send}, nil
}

// pause notes that the task begins nothing more, or does again.
func (d *Decider) pause(o belay.Order, c belay.PauseTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	by := cmp.Or(c.By, o.Principal)
	switch {
	case s.Status == "" || s.Ended() || s.Paused == (c.Op == event.Paused):
		return nil, nil, nil
	case c.Op == event.Paused:
		return []core.Fact{{IDs: s.ids(), Data: event.TaskPaused{By: by, Reason: c.Reason}}}, nil, nil
	}
	return []core.Fact{{IDs: s.ids(), Data: event.TaskResumed{Status: s.Status, By: by, Reason: c.Reason}}}, nil, nil
}

// Shown is how the task stands, in a word of the standard.
func (s *State) Shown() string {
	if s.Paused {
		return event.Paused
	}
	return s.Status
}

// Runs reports whether an attempt runs.
func (s *State) Runs() bool { return s.running() != nil }

// resumes ends the pause of a task that has ended: its thread goes on with other work.
func (s *State) resumes() []core.Send {
	if !s.Paused {
		return nil
	}
	return []core.Send{{To: s.Session.Stream(), Command: belay.PauseTask{Op: event.Resumed, Task: s.Task, Reason: "the task has ended"}}}
}

// fail ends a task without success on a person's word.
func (d *Decider) fail(o belay.Order, c belay.FailTask) ([]core.Fact, []core.Send, error) {
	if err := d.s.Closable(); err != nil || d.s.Status == "failed" {
		return nil, nil, err
	}
	return d.s.over(nil, "failed", event.TaskFailed{TaskEnd: event.TaskEnd{Outcome: belay.Failed, Reason: c.Reason, By: o.Principal}})
}

// over adds the end of the task to facts.
func (s *State) over(facts []core.Fact, as string, end event.TaskOver) ([]core.Fact, []core.Send, error) {
	return append(facts, core.Fact{IDs: s.ids(), Data: end}), append(s.marks(as, end.End().Reason), s.resumes()...), nil
}

// unverified ends an attempt whose checks fail on which a person's word depended: the
// task stands as before.
func (s *State) unverified(a *Attempt, c belay.EndAttempt, facts []core.Fact) []core.Fact {
	var back event.Payload = event.TaskAccepted{}
	end := event.TaskEnd{Outcome: c.Outcome, Reason: c.Reason}
	switch {
	case s.Planned != nil && a.Before == "blocked":
		back = event.TaskBlocked{TaskEnd: end}
	case s.Planned != nil:
		back = *s.Planned
	case a.Before != "accepted":
		back = event.TaskFailed{TaskEnd: end}
	}
	return append(facts, core.Fact{IDs: s.ids(), Data: back})
}

// Closable reports why a person's word can't end the task.
func (s *State) Closable() error {
	switch {
	case s.Status == "":
		return belay.Errorf(belay.CodeNotFound, "no such task")
	case s.Subagent != "":
		return belay.Errorf(belay.CodeBadState, "task %s is an agent's", s.Task).WithHint("close_subagent ends the agent")
	case s.running() != nil || s.Again != nil:
		return belay.Errorf(belay.CodeBadState, "an attempt of task %s runs", s.Task).WithHint("cancel_task ends it first")
	case s.Status == "completed" || s.Status == "cancelled":
		return belay.Errorf(belay.CodeBadState, "task %s is %s", s.Task, s.Status).WithHint("create_task makes another")
	}
	return nil
}

// Ended reports whether nothing more happens to the task by itself.
func (s *State) Ended() bool {
	switch s.Status {
	case "completed", "failed", "cancelled", "timed_out", "lost":
		return true
	}
	return s.Status == "blocked" && s.Planned == nil
}

func (d *Decider) retry(c belay.RetryTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Status == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such task")
	}
	if s.running() != nil || s.Again != nil {
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is running", s.Task)
	}
	if s.Status == "completed" {
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is completed", s.Task).WithHint("belay run starts a new one")
	}
	if slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Turn == c.Turn }) {
		return nil, nil, belay.Errorf(belay.CodeIDConflict, "turn %s was an attempt of this task already", c.Turn).WithHint("bring a new turn id")
	}
	if s.Count == 0 {
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s was never started", s.Task).WithHint("start_task starts it")
	}
	ids := s.ids()
	facts := []core.Fact{{IDs: ids, Data: event.TaskRetrying{Reason: c.Reason}}}
	attempt, send := s.attempt(ids, len(facts), s.Count+1, s.Thread, belay.SubmitTurn{Turn: c.Turn, Text: s.Objective, Rules: c.Rules, Checks: s.Acceptance})
	return append(facts, attempt), append([]core.Send{send}, s.marks("running", c.Reason)...), nil
}

// attempt starts a run: the fact, and the turn for the thread.
func (s *State) attempt(ids belay.IDs, n, number int, thread belay.ThreadID, turn belay.SubmitTurn) (core.Fact, core.Send) {
	ids.Run = belay.RunID(belay.DeriveID(belay.PrefixRun, s.Stream, s.Seq+1+int64(n), 0))
	fact := core.Fact{IDs: ids, Data: event.TaskAttemptStarted{Number: number, Thread: thread, Turn: turn.Turn}}
	turn.Kind, turn.Task, turn.Run, turn.Again = belay.TurnUser, ids.Task, ids.Run, number > 1
	if turn.Rounds > 0 { // it only verifies
		turn.Kind = belay.TurnSystem
	}
	return fact, core.Send{To: thread.Stream(), Command: turn}
}

func (d *Decider) cancel(o belay.Order, c belay.CancelTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Planned != nil || s.Again != nil || s.Plan && s.Status == "accepted" {
		end := belay.AttemptEnd{Outcome: belay.Cancelled, Reason: c.Reason}
		return []core.Fact{{IDs: s.ids(), Data: event.TaskCancelRequested{By: cmp.Or(c.By, o.Principal), Reason: c.Reason}}, {IDs: s.ids(), Data: ended(end)}}, append(s.report(end), s.resumes()...), nil
	}
	if s.running() == nil {
		if s.Subagent != "" { // it ended by itself meanwhile
			return nil, nil, nil
		}
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s isn't running", s.Task)
	}
	if s.Cancel && (!s.Grace || c.Grace) {
		return nil, nil, nil
	}
	var sends []core.Send
	for _, a := range s.Attempts {
		if a.Outcome == "" {
			sends = append(sends, core.Send{To: s.Thread.Stream(), Command: belay.InterruptTurn{Turn: a.Turn, Reason: c.Reason, Grace: c.Grace}})
		}
	}
	return []core.Fact{{IDs: s.ids(), Data: event.TaskCancelRequested{By: cmp.Or(c.By, o.Principal), Reason: c.Reason, Grace: c.Grace}}}, sends, nil
}

func (d *Decider) endAttempt(c belay.EndAttempt, now time.Time) ([]core.Fact, []core.Send, error) {
	s := &d.s
	i := slices.IndexFunc(s.Attempts, func(a Attempt) bool { return a.Run == c.Run && a.Outcome == "" })
	if i < 0 {
		return nil, nil, nil // reported before
	}
	ids := s.ids()
	run := ids
	run.Run = c.Run
	var facts []core.Fact
	if c.Outcome == belay.Completed {
		facts = append(facts, core.Fact{IDs: run, Data: event.TaskAttemptCompleted{Summary: c.Summary}})
	} else {
		facts = append(facts, core.Fact{IDs: run, Data: event.TaskAttemptFailed{Outcome: c.Outcome, Reason: c.Reason, Code: c.Cause, Agent: c.Agent, Idle: s.Goal && !c.Acted}})
	}
	if slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Run != c.Run && a.Outcome == "" }) {
		return facts, nil, nil // it was told more, and goes on with that
	}
	if by := s.Attempts[i].By; by != "" && c.Outcome != belay.Completed {
		return s.unverified(&s.Attempts[i], c, facts), nil, nil
	} else if by != "" {
		return s.over(facts, "completed", event.TaskCompleted{TaskEnd: event.TaskEnd{Outcome: c.Outcome, Summary: c.Summary, By: by}})
	}
	if s.missed(&c) {
		return append(facts, core.Fact{IDs: ids, Data: ended(c.AttemptEnd)}), append(s.report(c.AttemptEnd), s.resumes()...), nil
	}
	if next := s.follows(c.AttemptEnd, now); next != nil {
		return append(facts, core.Fact{IDs: ids, Data: *next}), nil, nil
	}
	over := ended(c.AttemptEnd)
	if r := s.failure(c); r != nil {
		over = reported(over, r)
	}
	return append(facts, core.Fact{IDs: ids, Data: over}), append(s.report(c.AttemptEnd), s.resumes()...), nil
}

// follows is the attempt that follows one by itself: by the same agent, or by the next of
// those that try it after that one; nil: none does.
func (s *State) follows(end belay.AttemptEnd, now time.Time) *event.TaskRetrying {
	if s.Cancel {
		return nil
	}
	next := event.TaskRetrying{Reason: string(end.Outcome) + ": " + event.CutText(end.Reason, 500), At: now,
		Turn: belay.TurnID(belay.DeriveID(belay.PrefixTurn, s.Stream, s.Seq+1, 0))}
	wait, again := s.Retry.After(end.Outcome, s.Retried)
	switch other := s.Retry.Next(end.Outcome, s.Fell); {
	case again && s.Fell == 0:
		next.At = now.Add(wait)
	case other != nil:
		next.Agent, next.Rules = other.Agent, &other.Rules
	default:
		return nil
	}
	return &next
}

// marks tells the session how the task stands, if it planned it.
func (s *State) marks(status, reason string) []core.Send {
	if !s.Plan {
		return nil
	}
	return []core.Send{{To: s.Session.Stream(), Command: belay.MarkTask{Task: s.Task, Status: status, Reason: reason}}}
}

// report tells the session how the sub-agent ended whose task this is, or the task that
// it planned.
func (s *State) report(end belay.AttemptEnd) []core.Send {
	var marks []core.Send
	if s.Plan {
		marks = []core.Send{{To: s.Session.Stream(), Command: belay.MarkTask{Task: s.Task, Status: event.TaskStatus(ended(end)), Reason: end.Reason, Taint: end.Taint}}}
	}
	if s.Subagent == "" {
		return marks
	}
	return append(marks, core.Send{To: s.Session.Stream(), Command: belay.EndSubagent{Subagent: s.Subagent, End: end, Inputs: s.Inputs}})
}

// ended is the fact that a turn's outcome makes of the task.
func ended(c belay.AttemptEnd) event.TaskOver {
	e := event.TaskEnd{Outcome: c.Outcome, Summary: c.Summary, Output: c.Output, Reason: c.Reason}
	switch c.Outcome {
	case belay.Completed:
		return event.TaskCompleted{TaskEnd: e}
	case belay.Cancelled:
		return event.TaskCancelled{TaskEnd: e}
	case belay.TimedOut:
		return event.TaskTimedOut{TaskEnd: e}
	case belay.Lost:
		return event.TaskLost{TaskEnd: e}
	case belay.Blocked:
		return event.TaskBlocked{TaskEnd: e}
	}
	return event.TaskFailed{TaskEnd: e}
}

// Apply folds one fact.
func (d *Decider) Apply(e event.Envelope) {
	s := &d.s
	s.Seq, s.Stream = e.Seq, e.Stream
	if end, over := e.Data.(event.TaskOver); over {
		s.Paused, s.Again, s.Report = false, nil, end.End().Report
	}
	switch p := e.Data.(type) {
	case event.TaskPaused:
		s.Paused = true
	case event.TaskResumed:
		s.Paused = false
	case event.TaskCreated:
		s.Session, s.Task, s.Thread, s.Objective, s.Status = e.IDs.Session, e.IDs.Task, p.Thread, p.Objective, "accepted"
		s.Subagent, s.Parent = e.IDs.Subagent, e.IDs.ParentTask
		s.Goal = p.Kind == event.TaskGoal
		s.Title, s.Owner, s.Priority, s.Plan = p.Title, p.Owner, p.Priority, p.Planned
		s.Acceptance, s.Retry, s.Assignee, s.Constraints = p.Acceptance, p.Retry, p.Assignee, p.Constraints
		if p.Rules != nil {
			s.Rules = *p.Rules
		}
	case event.TaskDelegated:
		s.Subagent, s.Thread = e.IDs.Subagent, p.Thread
	case event.TaskAccepted:
		s.Status = "accepted"
	case event.TaskUpdated:
		s.updated(p)
	case event.TaskQueued:
		s.Status, s.Planned, s.Inputs = "queued", &p, max(s.Inputs, p.Input)
		if p.Thread != "" {
			s.Thread = p.Thread
		}
		if p.Rules != nil {
			s.Rules = *p.Rules
		}
	case event.TaskStarted:
		s.Status, s.Planned, s.Note = "running", nil, p.Note
	case event.TaskRetrying:
		s.Status, s.Cancel = "retrying", false
		if p.Turn != "" {
			s.Again = &p
		}
		switch {
		case p.Rules != nil:
			s.Rules = *p.Rules
			s.Fell++
		case p.Turn != "":
			s.Retried++
		}
	case event.TaskCancelRequested:
		s.Status, s.Cancel, s.Grace = "cancelling", true, p.Grace
	case event.TaskAttemptStarted:
		before := s.Status
		s.Again = nil
		s.Status, s.Cancel = "running", false
		s.Count, s.Inputs = p.Number, max(s.Inputs, p.Input)
		a := Attempt{Run: e.IDs.Run, Turn: p.Turn}
		if p.Purpose == event.PurposeVerify {
			a.By, a.Before = p.By, before
		}
		s.Attempts = append(s.Attempts, a)
		if n := len(s.Attempts); n > maxAttempts {
			s.Attempts = s.Attempts[n-maxAttempts:]
		}
	case event.TaskAttemptCompleted:
		s.close(e.IDs.Run, event.TaskAttemptFailed{Outcome: belay.Completed})
	case event.TaskAttemptFailed:
		s.close(e.IDs.Run, p)
		if s.Idle++; !p.Idle {
			s.Idle = 0
		}
	case event.TaskCompleted:
		s.Status, s.Planned = "completed", nil
	case event.TaskFailed:
		s.Status, s.Planned = "failed", nil
	case event.TaskCancelled:
		s.Status, s.Planned = "cancelled", nil
	case event.TaskTimedOut:
		s.Status = "timed_out"
	case event.TaskLost:
		s.Status = "lost"
	case event.TaskBlocked:
		s.Status = "blocked"
	}
}

func (s *State) updated(p event.TaskUpdated) {
	s.Title, s.Owner = cmp.Or(p.Title, s.Title), cmp.Or(p.Owner, s.Owner)
	if p.Objective != nil {
		s.Objective = *p.Objective
	}
	if p.Priority != nil {
		s.Priority = *p.Priority
	}
	if p.Acceptance != nil {
		s.Acceptance = *p.Acceptance
	}
	if p.Assignee != nil {
		s.Assignee = *p.Assignee
	}
	if p.Constraints != nil {
		s.Constraints = *p.Constraints
	}
	if p.Retry != nil {
		s.Retry = *p.Retry
	}
}

func (s *State) close(run belay.RunID, how event.TaskAttemptFailed) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Run == run {
			a.Outcome, a.Agent, a.Code, a.Reason = how.Outcome, how.Agent, how.Code, event.CutText(how.Reason, maxTriedReason)
		}
	}
}

// running is the newest attempt that hasn't ended.
func (s *State) running() *Attempt {
	for i := range slices.Backward(s.Attempts) {
		if s.Attempts[i].Outcome == "" {
			return &s.Attempts[i]
		}
	}
	return nil
}

func (s *State) ids() belay.IDs {
	return belay.IDs{Session: s.Session, Task: s.Task, ParentTask: s.Parent, Subagent: s.Subagent}
}

// Next begins an attempt that follows by itself, when its time has come.
func (d *Decider) Next(now time.Time) (rd core.Ready) {
	s := &d.s
	switch {
	case s.Again == nil || s.Paused:
	case now.Before(s.Again.At):
		rd.Effects, rd.Wake = []core.Effect{core.Timer{Name: "retry/" + string(s.Again.Turn)}}, s.Again.At
	default:
		attempt, send := s.attempt(s.ids(), 0, s.Count+1, s.Thread, belay.SubmitTurn{Turn: s.Again.Turn, Text: s.again(), Rules: s.Rules, Checks: s.Acceptance, Note: s.Note, Rest: true})
		rd.Decided, rd.Sends = []core.Fact{attempt}, []core.Send{send}
	}
	return rd
}

// Missing names nothing: a task needs no content.
func (d *Decider) Missing() []belay.Ref { return nil }

// Supply takes nothing in.
func (d *Decider) Supply(belay.Ref, []byte) error { return nil }

// InFlight reports that nothing runs.
func (d *Decider) InFlight() bool { return false }

// Save is the state as bytes.
func (d *Decider) Save() ([]byte, error) { return json.Marshal(&d.s) }

// Load takes the state from bytes.
func (d *Decider) Load(data []byte) error { return json.Unmarshal(data, &d.s) }
