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
const Version = "task/4"

// maxAttempts bounds the attempts remembered in the state; all are in the log.
const maxAttempts = 32

// State is a task.
type State struct {
	Stream    belay.StreamID  `json:"stream"`
	Session   belay.SessionID `json:"session"`
	Task      belay.TaskID    `json:"task"`
	Thread    belay.ThreadID  `json:"thread"`
	Objective belay.Content   `json:"objective,omitzero"`
	Status    string          `json:"status"` // of the standard: accepted, running, completed, …
	Seq       int64           `json:"seq"`
	Attempts  []Attempt       `json:"attempts,omitempty"`
	Count     int             `json:"count"` // attempts ever
	Cancel    bool            `json:"cancel,omitempty"`
	Rules     belay.Ref       `json:"rules,omitzero"`

	Subagent belay.SubagentID  `json:"subagent,omitempty"` // that does it
	Parent   belay.TaskID      `json:"parent,omitempty"`
	Planned  *event.TaskQueued `json:"planned,omitempty"` // an attempt that waits to be started
	Inputs   int               `json:"inputs,omitempty"`  // texts that were sent to the sub-agent

	Title    string `json:"title,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Priority int    `json:"priority,omitempty"`
	Plan     bool   `json:"plan,omitempty"` // the session starts it, and is told how it ends
}

// Attempt is one run.
type Attempt struct {
	Run     belay.RunID   `json:"run"`
	Turn    belay.TurnID  `json:"turn"`
	Outcome belay.Outcome `json:"outcome,omitempty"` // empty while it runs
}

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
		return d.close(o, "completed", belay.AttemptEnd{Outcome: belay.Completed, Summary: c.Summary})
	case belay.FailTask:
		return d.close(o, "failed", belay.AttemptEnd{Outcome: belay.Failed, Reason: c.Reason})
	case belay.CancelTask:
		return d.cancel(o, c)
	case belay.EndAttempt:
		return d.endAttempt(c)
	}
	return nil, nil, belay.Errorf(belay.CodeBadCommand, "a task doesn't take %s", belay.CommandName(o.Command))
}

func (d *Decider) create(o belay.Order, c belay.CreateTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Status != "" {
		return nil, nil, nil
	}
	ids := belay.IDs{Session: o.Session, Task: belay.TaskID(o.Stream.ID()), ParentTask: c.Parent, Subagent: c.Subagent}
	created := event.TaskCreated{Objective: c.Objective, Kind: "agent", Thread: c.Thread, By: o.Principal, Template: c.Template}
	if p := c.Plan; p != nil {
		created.Planned, created.Title, created.Owner, created.Priority = true, p.Title, p.Owner, p.Priority
		return []core.Fact{{IDs: ids, Data: created}, {IDs: ids, Data: event.TaskAccepted{By: o.Principal}}}, nil, nil
	}
	facts := []core.Fact{{IDs: ids, Data: created}}
	if c.Wait {
		return append(facts, core.Fact{IDs: ids, Data: event.TaskQueued{Reason: "capacity", Turn: c.Turn, Rules: &c.Rules, Priority: c.Priority}}), nil, nil
	}
	facts = append(facts, core.Fact{IDs: ids, Data: event.TaskStarted{}})
	attempt, send := s.attempt(ids, len(facts), 1, c.Thread, belay.SubmitTurn{Turn: c.Turn, Text: c.Objective, Rules: c.Rules, Queue: c.Queue, Place: c.Place, Priority: c.Priority, Budget: c.Budget})
	return append(facts, attempt), []core.Send{send}, nil
}

// start begins an attempt that waited, or says of a planned task what that is. One that
// was cancelled meanwhile doesn't begin.
func (d *Decider) start(c belay.StartTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	p := s.Planned
	if c.Turn != "" {
		if p != nil || s.Status != "accepted" {
			return nil, nil, nil
		}
		return []core.Fact{{IDs: s.ids(), Data: event.TaskQueued{Reason: c.Reason, Thread: c.Thread, Turn: c.Turn, Rules: &c.Rules, Priority: s.Priority}}}, nil, nil
	}
	if p == nil {
		return nil, nil, nil
	}
	facts := []core.Fact{{IDs: s.ids(), Data: event.TaskStarted{}}}
	turn := belay.SubmitTurn{Turn: p.Turn, Text: s.Objective, Rules: *p.Rules, Priority: p.Priority, Budget: c.Budget, Taint: p.Taint}
	if p.Text != nil {
		turn.Text = *p.Text
	}
	if p.Limits != nil {
		turn.Limits = *p.Limits
	}
	attempt, send := s.attempt(s.ids(), len(facts), s.Count+1, s.Thread, turn)
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
		queued := event.TaskQueued{Reason: "capacity", Turn: c.Turn, Rules: &c.Rules, Priority: c.Priority, Input: c.Input, Text: &c.Text, Taint: c.Taint, Limits: &c.Limits}
		return append(facts, core.Fact{IDs: s.ids(), Data: queued}), nil, nil
	}
	attempt, send := s.attempt(s.ids(), len(facts), s.Count+1, s.Thread, belay.SubmitTurn{Turn: c.Turn, Text: c.Text, Rules: c.Rules, Queue: c.Queue, Priority: c.Priority,
		Budget: c.Budget, Taint: c.Taint, Limits: c.Limits})
	started := attempt.Data.(event.TaskAttemptStarted)
	started.Input = c.Input
	attempt.Data = started
	return append(facts, attempt), []core.Send{send}, nil
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
	switch {
	case s.Status == "":
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such task")
	case !changed:
		return nil, nil, nil
	case s.ended():
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
	case s.ended():
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is %s", s.Task, s.Status).WithHint("retry_task starts another attempt, create_task another task")
	}
	return []core.Fact{{IDs: s.ids(), Data: event.TaskProgress{By: o.Principal, Phase: c.Phase, Summary: belay.Content{Text: c.Summary}, Done: c.Done, Total: c.Total}}}, nil, nil
}

// close ends a task on a person's word. No attempt of it may run.
func (d *Decider) close(o belay.Order, as string, end belay.AttemptEnd) ([]core.Fact, []core.Send, error) {
	s := &d.s
	switch {
	case s.Status == "":
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such task")
	case s.Status == as:
		return nil, nil, nil
	case s.Subagent != "":
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is an agent's", s.Task).WithHint("close_subagent ends the agent")
	case s.running() != nil:
		return nil, nil, belay.Errorf(belay.CodeBadState, "an attempt of task %s runs", s.Task).WithHint("cancel_task ends it first")
	case s.Status == "completed" || s.Status == "cancelled":
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is %s", s.Task, s.Status).WithHint("create_task makes another")
	}
	p := ended(end)
	switch e := p.(type) {
	case event.TaskCompleted:
		e.By = o.Principal
		p = e
	case event.TaskFailed:
		e.By = o.Principal
		p = e
	}
	return []core.Fact{{IDs: s.ids(), Data: p}}, s.marks(as, end.Reason), nil
}

// ended reports whether nothing more happens to the task by itself.
func (s *State) ended() bool {
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
	if s.running() != nil {
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
	attempt, send := s.attempt(ids, len(facts), s.Count+1, s.Thread, belay.SubmitTurn{Turn: c.Turn, Text: s.Objective, Rules: c.Rules})
	return append(facts, attempt), append([]core.Send{send}, s.marks("running", c.Reason)...), nil
}

// attempt starts a run: the fact, and the turn for the thread.
func (s *State) attempt(ids belay.IDs, n, number int, thread belay.ThreadID, turn belay.SubmitTurn) (core.Fact, core.Send) {
	ids.Run = belay.RunID(belay.DeriveID(belay.PrefixRun, s.Stream, s.Seq+1+int64(n), 0))
	fact := core.Fact{IDs: ids, Data: event.TaskAttemptStarted{Number: number, Thread: thread, Turn: turn.Turn}}
	turn.Kind, turn.Task, turn.Run = belay.TurnUser, ids.Task, ids.Run
	return fact, core.Send{To: thread.Stream(), Command: turn}
}

func (d *Decider) cancel(o belay.Order, c belay.CancelTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Planned != nil || s.Plan && s.Status == "accepted" {
		end := belay.AttemptEnd{Outcome: belay.Cancelled, Reason: c.Reason}
		return []core.Fact{{IDs: s.ids(), Data: event.TaskCancelRequested{By: o.Principal, Reason: c.Reason}}, {IDs: s.ids(), Data: ended(end)}}, s.report(end), nil
	}
	if s.running() == nil {
		if s.Subagent != "" { // it ended by itself meanwhile
			return nil, nil, nil
		}
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s isn't running", s.Task)
	}
	if s.Cancel {
		return nil, nil, nil
	}
	var sends []core.Send
	for _, a := range s.Attempts {
		if a.Outcome == "" {
			sends = append(sends, core.Send{To: s.Thread.Stream(), Command: belay.InterruptTurn{Turn: a.Turn, Reason: c.Reason}})
		}
	}
	return []core.Fact{{IDs: s.ids(), Data: event.TaskCancelRequested{By: o.Principal, Reason: c.Reason}}}, sends, nil
}

func (d *Decider) endAttempt(c belay.EndAttempt) ([]core.Fact, []core.Send, error) {
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
		facts = append(facts, core.Fact{IDs: run, Data: event.TaskAttemptFailed{Outcome: c.Outcome, Reason: c.Reason}})
	}
	if slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Run != c.Run && a.Outcome == "" }) {
		return facts, nil, nil // it was told more, and goes on with that
	}
	return append(facts, core.Fact{IDs: ids, Data: ended(c.AttemptEnd)}), s.report(c.AttemptEnd), nil
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
	if s.Subagent == "" {
		return s.marks(event.TaskStatus(ended(end)), end.Reason)
	}
	return []core.Send{{To: s.Session.Stream(), Command: belay.EndSubagent{Subagent: s.Subagent, End: end, Inputs: s.Inputs}}}
}

// ended is the fact that a turn's outcome makes of the task.
func ended(c belay.AttemptEnd) event.TaskOver {
	e := event.TaskEnd{Outcome: c.Outcome, Summary: c.Summary, Reason: c.Reason}
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
	switch p := e.Data.(type) {
	case event.TaskCreated:
		s.Session, s.Task, s.Thread, s.Objective, s.Status = e.IDs.Session, e.IDs.Task, p.Thread, p.Objective, "accepted"
		s.Subagent, s.Parent = e.IDs.Subagent, e.IDs.ParentTask
		s.Title, s.Owner, s.Priority, s.Plan = p.Title, p.Owner, p.Priority, p.Planned
	case event.TaskUpdated:
		s.updated(p)
	case event.TaskQueued:
		s.Status, s.Planned, s.Inputs = "queued", &p, max(s.Inputs, p.Input)
		if p.Thread != "" {
			s.Thread = p.Thread
		}
	case event.TaskStarted:
		s.Status, s.Planned = "running", nil
	case event.TaskRetrying:
		s.Status, s.Cancel = "retrying", false
	case event.TaskCancelRequested:
		s.Status, s.Cancel = "cancelling", true
	case event.TaskAttemptStarted:
		s.Status, s.Cancel = "running", false
		s.Count, s.Inputs = p.Number, max(s.Inputs, p.Input)
		s.Attempts = append(s.Attempts, Attempt{Run: e.IDs.Run, Turn: p.Turn})
		if n := len(s.Attempts); n > maxAttempts {
			s.Attempts = s.Attempts[n-maxAttempts:]
		}
	case event.TaskAttemptCompleted:
		s.close(e.IDs.Run, belay.Completed)
	case event.TaskAttemptFailed:
		s.close(e.IDs.Run, p.Outcome)
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
}

func (s *State) close(run belay.RunID, o belay.Outcome) {
	for i := range s.Attempts {
		if s.Attempts[i].Run == run {
			s.Attempts[i].Outcome = o
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

// Next wants nothing: a task acts on commands only.
func (d *Decider) Next(time.Time) core.Ready { return core.Ready{} }

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
