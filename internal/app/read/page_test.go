package read_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
	"github.com/belay-run/belay/internal/view/story"
)

// history is a session with two threads and a task, among others.
func history(t testing.TB, st store.Store, answers int) *feedtest.Writer {
	w := feedtest.New(t, st, func(event.Delta) {})
	ids, second, other := feedtest.IDs("a"), feedtest.IDs("a"), feedtest.IDs("b")
	second.Thread = "thr_second"
	w.AddTo(ids.Session.Stream(), ids, event.SessionCreated{Workspace: "/ws", Title: "fix it"})
	w.AddTo(ids.Task.Stream(), ids, event.TaskCreated{Objective: belay.Content{Text: "fix it"}, Kind: "agent", Thread: ids.Thread},
		event.TaskAttemptStarted{Number: 1, Thread: ids.Thread, Turn: ids.Turn})
	w.Add(ids, event.ThreadStarted{Kind: "main", Workspace: "/ws"}, event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "fix it"}},
		event.TurnStarted{Kind: belay.TurnUser, Completion: belay.CompletionRequired})
	w.Add(second, event.ThreadStarted{Kind: "main", Workspace: "/ws"})
	for i := range answers {
		w.Answer([]belay.IDs{ids, second, other}[i%3], "some ", "text ", "that ", "flows")
	}
	return w
}

// reads answers for a store, without a hub.
func reads(st store.Store) func(t testing.TB, path string, out any) belay.Code {
	byPattern := map[string]read.Route{}
	for _, r := range read.New(st, nil, view.NewFollower(st)).Routes() {
		byPattern[r.Pattern] = r
	}
	return func(t testing.TB, path string, out any) belay.Code {
		t.Helper()
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(u.Path, "/")
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		if len(parts) > 3 {
			r.SetPathValue("id", parts[3])
			parts[3] = "{id}"
		}
		route, ok := byPattern["GET "+strings.Join(parts, "/")]
		if !ok {
			t.Fatalf("no route for %s", path)
		}
		if err := read.Only(r, route.Query); err != nil {
			return belay.CodeOf(err)
		}
		rec := httptest.NewRecorder()
		route.Handle(rec, r)
		if rec.Code == 200 {
			if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return ""
		}
		var p struct{ Code belay.Code }
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Code == "" {
			t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
		}
		return p.Code
	}
}

// page is read.Page as a client sees it.
type page struct {
	Position             int64
	Stale                bool
	Events               []event.Envelope
	Items                []story.Item
	Older, Newer         string
	MoreOlder, MoreNewer bool
}

// TestPagesHaveEachFactOnce turns pages of random sizes from either end.
// Guarantee: L7.
func TestPagesHaveEachFactOnce(t *testing.T) {
	st := memory.Open(memory.Options{})
	history(t, st, 60)
	get := reads(st)
	random := rand.New(rand.NewPCG(1, 2))
	for path, keep := range map[string]func(event.Envelope) bool{
		"/v1/sessions/sess_a/events":   func(e event.Envelope) bool { return e.IDs.Session == "sess_a" },
		"/v1/threads/thr_a/events":     func(e event.Envelope) bool { return e.Stream == "thread/thr_a" },
		"/v1/threads/thr_b/events":     func(e event.Envelope) bool { return e.Stream == "thread/thr_b" },
		"/v1/sessions/sess_a/events?t": func(e event.Envelope) bool { return e.IDs.Session == "sess_a" && e.Type() == "model.completed" },
	} {
		want := feedtest.Log(t, st, keep)
		path, types, _ := strings.Cut(path, "?")
		if types != "" {
			types = "&types=model.completed"
		}
		for range 20 {
			var got []belay.EventID
			var p page
			query := fmt.Sprintf("?first=%d", 1+random.IntN(30))
			for more := true; more; more = p.MoreNewer {
				p = page{}
				if code := get(t, path+query+types, &p); code != "" {
					t.Fatal(code)
				}
				for _, e := range p.Events {
					got = append(got, e.ID())
				}
				query = fmt.Sprintf("?behind=%s&limit=%d", p.Newer, 1+random.IntN(30))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s forward: %d facts of %d", path, len(got), len(want))
			}
			got = nil
			query = fmt.Sprintf("?last=%d", 1+random.IntN(30))
			for more := true; more; more = p.MoreOlder {
				p = page{}
				if code := get(t, path+query+types, &p); code != "" {
					t.Fatal(code)
				}
				var ids []belay.EventID
				for _, e := range p.Events {
					ids = append(ids, e.ID())
				}
				got = append(ids, got...)
				query = fmt.Sprintf("?before=%s&limit=%d", p.Older, 1+random.IntN(30))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s backward: %d facts of %d", path, len(got), len(want))
			}
		}
	}
}

