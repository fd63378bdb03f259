package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// owners are the claims on sessions and workspaces, and the leases that hold them.
type owners struct{ *access }

// ownerRow is who owns a key: a session's id or, in the system session, a
// stream's. Without an owner the name is empty; the epoch stays.
type ownerRow struct {
	o     store.Owner
	since int64
	lease int64
}

const ownerColumns = "owner, host, pid, start, since, epoch, lease"

func (r *ownerRow) into() []any {
	return []any{&r.o.ID, &r.o.Host, &r.o.PID, &r.o.Start, &r.since, &r.o.Epoch, &r.lease}
}

// live reports whether the owner keeps what it claimed. Its process is looked
// for last, because that costs most.
func (r *ownerRow) live(now time.Time, alive func(store.Owner) bool) bool {
	return r.o.ID != "" && r.lease > store.Micros(now) && alive(r.o)
}

type claimOp struct {
	session belay.SessionID
	o       store.Owner
	ttl     time.Duration
	want    int64 // the epoch that it must get; 0: any
	epoch   int64 // the answer
}

// Claim makes o the owner of a session.
func (own *owners) Claim(ctx context.Context, session belay.SessionID, o store.Owner, ttl time.Duration) (int64, error) {
	if session == "" || o.ID == "" {
		return 0, belay.Errorf(belay.CodeInternal, "a claim without session or owner").At(string(session))
	}
	op := &claimOp{session: session, o: o, ttl: ttl}
	if err := own.do(ctx, op); err != nil {
		return 0, err
	}
	return op.epoch, nil
}

func (c *claimOp) apply(w *writer) error {
	var old ownerRow
	found, err := w.row("SELECT "+ownerColumns+" FROM owners WHERE key=?", []any{string(c.session)}, old.into()...)
	if err == nil && !found {
		old.o.Epoch, err = w.buried(c.session)
	}
	if err != nil {
		return err
	}
	now := w.now()
	if old.o.ID != c.o.ID && old.live(now, w.db.o.Alive) {
		old.o.Since = store.FromMicros(old.since)
		return refusal{&store.OwnedError{Session: c.session, Owner: old.o}}
	}
	if c.epoch = old.o.Epoch + 1; c.want != 0 && c.epoch != c.want {
		return refusal{store.ErrConflict}
	}
	defer w.setOwner(string(c.session), c.epoch)
	return w.exec("INSERT INTO owners (key, "+ownerColumns+", sum) VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO UPDATE SET "+
		"owner=excluded.owner, host=excluded.host, pid=excluded.pid, start=excluded.start, since=excluded.since, epoch=excluded.epoch, lease=excluded.lease, sum=excluded.sum",
		string(c.session), c.o.ID, c.o.Host, c.o.PID, c.o.Start, store.Micros(now), c.epoch, store.Micros(now.Add(c.ttl)), layout.EpochSum(string(c.session), c.epoch))
}

func (c *claimOp) committed(w *writer) { w.claims[string(c.session)] = c.epoch }

type renewOp struct {
	o   store.Owner
	ttl time.Duration
}

// Renew extends all leases of o in one transaction.
func (own *owners) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	return own.do(ctx, &renewOp{o, ttl})
}

func (r *renewOp) apply(w *writer) error {
	return w.exec("UPDATE owners SET lease=? WHERE owner=? AND owner<>''", store.Micros(w.now().Add(r.ttl)), r.o.ID)
}

type releaseOp struct {
	session belay.SessionID
	epoch   int64
}

// Release gives a session back. With an epoch of the past it does nothing.
func (own *owners) Release(ctx context.Context, session belay.SessionID, epoch int64) error {
	return own.do(ctx, &releaseOp{session, epoch})
}

func (r *releaseOp) apply(w *writer) error {
	delete(w.owned, string(r.session))
	return w.exec("UPDATE owners SET owner='', lease=0 WHERE key=? AND epoch=?", string(r.session), r.epoch)
}

func (r *releaseOp) committed(w *writer) {
	if w.claims[string(r.session)] == r.epoch {
		delete(w.claims, string(r.session))
	}
}

// releaseAll gives back what was claimed through this store and is still its own.
type releaseAll struct{}

func (releaseAll) apply(w *writer) error {
	for key, epoch := range w.claims {
		r := releaseOp{belay.SessionID(key), epoch}
		if err := r.apply(w); err != nil {
			return err
		}
	}
	return nil
}

// Owned are the sessions that have a live owner.
func (own *owners) Owned(ctx context.Context) (map[belay.SessionID]store.Owner, error) {
	all := map[belay.SessionID]store.Owner{}
	err := own.query(ctx, "SELECT key, "+ownerColumns+" FROM owners WHERE owner<>''", nil, func(rows *sql.Rows) error {
		var r ownerRow
		var session belay.SessionID
		err := rows.Scan(append([]any{&session}, r.into()...)...)
		if err == nil && r.live(own.o.Now(), own.o.Alive) {
			r.o.Since = store.FromMicros(r.since)
			all[session] = r.o
		}
		return err
	})
	return all, err
}

// OwnerOf is the live owner of a session, or nil.
func (own *owners) OwnerOf(ctx context.Context, session belay.SessionID) (*store.Owner, error) {
	var r ownerRow
	_, err := own.one(ctx, "SELECT "+ownerColumns+" FROM owners WHERE key=?", []any{string(session)}, r.into()...)
	if err != nil || !r.live(own.o.Now(), own.o.Alive) {
		return nil, err
	}
	r.o.Since = store.FromMicros(r.since)
	return &r.o, nil
}
