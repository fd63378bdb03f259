package turns

import (
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
)

// PromoteQueuedTurn is what promote_queued_turn takes.
type PromoteQueuedTurn struct {
	Session  belay.SessionID `json:"sessionId"`
	Thread   belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turn     belay.TurnID    `json:"queuedTurnId"`
	Position int             `json:"position,omitempty" jsonschema:"its place in the row, from 1; the front when it is left out"`
}

// Promote moves a turn that waits to another place.
func Promote(ctx context.Context, r *app.Call, in *PromoteQueuedTurn) (*app.Result, error) {
	if err := input.Named("queuedTurnId", string(in.Turn)); err != nil {
		return nil, err
	}
	if in.Position < 0 {
		return nil, input.At("position", belay.Errorf(belay.CodeBadCommand, "places count from 1").WithHint("leave it out for the front"))
	}
	return toThread(ctx, r, in.Session, in.Thread, in.Turn, "", belay.PromoteTurn{Turn: in.Turn, Position: in.Position})
}

// ReorderQueuedTurns is what reorder_queued_turns takes.
type ReorderQueuedTurns struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Turns   []belay.TurnID  `json:"queuedTurnIds" jsonschema:"all turns that wait, in the order they are to run"`
}

// Reorder puts the turns that wait into another order.
func Reorder(ctx context.Context, r *app.Call, in *ReorderQueuedTurns) (*app.Result, error) {
	if len(in.Turns) == 0 || len(in.Turns) > belay.MaxQueued {
		return nil, input.At("queuedTurnIds", belay.Errorf(belay.CodeBadCommand, "%d turns are named; from 1 to %d can be", len(in.Turns), belay.MaxQueued).WithHint("get_thread_read lists those that wait: name them all"))
	}
	for _, t := range in.Turns {
		if err := input.Named("queuedTurnIds", string(t)); err != nil {
			return nil, err
		}
	}
	told, err := toThread(ctx, r, in.Session, in.Thread, "", "", belay.ReorderTurns{Order: in.Turns})
	if belay.CodeOf(err) == belay.CodeConflict {
		err = queueError("queuedTurnIds", err)
	}
	return told, err
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

// Configure sets how a thread takes turns while one runs.
func Configure(ctx context.Context, r *app.Call, in *ConfigureQueue) (*app.Result, error) {
	q := belay.Queueing{Mode: belay.QueueMode(in.Mode), Cap: in.Cap, Drop: belay.QueueDrop(in.Drop)}
	if in.Quiet != "" {
		quiet, err := time.ParseDuration(in.Quiet)
		if err != nil {
			return nil, input.At("quiet", belay.Errorf(belay.CodeBadCommand, "%q is no length of time", input.Shown(in.Quiet)).WithHint("2s or 500ms"))
		}
		q.Quiet = belay.Duration(quiet)
	}
	if err := q.Check(); err != nil {
		return nil, queueError("", err)
	}
	return toThread(ctx, r, in.Session, in.Thread, "", "", belay.ConfigureQueue{Queue: q})
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
	return input.At(field, &said)
}
