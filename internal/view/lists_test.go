package view_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
)

// anyLabel draws a fact by which a session can be chosen.
func anyLabel(rt *rapid.T) fact {
	id := belay.SessionID("sess_" + fmt.Sprint(rapid.IntRange(1, 4).Draw(rt, "session")))
	ids := belay.IDs{Session: id, Thread: belay.ThreadID("thr_" + id), Turn: "turn_1", Action: belay.ActionID("act_" + id), Process: "proc_1"}
	tag := []string{rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tag")}
	f := rapid.SampledFrom([]fact{
		{id.Stream(), ids, event.SessionCreated{Workspace: rapid.SampledFrom([]string{"/ws", `/w" status "ended`}).Draw(rt, "workspace"), Title: "T" + string(id)}, 0},
		{id.Stream(), ids, event.SessionUpdated{Tag: tag}, 0},
		{id.Stream(), ids, event.SessionUpdated{Untag: tag}, 0},
		{id.Stream(), ids, event.SessionUpdated{Archived: new(rapid.Bool().Draw(rt, "archived"))}, 0},
		{id.Stream(), ids, event.SessionUpdated{Worktree: &belay.Worktree{Repository: "/ws", Path: "/tree"}}, 0},
		{ids.Thread.Stream(), ids, event.TurnStarted{Agent: &event.AgentUsed{Name: "kim"}}, 0},
		{ids.Thread.Stream(), ids, event.ProcessStarted{}, 0},
		{ids.Thread.Stream(), ids, event.ProcessCompleted{}, 0},
		{ids.Thread.Stream(), ids, event.ActionRequired{Kind: "question", Until: t0.Add(time.Duration(rapid.IntRange(0, 9).Draw(rt, "until")) * time.Minute)}, 0},
		{ids.Thread.Stream(), ids, event.ActionResolved{}, 0},
		{ids.Thread.Stream(), ids, event.TurnFailed{Outcome: rapid.SampledFrom([]belay.Outcome{belay.Failed, belay.Denied, belay.Cancelled}).Draw(rt, "outcome")}, 0},
		{ids.Thread.Stream(), ids, event.CostRecorded{Cost: event.Cost{Amount: 7, Currency: "USD", Usage: belay.Usage{Input: 5, Reported: true}}, Failed: true}, 0},
	}).Draw(rt, "fact")
	f.after = time.Duration(rapid.IntRange(0, 90).Draw(rt, "minutes")) * time.Minute
	return f
}

// filtered is what a filter chooses among all rows, looked at one by one.
func filtered(all []view.Session, f view.Filter) (want []view.Session) {
	for _, s := range all {
		t := s.Turn()
		in := f.Workspace == "" || s.Workspace == f.Workspace || s.Worktree != nil && s.Worktree.Repository == f.Workspace
		if in && (f.Archived == nil || *f.Archived == s.Archived) && (f.Text == "" || strings.Contains(s.Title, f.Text)) &&
			!slices.ContainsFunc(f.Tags, func(t string) bool { return !slices.Contains(s.Tags, t) }) &&
			(f.Status == "" || t != nil && t.Status == f.Status) && (f.Outcome == "" || t != nil && t.Outcome == f.Outcome) {
			want = append(want, s)
		}
	}
	slices.SortFunc(want, func(a, b view.Session) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(string(a.ID), string(b.ID)))
	})
	return want
}

// rowsOf are all rows of sessions, as they are stored.
func rowsOf(rt *rapid.T, st store.Store) (all []view.Session) {
	for key, data := range st.ViewRows(context.Background(), view.Name, "1/") {
		if !strings.HasPrefix(key, "1/") {
			break
		}
		var s view.Session
		if err := json.Unmarshal(data, &s); err != nil {
			rt.Fatal(err)
		}
		if !s.Created.IsZero() {
			all = append(all, s)
		}
	}
	return all
}

