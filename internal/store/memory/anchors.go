package memory

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// gone is how many facts of a stream were let go.
func (st *stream) gone() int64 {
	if st.anchor == nil {
		return 0
	}
	return st.anchor.Seq
}

// seq is the last fact's.
func (st *stream) seq() int64 { return st.gone() + int64(len(st.rows)) }

func (st *stream) fact(seq int64) *store.Row { return &st.rows[seq-st.gone()-1] }

// SetAnchor lets the first facts of a stream go.
func (s *Store) SetAnchor(ctx context.Context, a store.Anchor, epoch int64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	key := a.Session
	if a.Session == belay.SystemSession {
		key = belay.SessionID(a.Stream)
	}
	if o := s.d.owners[key]; o == nil || o.ID == "" || o.Epoch != epoch {
		return store.ErrStale
	}
	st := s.d.streams[a.Stream]
	if st == nil || st.session != a.Session || s.d.blobs[a.State.Digest] == nil && s.small[a.State.Digest] == nil {
		return store.ErrNotFound
	}
	if old := st.anchor; old != nil && old.Seq == a.Seq && old.Hash == a.Hash {
		return nil
	}
	if a.Seq <= st.gone() || a.Seq >= st.seq() || s.hashAfter(st, a.Seq) != a.Hash {
		return store.ErrConflict
	}
	for i, p := range s.d.log {
		if p.stream == st && p.seq <= a.Seq {
			s.d.log[i] = position{}
		}
	}
	n := a.Seq - st.gone()
	st.rows, st.at = slices.Clone(st.rows[n:]), slices.Clone(st.at[n:])
	a.Time = store.FromMicros(store.Micros(s.o.Now()))
	st.anchor = &a
	s.done()
	return nil
}

// hashAfter is the chain after a fact.
func (s *Store) hashAfter(st *stream, seq int64) [32]byte {
	hash := store.Genesis(st.session, st.id)
	if st.anchor != nil {
		hash = st.anchor.Hash
	}
	var buf []byte
	for i := st.gone() + 1; i <= seq; i++ {
		hash, buf = store.Link(hash, st.fact(i), buf)
	}
	return hash
}

// AnchorOf is a stream's anchor, or nil.
func (s *Store) AnchorOf(ctx context.Context, id belay.StreamID) (*store.Anchor, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	st := s.d.streams[id]
	if st == nil || st.anchor == nil {
		return nil, nil
	}
	a := *st.anchor
	return &a, nil
}
