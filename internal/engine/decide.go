package engine

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// Decide lets a stream of the system session, which all processes share, handle one
// command. When it returns, the facts that follow are durable. It returns the decider
// as it is then; the caller must not change it.
func (e *Engine) Decide(ctx context.Context, o belay.Order) (d core.Decider, facts []event.Envelope, err error) {
	select {
	case e.deciding <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	defer func() { <-e.deciding }()
	err = store.ClaimStream(ctx, e.c.Store, e.c.Owner, o.Stream, func(epoch int64) error {
		v := e.newDrive(&ownership{session: belay.SystemSession, epoch: epoch}, o.Stream)
		v.passive = true
		b := &batch{}
		if err := v.open(ctx, b); err != nil {
			return err
		}
		v.handle(b, o)
		rd, err := v.decide(ctx, b)
		if err != nil {
			return err
		}
		d, facts = v.d, b.events
		return v.append(ctx, b, rd)
	})
	return d, facts, err
}