// TestAStreamGoesOnWhereAPageEnds: a page and what a stream brings behind it
// are the whole session.
// Guarantee: L7.
func TestAStreamGoesOnWhereAPageEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.Open(memory.Options{})
		history(t, st, 9)
		get := reads(st)
		hub, err := feed.New(t.Context(), st, feed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"?first=7", "?last=1000", "?first=1"} {
			var p page
			if code := get(t, "/v1/sessions/sess_a/events"+query, &p); code != "" {
				t.Fatal(code)
			}
			got := len(p.Events)
			reader, err := hub.Reader(t.Context(), feed.Scope{Session: "sess_a"}, nil, p.Newer)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = reader.Follow(ctx, func(ms []feed.Message) error { got += len(ms); return nil })
			cancel()
			if want := len(feedtest.Log(t, st, func(e event.Envelope) bool { return e.IDs.Session == "sess_a" })); got != want {
				t.Errorf("%s: %d facts of %d", query, got, want)
			}
		}
	})
}

func TestAPageIsToldAsItems(t *testing.T) {
	st := memory.Open(memory.Options{})
	history(t, st, 6)
	get := reads(st)
	var all, last page
	get(t, "/v1/threads/thr_a/items?first=1000", &all)
	var kinds []string
	for _, it := range all.Items {
		kinds = append(kinds, it.Kind+" "+it.State)
	}
	if got := strings.Join(kinds, ", "); got != "user_message completed, agent_message completed, agent_message completed" {
		t.Error(got)
	}
	get(t, "/v1/threads/thr_a/items?last=1", &last)
	if len(last.Items) != 1 || last.Items[0].ID != all.Items[2].ID || !last.Items[0].Begun || last.Items[0].Text != "some text that flows" {
		t.Errorf("the last fact alone is told as %+v", last.Items)
	}
}

func TestShellsAndSnapshots(t *testing.T) {
	st := memory.Open(memory.Options{})
	history(t, st, 9)
	get := reads(st)
	var list read.Sessions
	if code := get(t, "/v1/sessions?workspace=/ws&status=running", &list); code != "" || len(list.Sessions) != 1 || list.Sessions[0].ID != "sess_a" || list.More {
		t.Errorf("%s %+v", code, list)
	}
	var s read.Session
	if code := get(t, "/v1/sessions/sess_a", &s); code != "" || !s.Driven || s.Session.Title != "fix it" || len(s.Session.Threads) != 2 {
		t.Errorf("%s %+v", code, s)
	}
	var th read.Thread
	if code := get(t, "/v1/threads/thr_a", &th); code != "" || th.Thread.ID != "thr_a" || th.Thread.Turn == nil || th.Actions == nil {
		t.Errorf("%s %+v", code, th)
	}
	var tasks read.Tasks
	if code := get(t, "/v1/sessions/sess_a/tasks", &tasks); code != "" || tasks.Total != 1 || tasks.Tasks[0].Status != "running" {
		t.Errorf("%s %+v", code, tasks)
	}
	var raw json.RawMessage
	if code := get(t, "/v1/sessions/sess_a/snapshot", &raw); code != "" {
		t.Error(code)
	} else if err := eventtest.InvalidSnapshot(raw); err != nil {
		t.Errorf("the snapshot: %v\n%s", err, raw)
	}
}

// windows notes where windows over a session begin.
type windows struct {
	store.Store
	after []store.Position
}

func (s *windows) Window(ctx context.Context, w store.Window) iter.Seq2[store.Record, error] {
	if !w.Newest {
		s.after = append(s.after, w.After)
	}
	return s.Store.Window(ctx, w)
}

