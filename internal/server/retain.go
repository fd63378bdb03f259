package server

import (
	"context"
	"time"
)

// When a tenant's store is looked at for what retention doesn't keep. A server that
// starts has better things to do.
const (
	retainFirst = 5 * time.Minute
	retainEvery = time.Hour
	retainMore  = time.Minute // after a round that had no room for all
)

// retain applies retention until ctx ends, a round after another.
func (t *tenant) retain(ctx context.Context) {
	if t.config.Retain == nil {
		return
	}
	next := time.NewTimer(retainFirst)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		did, err := t.config.Retain(ctx)
		if did.Outputs+did.Contents > 0 {
			t.log.Info("retention", "outputs", did.Outputs, "contents", did.Contents, "bytes", did.Bytes)
		}
		if err != nil && ctx.Err() == nil {
			t.log.Warn("retention", "error", err.Error())
		}
		wait := retainEvery
		if did.More {
			wait = retainMore
		}
		next.Reset(wait)
	}
}
