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
	base  store.Position    // of the database's
	at    store.Position    // of this one
	rows  map[string][]byte // that changed since; nil is one that is gone
	whole bool              // nothing of the database's counts any more
}

// unwritten reports whether a save failed because nothing can be written now.
func unwritten(err error) bool {
	return err != nil && (cannotWrite(err) || belay.CodeOf(err) == belay.CodeStoreFailed)
}

// SaveView moves a view and writes its rows together. Where they can't be written
// they are kept in memory.
func (vs *viewStore) SaveView(ctx context.Context, view string, from, to store.Position, rows map[string][]byte) error {
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
		v = &keptView{base: at, at: at, rows: map[string][]byte{}}
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
func (k *keptViews) keep(view string, v *keptView, to store.Position, rows map[string][]byte) error {
	size := 0
	for key, data := range rows {
		size += len(key) + len(data)
	}
	if k.size+size > maxKept {
		return belay.Errorf(belay.CodeStoreFull, "what the view %s has gained can't be written, and doesn't fit into memory", view).WithHint("free some space, or make the store writable")
	}
	k.size += size
	if to == 0 {
		v.whole = true
		clear(v.rows)
	}
	for key, data := range rows {
		v.rows[key] = bytes.Clone(data)
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
		maps.Copy(all, v.rows)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if data := all[key]; data != nil && key >= from && !yield(key, data) {
				return
			}
		}
	}
}