// TestASnapshotGoesOn: the first snapshot of a long session reads its history,
// the next one what came since, and both are what a fold of everything is. What
// was kept goes when the views are made anew.
// Guarantee: L20.
func TestASnapshotGoesOn(t *testing.T) {
	st := &windows{Store: memory.Open(memory.Options{})}
	w := history(t, st, 1200)
	get := reads(st)
	shown := func() string {
		t.Helper()
		var raw json.RawMessage
		if code := get(t, "/v1/sessions/sess_a/snapshot", &raw); code != "" {
			t.Fatal(code)
		}
		return string(raw)
	}
	first := shown()
	w.Add(feedtest.IDs("a"), feedtest.Note(1))
	again := shown()
	if len(st.after) != 2 || st.after[0] != 0 || st.after[1] == 0 {
		t.Errorf("the windows began at %v", st.after)
	}
	if err := read.Forget(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if anew := shown(); anew != again || anew == first {
		t.Errorf("folded anew it is\n%s\nwas\n%s", anew, again)
	}
	if st.after[2] != 0 {
		t.Errorf("after the views were dropped it began at %d", st.after[2])
	}
}

// TestAReadWaitsForAPosition: what was written is in the answer, and what
// doesn't come in time is said.
// Guarantee: L8.
func TestAReadWaitsForAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.Open(memory.Options{})
		history(t, st, 3)
		get := reads(st)
		end, err := st.End(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := feedtest.New(t, st, nil)
		go func() {
			time.Sleep(1900 * time.Millisecond)
			w.Add(feedtest.IDs("new"), feedtest.Note(1))
		}()
		for _, late := range []bool{false, true} {
			after := end + 1
			if late {
				after = end + 2
			}
			began := time.Now()
			var p page
			if code := get(t, fmt.Sprintf("/v1/sessions/sess_a/events?after=%d", after), &p); code != "" {
				t.Fatal(code)
			}
			if took := time.Since(began); p.Stale != late || p.Position != int64(end)+1 || late && took != 2*time.Second || !late && took != 1900*time.Millisecond {
				t.Errorf("after %d: stale %v at %d in %v", after, p.Stale, p.Position, took)
			}
		}
	})
}

func TestRefusalsOfReads(t *testing.T) {
	st := memory.Open(memory.Options{})
	history(t, st, 3)
	get := reads(st)
	for path, want := range map[string]belay.Code{
		"/v1/sessions/sess_none":                                      belay.CodeNotFound,
		"/v1/sessions/sess_":                                          belay.CodeNotFound,
		"/v1/sessions/sess_none/events":                               belay.CodeNotFound,
		"/v1/sessions/sess_none/snapshot":                             belay.CodeNotFound,
		"/v1/threads/thr_none":                                        belay.CodeNotFound,
		"/v1/sessions?status=done":                                    belay.CodeUsage,
		"/v1/sessions?archived=perhaps":                               belay.CodeUsage,
		"/v1/sessions?limit=0":                                        belay.CodeUsage,
		"/v1/sessions?limit=501":                                      belay.CodeUsage,
		"/v1/sessions?after=-1":                                       belay.CodeUsage,
		"/v1/sessions?after=9223372036854775807":                      belay.CodeUsage,
		"/v1/sessions/sess_a/events?first=0":                          belay.CodeUsage,
		"/v1/sessions/sess_a/events?first=1001":                       belay.CodeUsage,
		"/v1/sessions/sess_a/events?first=1&last=1":                   belay.CodeUsage,
		"/v1/sessions/sess_a/events?types=*":                          belay.CodeUsage,
		"/v1/sessions/sess_a/events?before=x":                         belay.CodeBadCursor,
		"/v1/sessions/sess_a/events?behind=999":                       belay.CodeBadCursor,
		"/v1/threads/thr_a/items?before=" + cursorOf(st, "sess_a", 3): belay.CodeBadCursor,
	} {
		if got := get(t, path, new(json.RawMessage)); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func cursorOf(st store.Store, session belay.SessionID, at store.Position) string {
	return feed.Scope{Session: session}.Text(st.Runtime(), feed.Cursor{Position: at})
}
