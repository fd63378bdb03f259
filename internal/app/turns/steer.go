package turns

import (
	"cmp"
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
)

// InterruptTurn is what interrupt_turn takes.
type InterruptTurn struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turn    belay.TurnID    `json:"turnId,omitempty" jsonschema:"whichever runs when it is left out"`
	Reason  string          `json:"reason,omitempty"`
}

// Interrupt ends the running turn, or the one that is named.
func Interrupt(ctx context.Context, r *app.Call, in *InterruptTurn) (*app.Result, error) {
	return toThread(ctx, r, in.Session, in.Thread, in.Turn, in.Reason, belay.InterruptTurn{Turn: in.Turn, Reason: in.Reason})
}

// toThread brings a command to a thread of a session, the newest where none is named.
// turn and reason are those of the command, if it has them.
func toThread(ctx context.Context, r *app.Call, sid belay.SessionID, tid belay.ThreadID, turn belay.TurnID, reason string, c belay.Command) (*app.Result, error) {
	th, err := steered(ctx, r, sid, tid, turn, reason)
	if err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, sid, th.Thread.Stream(), c)
	return app.With(told, err, th.Thread, turn)
}

// steered checks what commands about a thread have in common.
func steered(ctx context.Context, r *app.Call, sid belay.SessionID, tid belay.ThreadID, turn belay.TurnID, reason string) (*thread.State, error) {
	if err := cmp.Or(input.ID("threadId", string(tid)), input.ID("turnId", string(turn)), input.Text("reason", reason, app.MaxReason)); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, sid)
	if err != nil {
		return nil, err
	}
	return r.ThreadOf(ctx, s, tid)
}

// RemoveQueuedTurn is what remove_queued_turn takes.
type RemoveQueuedTurn struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turn    belay.TurnID    `json:"queuedTurnId"`
	Reason  string          `json:"reason,omitempty"`
}

// Remove takes out a turn that waits.
func Remove(ctx context.Context, r *app.Call, in *RemoveQueuedTurn) (*app.Result, error) {
	if err := input.Named("queuedTurnId", string(in.Turn)); err != nil {
		return nil, err
	}
	return toThread(ctx, r, in.Session, in.Thread, in.Turn, in.Reason, belay.InterruptTurn{Turn: in.Turn, Reason: in.Reason, Queued: true})
}

// ResumeThread is what resume_thread takes.
type ResumeThread struct {
	Session  belay.SessionID    `json:"sessionId"`
	Thread   belay.ThreadID     `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Settings *app.SettingsInput `json:"settings,omitempty" jsonschema:"settings from now on, for the unfinished turn too"`
}

// resumeThread continues with an unfinished turn. One that isn't driven is
// driven by the server anyway; with settings the turn continues under other
// rules.
func resumeThread(ctx context.Context, r *app.Call, in *ResumeThread) (*app.Result, error) {
	th, err := steered(ctx, r, in.Session, in.Thread, "", "")
	if err != nil {
		return nil, err
	}
	if th.Turn == nil && len(th.Queue) == 0 {
		return nil, belay.Errorf(belay.CodeBadState, "the thread has no turn to go on with").At(string(th.Thread)).WithHint("retry_task makes another attempt, submit_turn gives it something else to do")
	}
	if in.Settings == nil {
		r.Drives.Enqueue(in.Session, 0)
		told := &app.Result{Status: app.Done, Session: in.Session, Thread: th.Thread, Turn: turnOf(th)}
		return told, r.End(ctx, told)
	}
	return updated(ctx, r, in.Session, th, *in.Settings)
}

// UpdateThread is what update_thread takes.
type UpdateThread struct {
	Session  belay.SessionID   `json:"sessionId"`
	Thread   belay.ThreadID    `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Settings app.SettingsInput `json:"settings" jsonschema:"what changes: the mode, the model, the effort; what is left out stays"`
}

// Update changes the settings of a session. Its running turn continues under them
// from the next call that is judged and the next request to the model.
func Update(ctx context.Context, r *app.Call, in *UpdateThread) (*app.Result, error) {
	th, err := steered(ctx, r, in.Session, in.Thread, "", "")
	if err != nil {
		return nil, err
	}
	return updated(ctx, r, in.Session, th, in.Settings)
}

// updated gives a session other settings, and its thread if a turn of it runs.
func updated(ctx context.Context, r *app.Call, id belay.SessionID, th *thread.State, c app.SettingsInput) (*app.Result, error) {
	s, err := r.Known(ctx, id)
	if err != nil {
		return nil, err
	}
	if th.Depth > 0 {
		return nil, input.At("threadId", belay.Errorf(belay.CodeBadState, "%s is a sub-agent's: it has the settings of its parent", th.Thread).WithHint("change those of the session's main thread"))
	}
	if err := r.MayWiden(ctx, c, s); err != nil {
		return nil, err
	}
	settings, err := r.Workspaces.Settings(ctx, s.Workspace, &s.Settings, c)
	if err != nil {
		return nil, input.At("settings", err)
	}
	rules, err := r.Workspaces.Rules(ctx, r.By.String(), s.Workspace, settings)
	if err != nil {
		return nil, input.At("settings", err)
	}
	update, err := r.Update(ctx, s, settings)
	if err != nil {
		return nil, input.At("settings.budget", err)
	}
	if th.Turn == nil {
		told, err := r.Send(ctx, id, id.Stream(), update)
		return app.With(told, err, th.Thread, "")
	}
	if err := r.Store.Enqueue(ctx, r.Order(belay.CommandID(belay.NewID(belay.PrefixCommand)), id, id.Stream(), update)); err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, id, th.Thread.Stream(), belay.ResumeThread{Rules: rules, Limits: &settings.Limits})
	return app.With(told, err, th.Thread, turnOf(th))
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

// RetryTask is what retry_task takes.
type RetryTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Turn    belay.TurnID    `json:"turnId,omitempty" jsonschema:"the caller's id of the new turn"`
	Reason  string          `json:"reason,omitempty"`
}

// Retry starts another attempt of a task that has ended without success.
func Retry(ctx context.Context, r *app.Call, in *RetryTask) (*app.Result, error) {
	if err := cmp.Or(input.ID("turnId", string(in.Turn)), input.Text("reason", in.Reason, app.MaxReason)); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	t, err := r.Task(ctx, in.Session, in.Task)
	if err != nil {
		return nil, err
	}
	if in.Turn == "" {
		in.Turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
		if r.Key != "" {
			in.Turn = belay.TurnID(r.Keyed(belay.PrefixTurn))
		}
	}
	if slices.ContainsFunc(t.Attempts, func(a task.Attempt) bool { return a.Turn == in.Turn }) && r.Key != "" { // repeated
		told := &app.Result{Status: app.Done, Repeated: true, Session: in.Session, Task: in.Task, Thread: t.Thread, Turn: in.Turn}
		return told, r.End(ctx, told)
	}
	if t.Subagent != "" { // under its own rules, and within the limits of agents
		return r.ToSubagent(ctx, s, t.Subagent, in.Turn, t.Objective, false)
	}
	rules, err := r.Workspaces.Rules(ctx, r.By.String(), s.Workspace, s.Settings)
	if err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, in.Session, in.Task.Stream(), belay.RetryTask{Turn: in.Turn, Reason: in.Reason, Rules: rules})
	if err == nil {
		told.Task = in.Task
	}
	return app.With(told, err, t.Thread, in.Turn)
}
