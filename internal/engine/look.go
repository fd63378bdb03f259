package engine

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
)

// look waits for a look at the world that a drive needs before it goes on. A file system
// that doesn't answer holds the drive for a time and no longer: ok is false then.
func look[T any](ctx context.Context, v *drive, f func(context.Context) T) (found T, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, v.stallLimit())
	defer cancel()
	seen := make(chan T, 1)
	go func() { seen <- f(ctx) }()
	late := time.NewTimer(2 * v.stallLimit())
	defer late.Stop()
	select {
	case found = <-seen:
		return found, true
	case <-late.C:
		v.e.stuck.Add(1)
		return found, false
	}
}

// inspect completes decided questions with what they are asked about.
func (v *drive) inspect(ctx context.Context, rd *core.Ready) error {
	complete, err := v.perf.Inspect(ctx, v.d, rd.Decided)
	if err != nil || complete == nil {
		return err
	}
	if facts, ok := look(ctx, v, complete); ok {
		rd.Decided = facts
	}
	return context.Cause(ctx) // the next drive looks: what was seen while this one leaves is cut short
}

// errNoAnswer refuses what can't be looked up.
var errNoAnswer = belay.Errorf(belay.CodeBusy, "the session's workspace doesn't answer").
	WithHint("look whether its file system is there, and try again")

// arguments is an answer with its arguments as they were read.
func (v *drive) arguments(ctx context.Context, c belay.RespondAction) (belay.Command, error) {
	read := v.perf.Arguments(v.d, c)
	if read == nil {
		return c, nil
	}
	type result struct {
		c   belay.Command
		err error
	}
	got, ok := look(ctx, v, func(ctx context.Context) (r result) {
		r.c, r.err = read(ctx)
		return r
	})
	if !ok {
		return nil, errNoAnswer
	}
	return got.c, got.err
}