// TestListsAreThoseOfTheRows: what is read of lists and sums is what all rows say.
func TestListsAreThoseOfTheRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		st := memory.Open(memory.Options{})
		w := newWriter(t, st)
		p := view.Projector{Store: st, Chunk: rapid.IntRange(1, 7).Draw(rt, "chunk")}
		for range rapid.IntRange(1, 50).Draw(rt, "facts") {
			if w.add(anyLabel(rt)); rapid.Bool().Draw(rt, "look") {
				must(rt, p.Catchup(t.Context()))
			}
		}
		must(rt, p.Catchup(t.Context()))
		if gone := belay.SessionID("sess_1"); w.epochs[gone] > 0 && rapid.Bool().Draw(rt, "delete") {
			must(rt, st.Release(t.Context(), gone, w.epochs[gone]))
			_, err := st.DeleteSession(t.Context(), gone, "user:ann")
			must(rt, err)
			must(rt, p.Catchup(t.Context()))
		}
		all := rowsOf(rt, st)
		chosen(t.Context(), rt, st, all)
		listedBesides(t.Context(), rt, st, all)
	})
}

func must(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

// chosen compares pages of any filter with what is chosen of all rows.
func chosen(ctx context.Context, rt *rapid.T, st store.Store, all []view.Session) {
	for range 8 {
		f := view.Filter{
			Workspace: rapid.SampledFrom([]string{"", "/ws", "/tree", `/w" status "ended`}).Draw(rt, "in"),
			Status:    rapid.SampledFrom([]string{"", view.Ended, view.Running, view.Waiting}).Draw(rt, "status"),
			Outcome:   rapid.SampledFrom([]belay.Outcome{"", belay.Failed, belay.Denied}).Draw(rt, "ended"),
			Tags:      rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}}).Draw(rt, "tags"),
			Text:      rapid.SampledFrom([]string{"", "", "Tsess_1"}).Draw(rt, "text"),
			Limit:     rapid.IntRange(1, 3).Draw(rt, "limit"),
		}
		if n := rapid.IntRange(0, 2).Draw(rt, "which"); n > 0 {
			f.Archived = new(n == 1)
		}
		want := filtered(all, f)
		var got []view.Session
		for more := true; more; {
			page, err := view.PageOf(ctx, st, f)
			must(rt, err)
			got = append(got, page.Sessions...)
			if more = len(page.Sessions) == f.Limit; more {
				f.Before = &got[len(got)-1]
			}
			if page.Total != len(want) {
				rt.Fatalf("%+v: %d in all, want %d", f, page.Total, len(want))
			}
		}
		if g, w := idsOf(got), idsOf(want); g != w {
			rt.Fatalf("%+v: %s, want %s", f, g, w)
		}
	}
}

func idsOf(all []view.Session) string {
	var ids []string
	for _, s := range all {
		ids = append(ids, string(s.ID))
	}
	return strings.Join(ids, " ")
}

// listedBesides compares the other lists, and the figures of a day.
func listedBesides(ctx context.Context, rt *rapid.T, st store.Store, all []view.Session) {
	thread := func(is func(view.Thread) bool) func(view.Session) bool {
		return func(s view.Session) bool { return slices.ContainsFunc(s.Threads, is) }
	}
	for list, is := range map[string]func(view.Session) bool{
		view.RunningList:  thread(func(th view.Thread) bool { return th.Turn != nil && th.Turn.Status == view.Running }),
		view.ProgramsList: thread(func(th view.Thread) bool { return len(th.Running) > 0 }),
		view.TreesList:    func(s view.Session) bool { return s.Worktree != nil },
	} {
		got, err := view.In(ctx, st, list, 0)
		must(rt, err)
		n, err := view.CountIn(ctx, st, list)
		must(rt, err)
		want := filtered(slices.DeleteFunc(slices.Clone(all), func(s view.Session) bool { return !is(s) }), view.Filter{})
		if g, w := idsOf(got), idsOf(want); g != w || n != len(want) {
			rt.Fatalf("%s: %d, %s, want %s", list, n, g, w)
		}
	}
	turns, err := view.TurnsOf(ctx, st, "kim")
	must(rt, err)
	var open []view.Action
	since := t0.Add(20 * time.Hour)
	want, works := view.Day{Ends: map[belay.Outcome]int{}}, 0
	for _, s := range all {
		open = append(open, s.Actions...)
		if !s.Updated.Before(since) {
			want.Sessions, want.Tokens, want.Cost = want.Sessions+1, want.Tokens+s.Tokens, want.Cost.Add(s.Cost)
		}
		for _, th := range s.Threads {
			if t := th.Turn; t != nil && t.Status == view.Ended && !t.Ended.Before(since) {
				want.Ends[t.Outcome]++
			} else if t != nil && t.Status != view.Ended && t.Agent == "kim" {
				works++
			}
		}
	}
	slices.SortFunc(open, func(a, b view.Action) int {
		return cmp.Or(a.Until.Compare(b.Until), strings.Compare(string(a.ID), string(b.ID)))
	})
	asked, n, err := view.OpenActions(ctx, st, 2)
	must(rt, err)
	day, err := view.DaySince(ctx, st, since)
	must(rt, err)
	if n != len(open) || len(asked) != min(2, n) || n > 0 && asked[0].ID != open[0].ID || len(turns) != works || fmt.Sprint(day) != fmt.Sprint(want) {
		rt.Fatalf("open %d, %v, want %v; works %v, want %d; day %+v, want %+v", n, asked, open, turns, works, day, want)
	}
}

