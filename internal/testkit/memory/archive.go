package memory

import (
	"context"
	"iter"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Stored yields a session's facts in the order of the log.
func (s *Store) Stored(ctx context.Context, session belay.SessionID, upTo store.Position) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		if err := s.lock(ctx); err != nil {
			yield(store.Stored{}, err)
			return
		}
		log := slices.Clone(s.d.log[:min(max(upTo, 0), store.Position(len(s.d.log)))])
		s.d.mu.Unlock()
		for _, p := range log {
			if err := ctx.Err(); err != nil {
				yield(store.Stored{}, err)
				return
			}
			if p.stream == nil || p.stream.session != session {
				continue
			}
			s.d.mu.Lock()
			row := *p.stream.fact(p.seq)
			s.d.mu.Unlock()
			if !yield(store.Stored{Stream: p.stream.id, Row: row}, nil) {
				return
			}
		}
	}
}

// Restore makes a session of facts that another store kept.
func (s *Store) Restore(ctx context.Context, r store.Restoration) error {
	orders, err := packOrders(r.Inbox)
	if err != nil {
		return err
	}
	facts, err := restored(&r)
	if err != nil {
		return err
	}
	if r.Keep != nil {
		if err := r.Keep(ctx); err != nil {
			return err
		}
	}
	if err := s.o.Hook(BeforeAppend); err != nil {
		return err
	}
	if err := s.restore(ctx, &r, facts, orders); err != nil {
		return err
	}
	return s.o.Hook(AfterAppend)
}

// restored is the facts, which must end where the heads say.
func restored(r *store.Restoration) ([]store.Stored, error) {
	var facts []store.Stored
	chains := store.NewChains(r.Session)
	for f, err := range r.Facts {
		if err != nil {
			return nil, err
		}
		if _, err := chains.Add(&f); err != nil {
			return nil, err
		}
		facts = append(facts, f)
	}
	return facts, chains.End(r.Heads)
}

func (s *Store) restore(ctx context.Context, r *store.Restoration, facts []store.Stored, orders []order) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	for _, h := range r.Heads {
		if s.d.streams[h.Stream] != nil {
			return store.Exists(h.Stream)
		}
	}
	for _, o := range orders {
		if s.d.streams[o.Stream] != nil {
			return store.Exists(o.Stream)
		}
		if known, ok := s.d.commands[o.ID]; ok && known != o.same() {
			return belay.Errorf(belay.CodeIDConflict, "the command id is taken by another command").At(string(o.ID))
		}
	}
	if t := s.d.grave(r.Session); t != nil {
		t.Restored = true
	}
	var buf []byte
	for _, f := range facts {
		st := s.d.stream(r.Session, f.Stream)
		st.hash, buf = store.Link(st.hash, &f.Row, buf)
		s.d.log = append(s.d.log, position{st, f.Row.Seq})
		st.rows, st.at = append(st.rows, f.Row), append(st.at, store.Position(len(s.d.log)))
	}
	for id, lane := range r.Lanes {
		s.d.stream(r.Session, id).lane = store.Lane{Runnable: lane.Runnable, Wake: store.FromMicros(store.Micros(lane.Wake))}
	}
	for _, o := range orders {
		s.d.enqueue(o)
	}
	s.done()
	return nil
}
