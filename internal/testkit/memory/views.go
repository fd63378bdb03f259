package memory

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// ViewPosition is how far a view is folded.
func (s *views) ViewPosition(ctx context.Context, name string) (store.Position, error) {
	v, err := s.of(ctx, name)
	return v.at, err
}

// of is a view as it is now; without rows, if there is none.
func (s *views) of(ctx context.Context, name string) (view, error) {
	if err := s.lock(ctx); err != nil {
		return view{}, err
	}
	defer s.d.mu.Unlock()
	if v := s.d.views[name]; v != nil {
		return view{v.at, maps.Clone(v.rows)}, nil
	}
	return view{}, nil
}

// SaveView moves a view and writes its rows together.
func (s *views) SaveView(ctx context.Context, name string, from, to store.Position, rows map[string]store.ViewRow) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	v := s.d.views[name]
	if v == nil {
		v = &view{rows: map[string]store.ViewRow{}}
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
	for key, row := range rows {
		if row.Data == nil {
			delete(v.rows, key)
			continue
		}
		v.rows[key] = store.ViewRow{Data: append([]byte{}, row.Data...), In: slices.Clone(row.In), Rank: row.Rank, Adds: slices.Clone(row.Adds)}
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
	if v := s.d.views[name]; v != nil {
		return bytes.Clone(v.rows[key].Data), nil
	}
	return nil, nil
}

// ViewRows yields a view's rows in key order, from a key on.
func (s *views) ViewRows(ctx context.Context, name, from string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		v, err := s.of(ctx, name)
		if err != nil {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v.rows)) {
			if key >= from && !yield(key, bytes.Clone(v.rows[key].Data)) {
				return
			}
		}
	}
}

// ViewList is a part of the rows that stand in lists.
func (s *views) ViewList(ctx context.Context, name string, l store.ViewList) (out []store.Listed, err error) {
	v, err := s.of(ctx, name)
	for key, row := range v.rows {
		if r := (store.Listed{Key: key, Rank: row.Rank}); row.StandsIn(l.In) && (l.Behind == nil || l.Behind.Compare(r) < 0) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b store.Listed) int { return a.Compare(b) })
	out = out[:min(len(out), l.Most)]
	for i := range out {
		if !l.Bare {
			out[i].Data = bytes.Clone(v.rows[out[i].Key].Data)
		}
	}
	return out, err
}

// ViewCount is how many rows stand in all of some lists.
func (s *views) ViewCount(ctx context.Context, name string, in ...string) (n int64, err error) {
	v, err := s.of(ctx, name)
	for _, row := range v.rows {
		if row.StandsIn(in) {
			n++
		}
	}
	return n, err
}

// ViewSums are sums of what rows add.
func (s *views) ViewSums(ctx context.Context, name string, q store.ViewSums) ([]store.Sum, error) {
	v, err := s.of(ctx, name)
	sums := map[string]int64{}
	for _, row := range v.rows {
		row.Adding(func(kind, name string, n int64) {
			if kind == q.Kind {
				sums[name] += n
			}
		})
	}
	return q.Of(sums), err
}

// ViewAbout are the keys of the rows that are about a session.
func (s *views) ViewAbout(ctx context.Context, name string, session belay.SessionID) (keys []string, err error) {
	v, err := s.of(ctx, name)
	for key := range v.rows {
		if store.About(key) == session && session != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, err
}
