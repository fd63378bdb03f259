package sqlite

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// deletions takes sessions out of the store, with what only they name, and brings
// them back.
type deletions struct{ *collector }

// DeleteSession removes a session in steps, each a transaction: first the
// tombstone takes the place of its streams, so that they are neither read nor written
// any more; then the content goes that only they name, then their rows, a
// portion at a time; last the tombstone says that nothing is left. After a
// crash the same call continues where the steps ended, and so does Compact.
func (del *deletions) DeleteSession(ctx context.Context, session belay.SessionID, by string) (store.Deleted, error) {
	if err := store.MayDelete(session); err != nil {
		return store.Deleted{}, err
	}
	b := &buryOp{session: session, by: by}
	if err := del.do(ctx, b); err != nil {
		return store.Deleted{}, err
	}
	out := store.Deleted{Tombstone: b.g.Copy()}
	if len(b.g.Pending) == 0 {
		return out, nil
	}
	err := del.purge(ctx, &b.g, &out)
	return out, err
}

// DeleteIdle is DeleteSession for an idle session: only one in
// which nothing is wanted or waits, which is belay.CodeBusy otherwise. What only
// it named is left to Compact, which looks through the store once for all.
func (del *deletions) DeleteIdle(ctx context.Context, session belay.SessionID, by string) error {
	if err := store.MayDelete(session); err != nil {
		return err
	}
	b := &buryOp{session: session, by: by, resting: true}
	if err := del.do(ctx, b); err != nil || len(b.g.Pending) == 0 {
		return err
	}
	return del.purgeRows(ctx, &b.g)
}

// purge removes what a tombstone has pending.
func (del *deletions) purge(ctx context.Context, g *layout.Tombstone, out *store.Deleted) error {
	theirs, err := del.namedByStreams(ctx, g.Pending)
	if err != nil {
		return err
	}
	if out.Contents, out.Left, err = del.drop(ctx, theirs, false, del.markReachable); err != nil {
		return err
	}
	return del.purgeRows(ctx, g)
}

func (del *deletions) purgeRows(ctx context.Context, g *layout.Tombstone) error {
	for p := (&purgeOp{g: g}); !p.done; {
		if err := del.do(ctx, p); err != nil {
			return err
		}
	}
	// The log has the pages as they were: without it nothing of them is left.
	return del.do(ctx, &truncateOp{})
}

// truncateOp makes the log empty after its transaction, if readers let it.
type truncateOp struct{}

func (*truncateOp) apply(*writer) error { return nil }
func (*truncateOp) committed(w *writer) { w.truncate() }

// buryOp puts a tombstone in the place of a session's streams.
type buryOp struct {
	session belay.SessionID
	by      string
	resting bool             // only if nothing is wanted or waits
	g       layout.Tombstone // the answer
}

func (b *buryOp) apply(w *writer) error {
	old, found, err := w.grave(b.session)
	if err != nil {
		return err
	}
	if found && !old.Restored {
		b.g = old
		return nil
	}
	var owner ownerRow
	owned, err := w.row("SELECT "+ownerColumns+" FROM owners WHERE key=?", []any{string(b.session)}, owner.into()...)
	if err != nil {
		return err
	}
	if owner.live(w.now(), w.db.o.Alive) {
		owner.o.Since = store.FromMicros(owner.since)
		return refusal{&store.OwnedError{Session: b.session, Owner: owner.o}}
	}
	if err := w.mayDropContent(); err != nil {
		return err
	}
	b.g = layout.Tombstone{Tombstone: store.Tombstone{Session: b.session, Time: store.FromMicros(store.Micros(w.now())), By: b.by,
		Epoch: max(owner.o.Epoch, old.Epoch)}}
	if err := b.heads(w); err != nil {
		return err
	}
	if len(b.g.Pending) == 0 && !owned && !found {
		return refusal{store.ErrNotFound}
	}
	if b.resting {
		busy, err := w.row("SELECT 1 FROM streams s WHERE s.session=? AND (s.runnable<>0 OR s.wake<>0 OR EXISTS (SELECT 1 FROM inbox i WHERE i.stream=s.id)) LIMIT 1",
			[]any{string(b.session)}, new(int))
		if err == nil && busy {
			err = refusal{belay.Errorf(belay.CodeBusy, "something is wanted in the session").At(string(b.session)).WithHint("belay sessions show %s", b.session)}
		}
		if err != nil {
			return err
		}
	}
	return b.write(w)
}

