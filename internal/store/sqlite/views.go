package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"maps"
	"slices"

	"github.com/belay-run/belay/internal/store"
)

// viewStore keeps read models, in memory where they can't be written.
type viewStore struct {
	*access
	kept keptViews
}

type viewOp struct {
	view     string
	from, to store.Position
	rows     map[string]store.ViewRow
	drop     bool // what the view had before goes
}

func (v *viewOp) apply(w *writer) error {
	var id int64
	var at store.Position
	found, err := w.row("SELECT id, pos FROM views WHERE name=?", []any{v.view}, &id, &at)
	if err != nil {
		return err
	}
	if at != v.from {
		return refusal{store.ErrConflict}
	}
	if found {
		err = w.exec("UPDATE views SET pos=? WHERE id=?", int64(v.to), id)
	} else {
		id, err = w.insert("INSERT INTO views (name, pos) VALUES (?,?)", v.view, int64(v.to))
	}
	if err == nil && (v.to == 0 || v.drop) {
		err = w.dropView(id)
	}
	if v.to == 0 || err != nil {
		return err
	}
	return v.write(w, id)
}

// dropView removes the rows of a view.
func (w *writer) dropView(view int64) error {
	for _, table := range []string{"view_rows", "view_lists", "view_sums"} {
		if err := w.exec("DELETE FROM "+table+" WHERE view=?", view); err != nil {
			return err
		}
	}
	return nil
}

func (v *viewOp) write(w *writer, view int64) error {
	changed := sums{}
	for _, key := range slices.Sorted(maps.Keys(v.rows)) {
		row := v.rows[key]
		was, err := w.replace(view, key, &row)
		if err != nil {
			return err
		}
		is := marksOf(&row)
		changed.add(&was, -1)
		changed.add(&is, 1)
		if err := w.move(view, key, &was, &is); err != nil {
			return err
		}
	}
	return w.addSums(view, changed)
}

// replace writes a row, or removes it, and returns the marks that it had.
func (w *writer) replace(view int64, key string, row *store.ViewRow) (was marks, err error) {
	var packed []byte
	if _, err := w.row("SELECT marks FROM view_rows WHERE view=? AND key=?", []any{view, key}, &packed); err != nil {
		return was, err
	}
	if was, err = readMarks(packed); err != nil {
		was, err = marks{}, nil // the view is made anew, not repaired
	}
	if row.Data == nil {
		return was, w.exec("DELETE FROM view_rows WHERE view=? AND key=?", view, key)
	}
	is := marksOf(row)
	now, err := is.packed()
	if err != nil {
		return was, err
	}
	w.grown += len(row.Data) + len(now)
	return was, w.exec("INSERT INTO view_rows (view, key, data, about, marks) VALUES (?,?,?,?,?) "+
		"ON CONFLICT (view, key) DO UPDATE SET data=excluded.data, marks=excluded.marks", view, key, row.Data, string(store.About(key)), now)
}

// ViewPosition is how far a view is folded.
func (vs *viewStore) ViewPosition(ctx context.Context, view string) (at store.Position, err error) {
	v, err := vs.keptOf(ctx, view)
	if err != nil {
		return 0, err
	}
	if v != nil {
		return v.at, nil
	}
	return vs.savedPosition(ctx, view)
}

func (vs *viewStore) savedPosition(ctx context.Context, view string) (at store.Position, err error) {
	_, err = vs.one(ctx, "SELECT pos FROM views WHERE name=?", []any{view}, &at)
	return at, err
}

// ViewRow is one row of a view, or nil.
func (vs *viewStore) ViewRow(ctx context.Context, view, key string) (data []byte, err error) {
	v, err := vs.keptOf(ctx, view)
	if err != nil {
		return nil, err
	}
	if v != nil {
		if row, changed := v.row(key); changed || v.whole {
			return row.Data, nil
		}
	}
	found, err := vs.one(ctx, "SELECT r.data FROM views v JOIN view_rows r ON r.view=v.id WHERE v.name=? AND r.key=?", []any{view, key}, &data)
	if found {
		data = notNil(data) // nil means that there is no row
	}
	return data, err
}

type viewRow struct {
	key  string
	data []byte
}

// ViewRows yields a view's rows from a key on, in key order, read in portions.
func (vs *viewStore) ViewRows(ctx context.Context, view, from string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		v, err := vs.keptOf(ctx, view)
		switch {
		case err != nil: // as below
		case v == nil:
			vs.savedRows(ctx, view, from)(yield)
		default:
			v.over(vs.savedRows(ctx, view, from), from)(yield)
		}
	}
}

// firstRows is how many rows are read first: often the first ones are enough.
const firstRows = 16

func (vs *viewStore) savedRows(ctx context.Context, view, from string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for from, size := from, firstRows; ; size = min(2*size, pageSize) {
			var part []viewRow
			err := vs.query(ctx, "SELECT r.key, r.data FROM views v JOIN view_rows r ON r.view=v.id "+
				"WHERE v.name=? AND r.key>=? ORDER BY r.key LIMIT ?+0", []any{view, from, size},
				func(rows *sql.Rows) error {
					var r viewRow
					err := rows.Scan(&r.key, &r.data)
					part = append(part, viewRow{r.key, notNil(r.data)})
					return err
				})
			if err != nil {
				return // the interface has no place for it: a view is rebuilt, not trusted
			}
			for _, r := range part {
				if r.key < from || !yield(r.key, r.data) {
					return // out of order is damage, and would never end
				}
				from = r.key + "\x00" // the next possible key
			}
			if len(part) < size {
				return
			}
		}
	}
}