// counting counts the rows of views that are read.
type counting struct {
	store.Store
	rows int
}

func (c *counting) ViewRows(ctx context.Context, view, from string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key, data := range c.Store.ViewRows(ctx, view, from) {
			if c.rows++; !yield(key, data) {
				return
			}
		}
	}
}

func (c *counting) ViewRow(ctx context.Context, view, key string) ([]byte, error) {
	c.rows++
	return c.Store.ViewRow(ctx, view, key)
}

func (c *counting) ViewList(ctx context.Context, view string, l store.ViewList) ([]store.Listed, error) {
	rows, err := c.Store.ViewList(ctx, view, l)
	c.rows += len(rows)
	return rows, err
}

func (c *counting) ViewSums(ctx context.Context, view string, q store.ViewSums) ([]store.Sum, error) {
	sums, err := c.Store.ViewSums(ctx, view, q)
	c.rows += len(sums)
	return sums, err
}

// TestAPageReadsWhatItShows: the same rows, however many sessions there are.
func TestAPageReadsWhatItShows(t *testing.T) {
	read := func(sessions int) map[string]int {
		st := &counting{Store: memory.Open(memory.Options{})}
		w := newWriter(t, st)
		for i := range sessions {
			id := belay.SessionID(fmt.Sprintf("sess_%06x", i))
			ids := belay.IDs{Session: id, Thread: belay.ThreadID("thr_" + id), Turn: "turn_1", Action: belay.ActionID(fmt.Sprintf("act_%06x", i))}
			w.add(fact{id.Stream(), ids, event.SessionCreated{Workspace: "/ws", Title: "work"}, time.Millisecond},
				fact{ids.Thread.Stream(), ids, event.TurnStarted{}, time.Millisecond},
				fact{ids.Thread.Stream(), ids, event.ActionRequired{Kind: "question", Until: w.now.Add(time.Hour)}, time.Millisecond})
			if i%2 == 0 {
				w.add(fact{ids.Thread.Stream(), ids, event.TurnFailed{Outcome: belay.Failed}, time.Millisecond})
			}
		}
		if err := view.Catchup(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		counted := map[string]int{}
		for name, do := range map[string]func() error{
			"page": func() error {
				_, err := view.PageOf(t.Context(), st, view.Filter{Workspace: "/ws", Limit: 10})
				return err
			},
			"outcome": func() error {
				_, err := view.PageOf(t.Context(), st, view.Filter{Outcome: belay.Failed, Limit: 10})
				return err
			},
			"newest": func() error {
				_, err := view.Sessions(t.Context(), st, view.Filter{Workspace: "/ws", Archived: new(bool), Limit: 1})
				return err
			},
			"tail":   func() error { _, err := view.SessionByID(t.Context(), st, "000007"); return err },
			"action": func() error { _, err := view.ActionByID(t.Context(), st, "000007"); return err },
			"open":   func() error { _, _, err := view.OpenActions(t.Context(), st, 10); return err },
			"day":    func() error { _, err := view.DaySince(t.Context(), st, t0); return err },
		} {
			st.rows = 0
			if err := do(); err != nil {
				t.Fatal(name, err)
			}
			counted[name] = st.rows
		}
		return counted
	}
	few, many := read(100), read(600)
	for name, n := range few {
		if many[name] > n {
			t.Errorf("%s: %d rows are read of 100 sessions, %d of 600", name, n, many[name])
		}
	}
}
