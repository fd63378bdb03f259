package server

import (
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/problem"
)

// PromoteQueuedTurn is what promote_queued_turn takes.
type PromoteQueuedTurn struct {
	Session  belay.SessionID `json:"sessionId"`
	Thread   belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turn     belay.TurnID    `json:"queuedTurnId"`
	Position int             `json:"position,omitempty" jsonschema:"its place in the row, from 1; the front when it is left out"`
}

func promoteQueuedTurn(ctx context.Context, r *request, in *PromoteQueuedTurn) (*CommandResult, error) {
	if err := named("queuedTurnId", string(in.Turn)); err != nil {
		return nil, err
	}
	if in.Position < 0 {
		return nil, problem.At("position", belay.Errorf(belay.CodeBadCommand, "places count from 1").WithHint("leave it out for the front"))
	}
	th, err := r.steered(ctx, in.Session, in.Thread, in.Turn, "")
	if err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, th.Thread.Stream(), belay.PromoteTurn{Turn: in.Turn, Position: in.Position})
	return with(told, err, th.Thread, in.Turn)
}

// ReorderQueuedTurns is what reorder_queued_turns takes.
type ReorderQueuedTurns struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turns   []belay.TurnID  `json:"queuedTurnIds" jsonschema:"all turns that wait, in the order they are to run"`
}

func reorderQueuedTurns(ctx context.Context, r *request, in *ReorderQueuedTurns) (*CommandResult, error) {
	if len(in.Turns) == 0 || len(in.Turns) > belay.MaxQueued {
		return nil, problem.At("queuedTurnIds", belay.Errorf(belay.CodeBadCommand, "%d turns are named; from 1 to %d can be", len(in.Turns), belay.MaxQueued).WithHint("get_thread_read lists those that wait: name them all"))
	}
	for _, t := range in.Turns {
		if err := named("queuedTurnIds", string(t)); err != nil {
			return nil, err
		}
	}
	th, err := r.steered(ctx, in.Session, in.Thread, "", "")
	if err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, th.Thread.Stream(), belay.ReorderTurns{Order: in.Turns})
	if belay.CodeOf(err) == belay.CodeConflict {
		err = queueError("queuedTurnIds", err)
	}
	return with(told, err, th.Thread, "")
}

// ConfigureQueue is what configure_queue takes. What is left out is the default.
type ConfigureQueue struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Mode    string          `json:"mode,omitempty" jsonschema:"enqueue (default), steer, collect, interrupt, rollback, reject"`
	Cap     int             `json:"cap,omitempty" jsonschema:"turns that may wait, 1 to 100; 100"`
	Drop    string          `json:"drop,omitempty" jsonschema:"which turn doesn't run when more come: new (default), old, summarise"`
	Quiet   string          `json:"quiet,omitempty" jsonschema:"of collect: how long nothing must come, such as 2s; 500ms"`
}

func configureQueue(ctx context.Context, r *request, in *ConfigureQueue) (*CommandResult, error) {
	q := belay.Queueing{Mode: belay.QueueMode(in.Mode), Cap: in.Cap, Drop: belay.QueueDrop(in.Drop)}
	if in.Quiet != "" {
		quiet, err := time.ParseDuration(in.Quiet)
		if err != nil {
			return nil, problem.At("quiet", belay.Errorf(belay.CodeBadCommand, "%q is no length of time", problem.Shown(in.Quiet)).WithHint("2s or 500ms"))
		}
		q.Quiet = belay.Duration(quiet)
	}
	if err := q.Check(); err != nil {
		return nil, queueError("", err)
	}
	th, err := r.steered(ctx, in.Session, in.Thread, "", "")
	if err != nil {
		return nil, err
	}
	told, err := r.send(ctx, in.Session, th.Thread.Stream(), belay.ConfigureQueue{Queue: q})
	return with(told, err, th.Thread, "")
}

// queueError adds the field to an error of a policy; field is its name here when
// it isn't the policy's.
func queueError(field string, err error) error {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok {
		return err
	}
	said := *e
	if said.Where = ""; field == "" {
		field = e.Where
	}
	return problem.At(field, &said)
}

// QueuedShown is a turn that waits.
type QueuedShown struct {
	Turn belay.TurnID    `json:"turnId"`
	Task belay.TaskID    `json:"taskId,omitempty"`
	Run  belay.RunID     `json:"runId,omitempty"`
	Mode belay.QueueMode `json:"mode"`
	Into belay.TurnID    `json:"into,omitempty"` // steer: the turn to steer
	Text string          `json:"text,omitempty"` // its first line
}

// queuedTurns are the turns of a thread that wait, in order.
func queuedTurns(th *thread.State) []QueuedShown {
	out := make([]QueuedShown, 0, len(th.Queue))
	for _, q := range th.Queue {
		mode := q.Mode
		if mode == "" {
			mode = belay.QueueEnqueue
		}
		out = append(out, QueuedShown{Turn: q.Turn, Task: q.Task, Run: q.Run, Mode: mode, Into: q.Into, Text: q.Line})
	}
	return out
}
