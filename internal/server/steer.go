package server

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/problem"
)

// InterruptTurn is what interrupt_turn takes.
type InterruptTurn struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turn    belay.TurnID    `json:"turnId,omitempty" jsonschema:"whichever runs when it is left out"`
	Reason  string          `json:"reason,omitempty"`
}

func interruptTurn(ctx context.Context, r *request, in *InterruptTurn) (*CommandResult, error) {
	th, err := r.steered(ctx, in.Session, in.Thread, in.Turn, in.Reason)
	if err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, th.Thread.Stream(), belay.InterruptTurn{Turn: in.Turn, Reason: in.Reason})
	return with(told, err, th.Thread, in.Turn)
}

// steered checks what commands about a thread have in common.
func (r *request) steered(ctx context.Context, sid belay.SessionID, tid belay.ThreadID, turn belay.TurnID, reason string) (*thread.State, error) {
	for _, err := range []error{id("threadId", string(tid)), id("turnId", string(turn)), text("reason", reason, maxReason)} {
		if err != nil {
			return nil, err
		}
	}
	s, err := r.known(ctx, sid)
	if err != nil {
		return nil, err
	}
	return r.threadOf(ctx, s, tid)
}

func with(told *CommandResult, err error, th belay.ThreadID, turn belay.TurnID) (*CommandResult, error) {
	if err != nil {
		return nil, err
	}
	told.Thread, told.Turn = th, turn
	return told, nil
}

// RemoveQueuedTurn is what remove_queued_turn takes.
type RemoveQueuedTurn struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turn    belay.TurnID    `json:"queuedTurnId"`
	Reason  string          `json:"reason,omitempty"`
}

func removeQueuedTurn(ctx context.Context, r *request, in *RemoveQueuedTurn) (*CommandResult, error) {
	if err := named("queuedTurnId", string(in.Turn)); err != nil {
		return nil, err
	}
	th, err := r.steered(ctx, in.Session, in.Thread, in.Turn, in.Reason)
	if err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, th.Thread.Stream(), belay.InterruptTurn{Turn: in.Turn, Reason: in.Reason, Queued: true})
	return with(told, err, th.Thread, in.Turn)
}

// ResumeThread is what resume_thread takes.
type ResumeThread struct {
	Session  belay.SessionID `json:"sessionId"`
	Thread   belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Settings *SettingsInput  `json:"settings,omitempty" jsonschema:"settings from now on, for the unfinished turn too"`
}

// resumeThread continues with an unfinished turn. One that isn't driven is
// driven by the server anyway; with settings the turn continues under other
// rules.
func resumeThread(ctx context.Context, r *request, in *ResumeThread) (*CommandResult, error) {
	th, err := r.steered(ctx, in.Session, in.Thread, "", "")
	if err != nil {
		return nil, err
	}
	if th.Turn == nil && len(th.Queue) == 0 {
		return nil, belay.Errorf(belay.CodeBadState, "the thread has no turn to go on with").At(string(th.Thread)).WithHint("retry_task makes another attempt, submit_turn gives it something else to do")
	}
	if in.Settings == nil {
		r.drives.enqueue(in.Session, 0)
		told := &CommandResult{Status: done, Session: in.Session, Thread: th.Thread, Turn: turnOf(th)}
		return told, r.end(ctx, told)
	}
	s, err := r.known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	if err := r.mayWiden(ctx, *in.Settings, s); err != nil {
		return nil, err
	}
	settings, err := r.Wiring.Settings(ctx, s.Workspace, &s.Settings, *in.Settings)
	if err != nil {
		return nil, problem.At("settings", err)
	}
	rules, err := r.Wiring.Rules(ctx, r.by.String(), s.Workspace, settings)
	if err != nil {
		return nil, problem.At("settings", err)
	}
	update := r.order(belay.CommandID(belay.NewID(belay.PrefixCommand)), in.Session, in.Session.Stream(), belay.UpdateSession{Settings: settings})
	if err := r.Store.Enqueue(ctx, update); err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, th.Thread.Stream(), belay.ResumeThread{Rules: rules, Limits: &settings.Limits})
	return with(told, err, th.Thread, turnOf(th))
}

func turnOf(th *thread.State) belay.TurnID {
	switch {
	case th.Turn != nil:
		return th.Turn.Turn
	case len(th.Queue) > 0:
		return th.Queue[0].Turn
	}
	return ""
}

// CancelTask is what cancel_task takes.
type CancelTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Reason  string          `json:"reason,omitempty"`
}

func cancelTask(ctx context.Context, r *request, in *CancelTask) (*CommandResult, error) {
	if err := text("reason", in.Reason, maxReason); err != nil {
		return nil, err
	}
	if _, err := r.task(ctx, in.Session, in.Task); err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, in.Task.Stream(), belay.CancelTask{Reason: in.Reason})
	if err == nil {
		told.Task = in.Task
	}
	return told, err
}

// RetryTask is what retry_task takes.
type RetryTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Turn    belay.TurnID    `json:"turnId,omitempty" jsonschema:"the caller's id of the new turn"`
	Reason  string          `json:"reason,omitempty"`
}

func retryTask(ctx context.Context, r *request, in *RetryTask) (*CommandResult, error) {
	for _, err := range []error{id("turnId", string(in.Turn)), text("reason", in.Reason, maxReason)} {
		if err != nil {
			return nil, err
		}
	}
	s, err := r.known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	t, err := r.task(ctx, in.Session, in.Task)
	if err != nil {
		return nil, err
	}
	if in.Turn == "" {
		in.Turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
		if r.key != "" {
			in.Turn = belay.TurnID(r.keyed(belay.PrefixTurn))
		}
	}
	if slices.ContainsFunc(t.Attempts, func(a task.Attempt) bool { return a.Turn == in.Turn }) && r.key != "" { // repeated
		told := &CommandResult{Status: done, Repeated: true, Session: in.Session, Task: in.Task, Thread: t.Thread, Turn: in.Turn}
		return told, r.end(ctx, told)
	}
	rules, err := r.Wiring.Rules(ctx, r.by.String(), s.Workspace, s.Settings)
	if err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, in.Task.Stream(), belay.RetryTask{Turn: in.Turn, Reason: in.Reason, Rules: rules})
	if err == nil {
		told.Task = in.Task
	}
	return with(told, err, t.Thread, in.Turn)
}

// task is a task of a session that there is.
func (r *request) task(ctx context.Context, sid belay.SessionID, tid belay.TaskID) (*task.State, error) {
	for _, err := range []error{named("sessionId", string(sid)), named("taskId", string(tid))} {
		if err != nil {
			return nil, err
		}
	}
	d, _, _, err := engine.Load(ctx, r.Store, tid.Stream())
	if err != nil {
		return nil, err
	}
	s := d.(*task.Decider).State()
	if s.Task == "" || s.Session != sid {
		return nil, problem.At("taskId", belay.Errorf(belay.CodeNotFound, "the session has no task %s", tid).At(string(sid)).WithHint("list_tasks lists them"))
	}
	return s, nil
}
