package storetest

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// listed holds a view with lists and sums against plain maps of its rows.
type listed struct {
	l    *lab
	r    *rapid.T
	at   store.Position
	rows map[string]store.ViewRow
}

var (
	listNames = []string{"all", "red", "blue"}
	listKeys  = []string{"1/sess_a", "1/sess_b", "1/sess_c", "2/x/sess_a", "2/y/sess_b", "3/z", "plain"}
)

// Lists holds the lists and sums of a store's views against plain maps. before is called
// at each save and may change what the store can do; nil is nothing.
func Lists(t *testing.T, c Config, before func(r *rapid.T, s store.Store)) {
	rapid.Check(t, func(r *rapid.T) {
		s := c.Open(t, newEnv())
		l := &lab{tester: r, t: t, Store: s, c: c}
		defer func() { l.must(l.Store.Close()) }()
		v := &listed{l: l, r: r, rows: map[string]store.ViewRow{}}
		for range rapid.IntRange(1, 12).Draw(r, "operations") {
			if before != nil {
				before(r, s)
			}
			if rapid.IntRange(0, 9).Draw(r, "reset") == 0 {
				v.save(0, nil)
				clear(v.rows)
			} else {
				v.save(v.at+1, v.change())
			}
		}
		v.compare()
	})
}

func (v *listed) save(to store.Position, rows map[string]store.ViewRow) {
	v.l.must(v.l.SaveView(v.l.Context(), "listed", v.at, to, rows))
	v.at = to
	for key, row := range rows {
		if v.rows[key] = row; row.Data == nil {
			delete(v.rows, key)
		}
	}
}

// change draws rows to save.
func (v *listed) change() map[string]store.ViewRow {
	rows := map[string]store.ViewRow{}
	for range rapid.IntRange(0, 4).Draw(v.r, "rows") {
		key := rapid.SampledFrom(listKeys).Draw(v.r, "key")
		row := store.ViewRow{Rank: rapid.Int64Range(-2, 2).Draw(v.r, "rank")}
		if rapid.IntRange(0, 3).Draw(v.r, "gone") > 0 {
			row.Data = []byte(key + rapid.StringMatching(`[a-c]`).Draw(v.r, "data"))
		}
		for _, list := range listNames {
			if rapid.Bool().Draw(v.r, list) {
				row.In = append(row.In, list)
			}
		}
		for range rapid.IntRange(0, 3).Draw(v.r, "adds") {
			row.Adds = append(row.Adds, store.Sum{Kind: rapid.SampledFrom([]string{"n", "m"}).Draw(v.r, "kind"),
				Name: rapid.SampledFrom(listNames).Draw(v.r, "name"), N: rapid.Int64Range(-2, 3).Draw(v.r, "adds")})
		}
		rows[key] = row
	}
	return rows
}

func (v *listed) compare() {
	ctx := v.l.Context()
	for _, in := range [][]string{{"all"}, {"red", "all"}, {"blue", "red", "all"}, {"none"}, {}} {
		v.list(in)
	}
	for _, q := range []store.ViewSums{{Kind: "n"}, {Kind: "m", From: "b"}, {Kind: "n", Largest: true}, {Kind: "m", Most: 1}, {Kind: "n", Largest: true, Most: 2}, {Kind: "none"},
		{Kind: store.ListSizes}, {Kind: store.ListSizes, From: "red", Most: 1}} {
		got, err := v.l.ViewSums(ctx, "listed", q)
		v.l.must(err)
		same(v.l, "sums", got, v.sums(q))
	}
	for _, s := range []belay.SessionID{"sess_a", "sess_c", "z", "plain", ""} {
		got, err := v.l.ViewAbout(ctx, "listed", s)
		v.l.must(err)
		var want []string
		for key := range v.rows {
			if s != "" && store.About(key) == s {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		same(v.l, "rows about "+string(s), got, want)
	}
}

// list reads rows that stand in lists, in parts of any size.
func (v *listed) list(in []string) {
	var want []store.Listed
	for key, row := range v.rows {
		if len(in) > 0 && !slices.ContainsFunc(in, func(list string) bool { return !slices.Contains(row.In, list) }) {
			want = append(want, store.Listed{Key: key, Rank: row.Rank, Data: row.Data})
		}
	}
	slices.SortFunc(want, store.Listed.Compare)
	n, err := v.l.ViewCount(v.l.Context(), "listed", in...)
	v.l.must(err)
	var got []store.Listed
	most, bare := rapid.IntRange(1, 4).Draw(v.r, "part"), rapid.Bool().Draw(v.r, "bare")
	for i := range want {
		if bare {
			want[i].Data = nil
		}
	}
	for q := (store.ViewList{In: in, Most: most, Bare: bare}); ; q.Behind = &got[len(got)-1] {
		part, err := v.l.ViewList(v.l.Context(), "listed", q)
		v.l.must(err)
		if got = append(got, part...); len(part) < most {
			break
		}
	}
	text := func(r store.Listed) string { return string(r.Data) }
	if int(n) != len(want) || !slices.EqualFunc(got, want, func(a, b store.Listed) bool { return a.Compare(b) == 0 && text(a) == text(b) }) {
		v.l.Fatalf("in %q: %d, %v, want %v", in, n, got, want)
	}
}

func (v *listed) sums(q store.ViewSums) (want []store.Sum) {
	sums := map[string]int64{}
	for _, row := range v.rows {
		for _, a := range row.Adds {
			if a.Kind == q.Kind {
				sums[a.Name] += a.N
			}
		}
		for _, list := range row.In {
			if q.Kind == store.ListSizes {
				sums[list]++
			}
		}
	}
	maps.DeleteFunc(sums, func(name string, n int64) bool { return n == 0 || name < q.From })
	for name, n := range sums {
		want = append(want, store.Sum{Kind: q.Kind, Name: name, N: n})
	}
	slices.SortFunc(want, func(a, b store.Sum) int {
		if q.Largest && a.N != b.N {
			return cmp.Compare(b.N, a.N)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	if q.Most > 0 {
		want = want[:min(len(want), q.Most)]
	}
	return want
}

// DataRows are rows with data and nothing besides.
func DataRows(data map[string][]byte) map[string]store.ViewRow {
	rows := make(map[string]store.ViewRow, len(data))
	for key, d := range data {
		rows[key] = store.ViewRow{Data: d}
	}
	return rows
}
