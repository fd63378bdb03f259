package sqlite

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// maxKept bounds what views may take in memory, in bytes.
const maxKept = 32 << 20

// keptViews are views that were folded further than the store could be written: on
// a full or read-only disk reads go on with them. They are written with the next
// save that succeeds, and are nothing that the facts don't have.
type keptViews struct {
	any    atomic.Bool // there are some; without them the lock isn't needed
	mu     sync.Mutex
	byName map[string]*keptView
	size   int
}

// keptView is a view from where the database has it.
type keptView struct {
	base  store.Position           // of the database's
	at    store.Position           // of this one
	rows  map[string]store.ViewRow // that changed since; one without data is gone
	whole bool                     // nothing of the database's counts any more
}

// unwritten reports whether a save failed because nothing can be written now.
func unwritten(err error) bool {
	return err != nil && (cannotWrite(err) || belay.CodeOf(err) == belay.CodeStoreFailed)
}

// SaveView moves a view and writes its rows together. Where they can't be written
// they are kept in memory.
func (vs *viewStore) SaveView(ctx context.Context, view string, from, to store.Position, rows map[string]store.ViewRow) error {
	k := &vs.kept
	var err error
	if !k.any.Load() {
		if err = vs.do(ctx, &viewOp{view: view, from: from, to: to, rows: rows}); !unwritten(err) {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.byName[view]
	if v == nil {
		at, failed := vs.savedPosition(ctx, view)
		if failed != nil {
			return failed
		}
		v = &keptView{base: at, at: at, rows: map[string]store.ViewRow{}}
	}
	if v.at != from {
		return store.ErrConflict
	}
	if err := k.keep(view, v, to, rows); err != nil {
		return err
	}
	if err != nil { // just now
		return nil
	}
	err = vs.do(ctx, &viewOp{view: view, from: v.base, to: to, rows: maps.Clone(v.rows), drop: v.whole})
	if unwritten(err) {
		return nil
	}
	k.forget(view) // it is written, or another process has moved it
	return err
}

// keep adds rows to a view in memory, if there is room.
func (k *keptViews) keep(view string, v *keptView, to store.Position, rows map[string]store.ViewRow) error {
	size := 0
	for key, row := range rows {
		size += len(key) + len(row.Data) + 64*(len(row.In)+len(row.Adds))
	}
	if k.size+size > maxKept {
		return belay.Errorf(belay.CodeStoreFull, "what the view %s has gained can't be written, and doesn't fit into memory", view).WithHint("free some space, or make the store writable")
	}
	k.size += size
	if to == 0 {
		v.whole = true
		clear(v.rows)
	}
	for key, row := range rows {
		row.Data = bytes.Clone(row.Data)
		v.rows[key] = row
	}
	if v.at = to; k.byName == nil {
		k.byName = map[string]*keptView{}
	}
	k.byName[view] = v
	k.any.Store(true)
	return nil
}

func (k *keptViews) forget(view string) {
	delete(k.byName, view)
	if len(k.byName) == 0 {
		k.size = 0
		k.any.Store(false)
	}
}

// keptOf is a view in memory, or nil: then the database's counts, because it is as it
// is, or because another process has moved it.
func (vs *viewStore) keptOf(ctx context.Context, view string) (*keptView, error) {
	k := &vs.kept
	if !k.any.Load() {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.byName[view]
	if v == nil {
		return nil, nil
	}
	at, err := vs.savedPosition(ctx, view)
	if err == nil && at != v.base {
		k.forget(view)
		v = nil
	}
	if v == nil || err != nil {
		return nil, err
	}
	held := *v // rows are replaced, not changed
	held.rows = maps.Clone(v.rows)
	return &held, nil
}

// over puts the rows of a view in memory over those of the database, in key order, from
// a key on.
func (v *keptView) over(saved iter.Seq2[string, []byte], from string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		all := map[string][]byte{}
		if !v.whole {
			all = maps.Collect(saved)
		}
		for key, row := range v.rows {
			all[key] = row.Data
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if data := all[key]; data != nil && key >= from && !yield(key, data) {
				return
			}
		}
	}
}

// row is a row that changed in memory; v may be nil.
func (v *keptView) row(key string) (row store.ViewRow, changed bool) {
	if v != nil {
		row, changed = v.rows[key]
	}
	return row, changed
}

// list puts the rows of a view in memory into a part of a list.
func (v *keptView) list(saved []store.Listed, l store.ViewList) []store.Listed {
	all := slices.DeleteFunc(saved, func(r store.Listed) bool {
		_, changed := v.rows[r.Key]
		return changed
	})
	for key, row := range v.rows {
		r, m := store.Listed{Key: key, Rank: row.Rank, Data: row.Data}, marksOf(&row)
		if l.Bare {
			r.Data = nil
		}
		if row.Data != nil && m.row().StandsIn(l.In) && (l.Behind == nil || l.Behind.Compare(r) < 0) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, store.Listed.Compare)
	return all[:min(len(all), l.Most)]
}

// overlaid calls each with the marks that rows in memory have, and those that the same
// rows have in the database, which don't count.
func (vs *viewStore) overlaid(ctx context.Context, view string, v *keptView, each func(m *marks, times int64)) error {
	for key, row := range v.rows {
		is := marksOf(&row)
		each(&is, 1)
		if v.whole {
			continue
		}
		var packed []byte
		if _, err := vs.one(ctx, "SELECT r.marks FROM views v JOIN view_rows r ON r.view=v.id WHERE v.name=? AND r.key=?", []any{view, key}, &packed); err != nil {
			return err
		}
		was, err := readMarks(packed)
		if err != nil {
			return err
		}
		each(&was, -1)
	}
	return nil
}
