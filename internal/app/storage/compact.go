package storage

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/retention"
	"github.com/belay-run/belay/internal/view"
)

// Compacted is what compact did.
type Compacted struct {
	DryRun    bool             `json:"dryRun,omitempty"`
	Sessions  []DeletedSession `json:"sessions"`
	Deletions int              `json:"deletions,omitempty"` // cut short before, and finished now
	Contents  int              `json:"contents"`
	Bytes     int64            `json:"contentBytes"`
	Before    int64            `json:"before"` // bytes of the store's files
	After     int64            `json:"after"`

	Outputs *Expiry `json:"outputs,omitempty"` // what expired, and what is gone of it
}

// DeletedSession is a session that was to go.
type DeletedSession struct {
	Session belay.SessionID `json:"session"`
	Changed time.Time       `json:"changed"`
	Bytes   int64           `json:"bytes"`
	Why     string          `json:"why"`
	Kept    string          `json:"kept,omitempty"` // why it stayed after all
}

// Compact removes the sessions and outputs that a policy doesn't keep, and what nothing
// names. What was done is also returned where it could not be recorded.
func Compact(ctx context.Context, db store.Admin, now time.Time, p retention.Policy, dry bool) (*Compacted, error) {
	done := &Compacted{DryRun: dry, Sessions: []DeletedSession{}}
	chosen, err := chosen(ctx, db, now, p)
	if err != nil {
		return nil, err
	}
	from, err := db.End(ctx)
	if err != nil {
		return nil, err
	}
	for _, x := range chosen {
		g := DeletedSession{x.ID, x.Changed, x.Bytes, x.Why, ""}
		if !dry {
			if g.Kept, err = retire(ctx, db, x.ID); err != nil {
				return nil, err
			}
		}
		done.Sessions = append(done.Sessions, g)
	}
	if done.Outputs, err = compactOutputs(ctx, db, now, p.Outputs, dry); err != nil {
		return nil, err
	}
	r, err := db.Compact(ctx, dry)
	if err != nil {
		return nil, err
	}
	done.Deletions, done.Contents, done.Bytes, done.Before, done.After = r.Deletions, r.Contents, r.Bytes, r.Before, r.After
	if dry {
		return done, nil
	}
	gone, err := db.Tombstones(ctx, from)
	if err == nil {
		err = store.RecordDeletions(ctx, db, store.ThisProcess(), gone)
	}
	return done, errors.Join(err, view.Catchup(ctx, db))
}

// compactOutputs lets the outputs go that a policy doesn't keep.
func compactOutputs(ctx context.Context, db store.Admin, now time.Time, p retention.Outputs, dry bool) (*Expiry, error) {
	var due []retention.OutputChoice
	if p != (retention.Outputs{}) {
		all, err := retention.List(ctx, db, "")
		if err != nil {
			return nil, err
		}
		due = p.Due(now, all)
	}
	done, err := expire(ctx, db, retention.ExpiryTarget{Reason: event.ExpiredByRetention, Owner: store.ThisProcess(), DryRun: dry}, due)
	if len(done.Outputs) == 0 && done.Contents+done.Left == 0 {
		return nil, err
	}
	return done, err
}

// retire deletes a session that has passed its retention time. One that was
// claimed in the meantime stays.
func retire(ctx context.Context, db store.Admin, id belay.SessionID) (kept string, err error) {
	err = db.DeleteIdle(ctx, id, "retention")
	_, owned := errors.AsType[*store.OwnedError](err)
	switch {
	case owned:
		return "a process drives it", nil
	case belay.CodeOf(err) == belay.CodeBusy && err != nil:
		return err.Error(), nil
	case errors.Is(err, store.ErrNotFound):
		return "", nil // another compaction was faster
	}
	return "", err
}

// chosen are the sessions to delete now under a policy.
func chosen(ctx context.Context, db store.Admin, now time.Time, p retention.Policy) ([]retention.Choice, error) {
	if p.None() {
		return nil, nil
	}
	if err := view.Catchup(ctx, db); err != nil {
		return nil, err
	}
	all, err := view.Sessions(ctx, db, view.Filter{})
	if err != nil {
		return nil, err
	}
	sizes, err := db.SessionBytes(ctx)
	if err != nil {
		return nil, err
	}
	lanes, err := db.Lanes(ctx, "")
	if err != nil {
		return nil, err
	}
	busy := map[belay.SessionID]bool{}
	for _, l := range lanes {
		busy[l.Session] = true
	}
	var sessions []retention.Session
	for _, s := range all {
		owner, err := db.OwnerOf(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, retention.Session{ID: s.ID, Changed: s.Updated, Bytes: sizes[s.ID], Rests: !busy[s.ID] && owner == nil})
	}
	return p.Choose(now, sessions), nil
}

// Expiry is the outcome of outputs that were to go.
type Expiry struct {
	DryRun   bool            `json:"dryRun,omitempty"`
	Outputs  []ExpiredOutput `json:"outputs"`
	Contents int             `json:"contents"`       // that were removed
	Bytes    int64           `json:"contentBytes"`   // of them
	Left     int             `json:"left,omitempty"` // that expired, and are removed by a later call
}

// ExpiredOutput is an output that was to go.
type ExpiredOutput struct {
	Digest belay.Digest `json:"digest"`
	Bytes  int64        `json:"bytes"`
	Why    string       `json:"why"`
	Kept   string       `json:"kept,omitempty"` // why it stayed after all
}

// ExpireOutputs lets outputs go because a person asked for it.
func ExpireOutputs(ctx context.Context, db store.Admin, by string, chosen []retention.OutputChoice, dry bool) (*Expiry, error) {
	return expire(ctx, db, retention.ExpiryTarget{Reason: event.ExpiredAsked, By: by, Owner: store.ThisProcess(), DryRun: dry}, chosen)
}

// expire writes the facts first, and then lets the store remove what they
// expire, including what an earlier call didn't get to.
func expire(ctx context.Context, db store.Admin, w retention.ExpiryTarget, chosen []retention.OutputChoice) (*Expiry, error) {
	done := &Expiry{DryRun: w.DryRun, Outputs: []ExpiredOutput{}}
	var err error
	if len(chosen) > 0 {
		if chosen, err = retention.Expire(ctx, db, w, chosen); err != nil {
			return done, err
		}
	}
	for _, c := range chosen {
		done.Outputs = append(done.Outputs, ExpiredOutput{c.Digest, c.Bytes, cmp.Or(c.Why, w.Reason), c.Kept})
	}
	if w.DryRun {
		return done, nil
	}
	r, err := db.DropExpired(ctx)
	done.Contents, done.Bytes, done.Left = r.Contents, r.Bytes, r.Left
	return done, err
}

// RebuildViews drops what was folded from the log and folds it again. It returns up to
// where it is folded.
func RebuildViews(ctx context.Context, st store.Store) (store.Position, error) {
	if err := errors.Join(view.Rebuild(ctx, st), read.Forget(ctx, st)); err != nil {
		return 0, err
	}
	return view.At(ctx, st)
}
