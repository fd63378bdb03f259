package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// marks are where a row of a view stands and what it adds, as they are kept with it: so
// that it can be taken out again.
type marks struct {
	Place int64       `json:"p,omitempty"` // in its lists, the smallest first
	In    []string    `json:"in,omitempty"`
	Adds  []store.Sum `json:"adds,omitempty"`
}

func marksOf(r *store.ViewRow) marks {
	if r.Data == nil || len(r.In)+len(r.Adds) == 0 {
		return marks{}
	}
	return marks{-r.Rank, r.In, r.Adds}
}

// row is the inverse of marksOf, but for the data.
func (m *marks) row() *store.ViewRow {
	return &store.ViewRow{Data: []byte{}, In: m.In, Rank: -m.Place, Adds: m.Adds}
}

// packed is empty for a row that stands nowhere and adds nothing.
func (m *marks) packed() ([]byte, error) {
	if len(m.In)+len(m.Adds) == 0 {
		return []byte{}, nil
	}
	return json.Marshal(m)
}

// readMarks is the inverse of packed.
func readMarks(b []byte) (m marks, err error) {
	if len(b) > 0 {
		err = json.Unmarshal(b, &m)
	}
	return m, err
}

// sums are changes of a view's sums, by kind and name.
type sums map[[2]string]int64

// add adds what a row with these marks does, so many times.
func (s sums) add(m *marks, times int64) {
	m.row().Adding(func(kind, name string, n int64) { s[[2]string{kind, name}] += times * n })
}

// move takes a row out of the lists where it stood and puts it where it stands now.
func (w *writer) move(view int64, key string, was, is *marks) error {
	var stay []any
	for _, list := range was.In {
		if slices.Contains(is.In, list) {
			stay = append(stay, list)
		} else if err := w.exec("DELETE FROM view_lists WHERE view=? AND list=? AND place=? AND key=?", view, list, was.Place, key); err != nil {
			return err
		}
	}
	if len(stay) > 0 && was.Place != is.Place {
		query := "UPDATE view_lists SET place=? WHERE view=? AND place=? AND key=? AND list IN (?" + strings.Repeat(",?", len(stay)-1) + ")"
		if err := w.exec(query, append([]any{is.Place, view, was.Place, key}, stay...)...); err != nil {
			return err
		}
	}
	for _, list := range is.In {
		if slices.Contains(was.In, list) {
			continue
		}
		if err := w.exec("INSERT OR IGNORE INTO view_lists (view, list, place, key) VALUES (?,?,?,?)", view, list, is.Place, key); err != nil {
			return err
		}
	}
	return nil
}

// addSums changes sums of a view.
func (w *writer) addSums(view int64, by sums) error {
	for _, of := range slices.SortedFunc(maps.Keys(by), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if by[of] == 0 {
			continue
		}
		const add = "INSERT INTO view_sums (view, kind, name, n) VALUES (?,?,?,?) ON CONFLICT (view, kind, name) DO UPDATE SET n=n+excluded.n RETURNING n"
		var n int64
		if _, err := w.row(add, []any{view, of[0], of[1], by[of]}, &n); err != nil {
			return err
		}
		if n != 0 {
			continue
		}
		if err := w.exec("DELETE FROM view_sums WHERE view=? AND kind=? AND name=?", view, of[0], of[1]); err != nil {
			return err
		}
	}
	return nil
}

// dropAbout removes the rows of all views that are about a session, and what of them
// stands in lists and sums.
func (w *writer) dropAbout(session belay.SessionID) error {
	type row struct {
		view int64
		key  string
		marks
	}
	var rows []row
	const marked = "SELECT view, key, marks FROM view_rows WHERE about=? AND about<>'' AND marks<>x''"
	err := w.each(marked, []any{string(session)}, func(r *sql.Rows) error {
		var one row
		var packed []byte
		err := r.Scan(&one.view, &one.key, &packed)
		if err == nil {
			one.marks, err = readMarks(packed)
		}
		rows = append(rows, one)
		return err
	})
	by := map[int64]sums{}
	err = cmp.Or(err, w.exec(secureDeleteOn))
	for _, r := range rows {
		if by[r.view] == nil {
			by[r.view] = sums{}
		}
		by[r.view].add(&r.marks, -1)
		if err == nil {
			err = w.move(r.view, r.key, &r.marks, &marks{})
		}
	}
	for _, view := range slices.Sorted(maps.Keys(by)) {
		if err == nil {
			err = w.addSums(view, by[view])
		}
	}
	if err == nil {
		err = w.exec("DELETE FROM view_rows WHERE about=? AND about<>''", string(session))
	}
	return cmp.Or(err, w.exec(secureDeleteFast))
}

// ViewList is a part of the rows that stand in lists.
func (vs *viewStore) ViewList(ctx context.Context, view string, l store.ViewList) ([]store.Listed, error) {
	v, err := vs.keptOf(ctx, view)
	if err != nil || len(l.In) == 0 {
		return nil, err
	}
	if v == nil {
		return vs.savedList(ctx, view, l)
	}
	more := l
	more.Most += len(v.rows)
	if v.whole {
		more.Most = 0
	}
	saved, err := vs.savedList(ctx, view, more)
	return v.list(saved, l), err
}

