package memory

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// grave is a session's tombstone, or nil.
func (d *Data) grave(session belay.SessionID) *store.Tombstone {
	for _, t := range d.graves {
		if t.Session == session {
			return t
		}
	}
	return nil
}

// buried is the last epoch of a session that was deleted and restored, 0 of one
// that never was, and an error for one that is deleted.
func (d *Data) buried(session belay.SessionID) (epoch int64, err error) {
	t := d.grave(session)
	switch {
	case t == nil:
		return 0, nil
	case !t.Restored:
		return 0, store.IsDeleted(session)
	}
	return t.Epoch, nil
}

// DeleteSession removes a session.
func (s *deletions) DeleteSession(ctx context.Context, session belay.SessionID, by string) (store.Deleted, error) {
	if err := store.MayDelete(session); err != nil {
		return store.Deleted{}, err
	}
	if err := s.lock(ctx); err != nil {
		return store.Deleted{}, err
	}
	defer s.d.mu.Unlock()
	if t := s.d.grave(session); t != nil && !t.Restored {
		return store.Deleted{Tombstone: t.Copy()}, nil
	}
	o := s.d.owners[session]
	if s.live(o) {
		return store.Deleted{}, &store.OwnedError{Session: session, Owner: o.Owner}
	}
	gone := map[*stream]bool{}
	for _, st := range s.d.order {
		if st.session == session {
			gone[st] = true
		}
	}
	if len(gone) == 0 && o == nil && s.d.grave(session) == nil {
		return store.Deleted{}, store.ErrNotFound
	}
	s.flush()
	out := store.Deleted{Tombstone: s.bury(session, by, gone)}
	s.forget(session, gone)
	out.Contents, out.Left = s.drop(gone)
	s.done()
	return out, nil
}

// bury writes the tombstone.
func (s *deletions) bury(session belay.SessionID, by string, gone map[*stream]bool) store.Tombstone {
	t := &store.Tombstone{Session: session, Time: store.FromMicros(store.Micros(s.o.Now())), By: by}
	if o := s.d.owners[session]; o != nil {
		t.Epoch = o.Epoch
	}
	if old := s.d.grave(session); old != nil {
		t.Epoch = max(t.Epoch, old.Epoch)
		s.d.graves = slices.DeleteFunc(s.d.graves, func(g *store.Tombstone) bool { return g == old })
	}
	for st := range gone {
		if n := len(st.rows); n > 0 {
			last := st.rows[n-1]
			t.Facts += last.Seq
			t.Heads = append(t.Heads, store.Head{Stream: st.id, Session: session, Seq: last.Seq, Hash: st.hash, Time: store.FromMicros(last.Time)})
		}
	}
	slices.SortFunc(t.Heads, func(a, b store.Head) int { return strings.Compare(string(a.Stream), string(b.Stream)) })
	s.d.log = append(s.d.log, position{})
	t.Position = store.Position(len(s.d.log))
	s.d.graves = append(s.d.graves, t)
	return t.Copy()
}

// forget takes the streams out of everything but the contents.
func (s *deletions) forget(session belay.SessionID, gone map[*stream]bool) {
	for i := range s.d.log {
		if gone[s.d.log[i].stream] {
			s.d.log[i] = position{}
		}
	}
	for st := range gone {
		delete(s.d.streams, st.id)
	}
	s.d.order = slices.DeleteFunc(s.d.order, func(st *stream) bool { return gone[st] })
	delete(s.d.owners, session)
	delete(s.d.writers, session)
	for _, v := range s.d.views {
		for key := range v.rows {
			if store.About(key) == session {
				delete(v.rows, key)
			}
		}
	}
}

// drop removes the contents that only the deleted streams name.
func (s *deletions) drop(gone map[*stream]bool) (dropped, left int) {
	theirs := map[belay.Digest]bool{}
	for st := range gone {
		s.d.namedBy(st, func(d belay.Digest) { theirs[d] = true })
	}
	s.d.throughDocuments(theirs, func(belay.Digest) bool { return true })
	kept := map[belay.Digest]bool{}
	keep := func(d belay.Digest) {
		if theirs[d] {
			kept[d] = true
		}
	}
	for _, st := range s.d.order {
		s.d.namedBy(st, keep)
	}
	for digest, b := range s.d.blobs {
		if !theirs[digest] && document(b) {
			names(b, keep)
		}
	}
	s.d.throughDocuments(kept, func(d belay.Digest) bool { return theirs[d] })
	for d := range theirs {
		switch _, there := s.d.blobs[d]; {
		case !there || kept[d]:
		case s.othersRun():
			left++
		default:
			delete(s.d.blobs, d)
			dropped++
		}
	}
	return dropped, left
}

// othersRun reports whether another process may be about to name content.
func (h *handle) othersRun() bool {
	for _, o := range h.d.owners {
		if h.live(o) {
			return true
		}
	}
	return false
}

// throughDocuments adds what documents among the digests name, and so on.
func (d *Data) throughDocuments(in map[belay.Digest]bool, takes func(belay.Digest) bool) {
	var next []belay.Digest
	for digest := range in {
		next = append(next, digest)
	}
	for len(next) > 0 {
		b := d.blobs[next[len(next)-1]]
		next = next[:len(next)-1]
		if !document(b) {
			continue
		}
		names(b, func(named belay.Digest) {
			if !in[named] && takes(named) {
				in[named] = true
				next = append(next, named)
			}
		})
	}
}

// namedBy calls each with what a stream's facts, state and inbox name.
func (d *Data) namedBy(st *stream, each func(belay.Digest)) {
	for i := range st.rows {
		st.rows[i].Named(func(raw [32]byte) { each(store.DigestFrom(raw[:])) })
	}
	if st.state != nil {
		names(st.state.Data, each)
	}
	for _, o := range st.inbox {
		names([]byte(o.body), each)
	}
}

func names(b []byte, each func(belay.Digest)) {
	store.Named(b, func(raw [32]byte) { each(store.DigestFrom(raw[:])) })
}

func document(b []byte) bool { return len(b) > 0 && bytes.IndexByte(store.DocumentStart, b[0]) >= 0 }

// Tombstones lists deletions after a position.
func (s *deletions) Tombstones(ctx context.Context, after store.Position) ([]store.Tombstone, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	var out []store.Tombstone
	for _, t := range s.d.graves {
		if t.Position > after {
			out = append(out, t.Copy())
		}
	}
	return out, nil
}
