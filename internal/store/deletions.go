package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// SystemStream holds the facts about the store itself: the system session's own
// stream, which all processes share.
const SystemStream = belay.StreamID(belay.KindSession + "/" + string(belay.SystemSession))

// How long a writer waits for another, and how long it may take itself.
const (
	lease = 15 * time.Second
	pause = 20 * time.Millisecond
	tries = 100
)

// RecordDeletions records deleted sessions in the system session, each once and
// behind the ones before it, in a chain that can't be changed unnoticed. The
// tombstone, which is written with the deletion, remains the first witness of it.
func RecordDeletions(ctx context.Context, st Run, owner Owner, all []Tombstone) error {
	if len(all) == 0 {
		return nil
	}
	return ClaimStream(ctx, st, owner, SystemStream, func(epoch int64) error {
		for _, t := range all {
			if err := recordDeletion(ctx, st, epoch, t); err != nil {
				return fmt.Errorf("record the deletion of %s: %w", t.Session, err)
			}
		}
		return nil
	})
}

// ClaimStream claims a stream of the system session, which all processes share, for
// what do appends to it. It waits a moment for another process that has it. Of one
// process only one call may be for a stream at a time.
func ClaimStream(ctx context.Context, st Owners, owner Owner, s belay.StreamID, do func(epoch int64) error) error {
	for try := 0; ; try++ {
		epoch, err := st.Claim(ctx, belay.SessionID(s), owner, lease)
		if err == nil {
			defer st.Release(context.WithoutCancel(ctx), belay.SessionID(s), epoch) //nolint:errcheck // the lease ends by itself
			return do(epoch)
		}
		if _, owned := errors.AsType[*OwnedError](err); !owned || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func recordDeletion(ctx context.Context, st Run, epoch int64, t Tombstone) error {
	head, err := st.Head(ctx, SystemStream)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	e := event.Envelope{Stream: SystemStream, Seq: head.Seq + 1, IDs: belay.IDs{Session: belay.SystemSession}, Data: event.ChannelMessage{
		Kind: "audit", Principal: t.By, Command: "delete_session", Code: string(belay.CodeDeleted),
		Message: fmt.Sprintf("session %s was deleted with %d facts, at position %d", t.Session, t.Facts, t.Position),
	}}
	_, err = st.Append(ctx, Batch{Session: belay.SystemSession, Stream: SystemStream, After: head.Seq, Epoch: epoch,
		Key: fmt.Sprintf("deleted/%d", t.Position), Events: []event.Envelope{e}})
	return err
}