// savedList is ViewList of what the database has.
func (vs *viewStore) savedList(ctx context.Context, view string, l store.ViewList) (out []store.Listed, err error) {
	query, args := listed(view, l.In)
	data := "r.data"
	if l.Bare {
		query, data = strings.Replace(query, rowsOfList, "", 1), "NULL"
	}
	if b := l.Behind; b != nil {
		query, args = query+" AND (l.place, l.key) > (?,?)", append(args, -b.Rank, b.Key)
	}
	query = "SELECT l.key, l.place, " + data + " FROM " + query + " ORDER BY l.place, l.key LIMIT ?+0"
	err = vs.query(ctx, query, append(args, l.Most), func(rows *sql.Rows) error {
		var r store.Listed
		err := rows.Scan(&r.Key, &r.Rank, &r.Data)
		if r.Rank = -r.Rank; !l.Bare {
			r.Data = notNil(r.Data)
		}
		out = append(out, r)
		return err
	})
	return out, err
}

// rowsOfList joins the rows of a list.
const rowsOfList = " CROSS JOIN view_rows r ON r.view=l.view AND r.key=l.key"

// listed is a query for the rows that stand in lists.
func listed(view string, in []string) (query string, args []any) {
	query = "views v JOIN view_lists l ON l.view=v.id" + rowsOfList + " WHERE v.name=? AND l.list=?"
	args = []any{view, in[0]}
	for _, list := range in[1:] {
		query += " AND EXISTS (SELECT 1 FROM view_lists o WHERE o.view=l.view AND o.list=? AND o.place=l.place AND o.key=l.key)"
		args = append(args, list)
	}
	return query, args
}

// ViewCount is how many rows stand in all of some lists.
func (vs *viewStore) ViewCount(ctx context.Context, view string, in ...string) (n int64, err error) {
	v, err := vs.keptOf(ctx, view)
	if err != nil || len(in) == 0 {
		return 0, err
	}
	if v == nil || !v.whole {
		query, args := listed(view, in)
		query = strings.Replace(query, rowsOfList, "", 1)
		if _, err = vs.one(ctx, "SELECT count(*) FROM "+query, args, &n); err != nil || v == nil {
			return n, err
		}
	}
	return n, vs.overlaid(ctx, view, v, func(m *marks, times int64) {
		if m.row().StandsIn(in) {
			n += times
		}
	})
}

// ViewSums are sums of what rows add.
func (vs *viewStore) ViewSums(ctx context.Context, view string, q store.ViewSums) ([]store.Sum, error) {
	v, err := vs.keptOf(ctx, view)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return vs.savedSums(ctx, view, q)
	}
	all := sums{}
	if !v.whole {
		saved, err := vs.savedSums(ctx, view, store.ViewSums{Kind: q.Kind})
		if err != nil {
			return nil, err
		}
		all.add(&marks{Adds: saved}, 1)
	}
	if err := vs.overlaid(ctx, view, v, all.add); err != nil {
		return nil, err
	}
	of := map[string]int64{}
	for sum, n := range all {
		if sum[0] == q.Kind {
			of[sum[1]] = n
		}
	}
	return q.Of(of), nil
}

// savedSums is ViewSums of what the database has.
func (vs *viewStore) savedSums(ctx context.Context, view string, q store.ViewSums) (out []store.Sum, err error) {
	order := "s.name"
	if q.Largest {
		order = "s.n DESC, s.name"
	}
	most := int64(q.Most)
	if most == 0 {
		most = -1
	}
	const query = "SELECT s.name, s.n FROM views v JOIN view_sums s ON s.view=v.id WHERE v.name=? AND s.kind=? AND s.name>=? ORDER BY "
	err = vs.query(ctx, query+order+" LIMIT ?+0", []any{view, q.Kind, q.From, most}, func(rows *sql.Rows) error {
		s := store.Sum{Kind: q.Kind}
		err := rows.Scan(&s.Name, &s.N)
		out = append(out, s)
		return err
	})
	return out, err
}

// ViewAbout are the keys of the rows that are about a session.
func (vs *viewStore) ViewAbout(ctx context.Context, view string, session belay.SessionID) (keys []string, err error) {
	v, err := vs.keptOf(ctx, view)
	if err != nil || session == "" {
		return nil, err
	}
	if v == nil || !v.whole {
		const about = "SELECT r.key FROM views v JOIN view_rows r ON r.view=v.id WHERE v.name=? AND r.about=? AND r.about<>'' ORDER BY r.key"
		err = vs.query(ctx, about, []any{view, string(session)}, func(rows *sql.Rows) error {
			var key string
			err := rows.Scan(&key)
			if _, changed := v.row(key); !changed {
				keys = append(keys, key)
			}
			return err
		})
	}
	if v != nil {
		for key, row := range v.rows {
			if row.Data != nil && store.About(key) == session {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
	}
	return keys, err
}
