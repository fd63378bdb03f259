package memory

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/belay-run/belay/internal/store"
)

// ViewPosition is how far a view is folded.
func (s *views) ViewPosition(ctx context.Context, name string) (store.Position, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.d.mu.Unlock()
	if v := s.d.views[name]; v != nil {
		return v.at, nil
	}
	return 0, nil
}

// SaveView moves a view and writes its rows together.
func (s *views) SaveView(ctx context.Context, name string, from, to store.Position, rows map[string][]byte) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	v := s.d.views[name]
	if v == nil {
		v = &view{rows: map[string][]byte{}}
	}
	if v.at != from {
		return store.ErrConflict
	}
	v.at = to
	s.d.views[name] = v
	if to == 0 {
		clear(v.rows)
		rows = nil
	}
	for key, data := range rows {
		if data == nil {
			delete(v.rows, key)
			continue
		}
		v.rows[key] = append([]byte{}, data...)
	}
	s.done()
	return nil
}

// ViewRow is one row of a view, or nil.
func (s *views) ViewRow(ctx context.Context, name, key string) ([]byte, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	if v := s.d.views[name]; v != nil && v.rows[key] != nil {
		return append([]byte{}, v.rows[key]...), nil
	}
	return nil, nil
}

// ViewRows yields a view's rows in key order, from a key on.
func (s *views) ViewRows(ctx context.Context, name, from string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if s.lock(ctx) != nil {
			return
		}
		rows := map[string][]byte{}
		if v := s.d.views[name]; v != nil {
			rows = maps.Clone(v.rows)
		}
		s.d.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if key >= from && !yield(key, append([]byte{}, rows[key]...)) {
				return
			}
		}
	}
}