// heads notes how the session's streams ended.
func (b *buryOp) heads(w *writer) error {
	return damageRefused(w.each("SELECT "+layout.StreamColumns+" FROM streams WHERE session=? ORDER BY name", []any{string(b.session)}, func(rows *sql.Rows) error {
		var s layout.Stream
		err := s.Scan(rows.Scan)
		b.g.Pending = append(b.g.Pending, s.ID)
		if s.Seq > 0 {
			b.g.Facts += s.Seq
			b.g.Heads = append(b.g.Heads, store.Head{Stream: s.Name, Session: s.Session, Seq: s.Seq, Hash: s.Hash, Time: store.FromMicros(s.Time)})
		}
		return err
	}))
}

func (b *buryOp) write(w *writer) (err error) {
	if b.g.Position, err = w.nextPosition(); err != nil {
		return err
	}
	session := string(b.session)
	for _, q := range []struct {
		query string
		args  []any
	}{
		{"INSERT OR REPLACE INTO tombstones (" + layout.TombstoneColumns + ") VALUES (?,?,?,?,?,?,?,?,?,?)", b.g.Values()},
		{"DELETE FROM streams WHERE session=?", []any{session}},
		{"DELETE FROM owners WHERE key=?", []any{session}},
		{"DELETE FROM writers WHERE session=?", []any{session}},
	} {
		if err := w.thoroughly(q.query, q.args...); err != nil {
			return err
		}
	}
	return w.dropAbout(b.session)
}

// nextPosition takes the next position without a fact.
func (w *writer) nextPosition() (store.Position, error) {
	var pos int64
	found, err := w.row("UPDATE sqlite_sequence SET seq=seq+1 WHERE name='events' RETURNING seq", nil, &pos)
	if err == nil && !found {
		pos, err = 1, w.exec("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', 1)")
	}
	return store.Position(pos), err
}

// purgePortion is how many rows a transaction of a deletion removes: others wait
// for their turn that long.
const purgePortion = 500

// purgeOp removes a portion of the rows of a tombstone's streams.
type purgeOp struct {
	g    *layout.Tombstone
	done bool // nothing was left
}

func (p *purgeOp) apply(w *writer) error {
	now, found, err := w.grave(p.g.Session)
	if err != nil {
		return err
	}
	if !found || now.Position != p.g.Position || len(now.Pending) == 0 {
		p.done = true // another process finished it
		return nil
	}
	if err := w.exec(secureDeleteOn); err != nil {
		return err
	}
	left := int64(purgePortion)
	for _, stream := range now.Pending {
		for _, query := range []string{
			"DELETE FROM events WHERE pos IN (SELECT pos FROM events WHERE stream=? ORDER BY seq LIMIT ?)",
			"DELETE FROM keys WHERE stream=?1 AND key IN (SELECT key FROM keys WHERE stream=?1 LIMIT ?2)",
			"DELETE FROM inbox WHERE num IN (SELECT num FROM inbox WHERE stream=? LIMIT ?)",
			"DELETE FROM states WHERE stream IN (SELECT stream FROM states WHERE stream=? LIMIT ?)",
		} {
			n, err := w.count(query, stream, left)
			if err != nil {
				return err
			}
			w.grown += int(n) * 1024
			if left -= n; left <= 0 {
				return w.exec(secureDeleteFast)
			}
		}
	}
	now.Pending = nil
	p.done = true
	return cmp.Or(w.exec("UPDATE tombstones SET pending=x'', sum=? WHERE pos=?", now.Sum(), int64(now.Position)), w.exec(secureDeleteFast))
}

// finishDeletion removes what a crash left of a session.
func (del *deletions) finishDeletion(ctx context.Context, session belay.SessionID) error {
	all, err := del.graves(ctx, "session=? AND pending<>x''", string(session))
	for i := range all {
		if err == nil {
			err = del.purge(ctx, &all[i], new(store.Deleted))
		}
	}
	return err
}

// lift notes that a deleted session was restored.
func (w *writer) lift(session belay.SessionID) error {
	g, found, err := w.grave(session)
	switch {
	case err != nil || !found || g.Restored:
		return err
	case len(g.Pending) > 0:
		return refusal{belay.Errorf(belay.CodeBusy, "the session is just being deleted").At(string(session)).WithHint("repeat the command")}
	}
	g.Restored = true
	return w.exec("UPDATE tombstones SET restored=1, sum=? WHERE pos=?", g.Sum(), int64(g.Position))
}

// unfinished are the streams of deletions that go on or were cut short.
func (a *access) unfinished(ctx context.Context) (streams map[int64]bool, err error) {
	streams = map[int64]bool{}
	graves, err := a.graves(ctx, "pending<>x''")
	for _, g := range graves {
		for _, n := range g.Pending {
			streams[n] = true
		}
	}
	return streams, err
}
