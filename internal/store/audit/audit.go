// Package audit records in the system session what was done to the store
// itself. It promises that each deletion is recorded once, behind the ones
// before it, in a chain that can't be changed unnoticed; the tombstone, which
// is written with the deletion, remains the first witness of it.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Stream holds the facts: the system session's own, which all processes share.
const Stream = belay.StreamID(belay.KindSession + "/" + string(belay.SystemSession))

// How long a writer waits for another, and how long it may take itself.
const (
	lease = 15 * time.Second
	pause = 20 * time.Millisecond
	tries = 100
)

// Deletions records deleted sessions. Those that are recorded already are left out.
func Deletions(ctx context.Context, st store.Run, owner store.Owner, all []store.Tombstone) error {
	if len(all) == 0 {
		return nil
	}
	epoch, err := claim(ctx, st, owner)
	if err != nil {
		return err
	}
	defer st.Release(context.WithoutCancel(ctx), belay.SessionID(Stream), epoch) //nolint:errcheck // the lease ends by itself
	for _, t := range all {
		if err := write(ctx, st, epoch, t); err != nil {
			return fmt.Errorf("record the deletion of %s: %w", t.Session, err)
		}
	}
	return nil
}

func claim(ctx context.Context, st store.Run, owner store.Owner) (int64, error) {
	for try := 0; ; try++ {
		epoch, err := st.Claim(ctx, belay.SessionID(Stream), owner, lease)
		if _, owned := errors.AsType[*store.OwnedError](err); !owned || try == tries {
			return epoch, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func write(ctx context.Context, st store.Run, epoch int64, t store.Tombstone) error {
	head, err := st.Head(ctx, Stream)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	e := event.Envelope{Stream: Stream, Seq: head.Seq + 1, IDs: belay.IDs{Session: belay.SystemSession}, Data: event.ChannelMessage{
		Kind: "audit", Principal: t.By, Command: "delete_session", Code: string(belay.CodeDeleted),
		Message: fmt.Sprintf("session %s was deleted with %d facts, at position %d", t.Session, t.Facts, t.Position),
	}}
	_, err = st.Append(ctx, store.Batch{Session: belay.SystemSession, Stream: Stream, After: head.Seq, Epoch: epoch,
		Key: fmt.Sprintf("deleted/%d", t.Position), Events: []event.Envelope{e}})
	return err
}
