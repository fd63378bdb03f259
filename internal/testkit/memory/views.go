package memory

import (
	"bytes"
	"cmp"
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
		if r := (store.Listed{Key: key, Rank: row.Rank}); inAll(row, l.In) && (l.Behind == nil || l.Behind.Compare(r) < 0) {
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
		if inAll(row, in) {
			n++
		}
	}
	return n, err
}

// inAll reports whether a row stands in all of some lists.
func inAll(row store.ViewRow, in []string) bool {
	return len(in) > 0 && !slices.ContainsFunc(in, func(list string) bool { return !slices.Contains(row.In, list) })
}

// ViewSums are sums of what rows add.
func (s *views) ViewSums(ctx context.Context, name string, q store.ViewSums) (out []store.Sum, err error) {
	v, err := s.of(ctx, name)
	sums := map[string]int64{}
	for _, row := range v.rows {
		row.Adding(func(kind, name string, n int64) {
			if kind == q.Kind {
				sums[name] += n
			}
		})
	}
	for n, sum := range sums {
		if sum != 0 && n >= q.From {
			out = append(out, store.Sum{Kind: q.Kind, Name: n, N: sum})
		}
	}
	slices.SortFunc(out, func(a, b store.Sum) int {
		if q.Largest && a.N != b.N {
			return cmp.Compare(b.N, a.N)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	if q.Most > 0 {
		out = out[:min(len(out), q.Most)]
	}
	return out, err
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
