package memory

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Found begins a session.
func (s *Store) Found(ctx context.Context, f store.NewSession) (store.Position, error) {
	if err := f.Check(); err != nil {
		return 0, err
	}
	var told []belay.Order
	for o := range f.Told() {
		told = append(told, *o)
	}
	orders, err := packOrders(told)
	if err != nil {
		return 0, err
	}
	batches, rows := make([]*store.Batch, len(f.Batches)), make([][]store.Row, len(f.Batches))
	for i := range f.Batches {
		batches[i] = f.Fresh(i)
		if rows[i], err = pack(batches[i]); err != nil {
			return 0, err
		}
	}
	if err := s.o.Hook(BeforeAppend); err != nil {
		return 0, err
	}
	pos, err := s.found(ctx, &f, orders, batches, rows)
	if err != nil {
		return 0, err
	}
	return pos, s.o.Hook(AfterAppend)
}

func (s *Store) found(ctx context.Context, f *store.NewSession, orders []order, batches []*store.Batch, rows [][]store.Row) (pos store.Position, err error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.d.mu.Unlock()
	if s.d.knows(f, orders) {
		return 0, store.ErrConflict
	}
	if err := s.vacant(f.Session, f.Writes, f.Writes == "" || f.Shared); err != nil {
		return 0, err
	}
	s.d.owners[f.Session] = &owner{Owner: store.Owner{Epoch: 1}}
	if f.Keep > 0 {
		s.own(f.Session, f.Owner, 1, f.Keep)
	}
	if f.Writes != "" {
		s.d.writers[f.Session] = changes{f.Writes, 1}
	}
	for _, o := range orders {
		s.d.commands[o.ID] = o.same()
	}
	for i, b := range batches {
		pos = s.write(s.d.stream(b.Session, b.Stream), b, rows[i])
	}
	s.done()
	return pos, nil
}

// knows reports whether something is known of what is to be founded.
func (d *Data) knows(f *store.NewSession, orders []order) bool {
	if d.owners[f.Session] != nil || d.grave(f.Session) != nil {
		return true
	}
	for i := range f.Batches {
		if d.streams[f.Batches[i].Stream] != nil {
			return true
		}
	}
	for _, o := range orders {
		if _, ok := d.commands[o.ID]; ok {
			return true
		}
	}
	for _, st := range d.streams {
		if st.session == f.Session {
			return true
		}
	}
	return false
}
