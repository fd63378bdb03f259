package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Views keeps read models with the position up to which they are folded. A row
// whose key ends in "/" and the id of a session is about that session and is
// deleted with it, as is what it adds and where it is listed; what else a view has of
// it goes when the view is folded past the deletion, which Tombstones tells.
//
// Besides by its key, a row is found in the lists that it says it stands in, and it
// adds to sums: so a page of a list, and a figure of all rows, cost what they show.
type Views interface {
	// ViewPosition is 0 for a view that doesn't exist.
	ViewPosition(ctx context.Context, view string) (Position, error)
	// SaveView writes rows (those without data are deleted) and moves the view from one
	// position to another; ErrConflict when it isn't at from. Resetting: to = 0 drops
	// all rows.
	SaveView(ctx context.Context, view string, from, to Position, rows map[string]ViewRow) error
	// ViewRow returns the data of one row or nil.
	ViewRow(ctx context.Context, view, key string) ([]byte, error)
	// ViewRows yields the rows in key order, from a key on; "" is all.
	ViewRows(ctx context.Context, view, from string) iter.Seq2[string, []byte]
	// ViewList returns a part of the rows that stand in lists, in their order.
	ViewList(ctx context.Context, view string, l ViewList) ([]Listed, error)
	// ViewCount is how many rows stand in all of the lists. It looks at each row of the
	// first one, unless there is no other: ListSizes has that.
	ViewCount(ctx context.Context, view string, in ...string) (int64, error)
	// ViewSums returns the sums of a kind that aren't 0, in the order of their names,
	// from a name on, or the largest first.
	ViewSums(ctx context.Context, view string, s ViewSums) ([]Sum, error)
	// ViewAbout returns the keys of the rows that are about a session.
	ViewAbout(ctx context.Context, view string, session belay.SessionID) ([]string, error)
}

// ViewRow is a row of a view, as it is saved.
type ViewRow struct {
	Data []byte   // nil: there is no such row any more
	In   []string // lists in which it stands
	Rank int64    // its place in them: the largest comes first, and of several the first key
	Adds []Sum    // to sums of the view
}

// ListSizes is the kind of the sums that say how many rows stand in each list.
const ListSizes = "sizes of lists"

// Adding is what a row adds to sums: what it says, and one to each of its lists.
func (r *ViewRow) Adding(each func(kind, name string, n int64)) {
	if r.Data == nil {
		return
	}
	for _, list := range r.In {
		each(ListSizes, list, 1)
	}
	for _, a := range r.Adds {
		each(a.Kind, a.Name, a.N)
	}
}

// StandsIn reports whether a row stands in all of some lists, of which there is one.
func (r *ViewRow) StandsIn(lists []string) bool {
	return len(lists) > 0 && !slices.ContainsFunc(lists, func(list string) bool { return !slices.Contains(r.In, list) })
}

// Sum is what the rows of a view add up to that add to one kind and name.
type Sum struct {
	Kind, Name string
	N          int64
}

// ViewList is which rows of lists are meant.
type ViewList struct {
	In     []string // the rows that stand in all of these; the fewest stand in the first, or it takes longer
	Behind *Listed  // only those behind this one; nil: from the first one on
	Most   int      // at most so many
	Bare   bool     // without their data
}

// Listed is a row in a list.
type Listed struct {
	Key  string
	Rank int64
	Data []byte
}

// Compare is the order of rows in a list.
func (l Listed) Compare(o Listed) int {
	return cmp.Or(cmp.Compare(o.Rank, l.Rank), cmp.Compare(l.Key, o.Key))
}

// ViewSums is which sums are meant.
type ViewSums struct {
	Kind    string
	From    string // the first name
	Largest bool   // the largest first, not by their names
	Most    int    // at most so many; 0 is all
}

// Of is what is meant of the sums of the kind, by name.
func (q ViewSums) Of(sums map[string]int64) (out []Sum) {
	for name, n := range sums {
		if n != 0 && name >= q.From {
			out = append(out, Sum{Kind: q.Kind, Name: name, N: n})
		}
	}
	slices.SortFunc(out, func(a, b Sum) int {
		if q.Largest && a.N != b.N {
			return cmp.Compare(b.N, a.N)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	if q.Most > 0 {
		out = out[:min(len(out), q.Most)]
	}
	return out
}

// About is the session that a row of a view is about: what follows the last slash of
// its key.
func About(key string) belay.SessionID {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return ""
	}
	return belay.SessionID(key[i+1:])
}
