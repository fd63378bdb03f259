package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
)

// three sessions: one ended, one that waits, one of another workspace; and
// facts about one that never was.
func three(t *testing.T) store.Store {
	t.Helper()
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(story()...)
	ids := belay.IDs{Session: "sess_22", Thread: "thr_2", Turn: "turn_2", Action: "act_2"}
	w.add(
		fact{"session/sess_22", belay.IDs{Session: "sess_22"}, event.SessionCreated{Workspace: "/ws"}, time.Second},
		fact{"thread/thr_2", ids, event.TurnStarted{}, time.Second},
		fact{"thread/thr_2", ids, event.ActionRequired{Kind: "question", Prompt: say("name?")}, time.Second},
		fact{"session/sess_23", belay.IDs{Session: "sess_23"}, event.SessionCreated{Workspace: "/other"}, time.Second},
		fact{"session/nothing", belay.IDs{Session: "nothing"}, event.ChannelMessage{Kind: "audit", Code: "not_found"}, time.Second},
	)
	if err := view.Catchup(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestSessionsAreListedNewestFirst(t *testing.T) {
	st := three(t)
	for _, c := range []struct {
		name   string
		filter view.Filter
		want   string
	}{
		{"all", view.Filter{}, "sess_23 sess_22 sess_1"},
		{"of a workspace", view.Filter{Workspace: "/ws"}, "sess_22 sess_1"},
		{"the newest", view.Filter{Limit: 1}, "sess_23"},
		{"the newest of a workspace", view.Filter{Workspace: "/ws", Limit: 1}, "sess_22"},
		{"that wait", view.Filter{Status: view.Waiting}, "sess_22"},
		{"of no workspace", view.Filter{Workspace: "/no"}, ""},
	} {
		got, err := view.Sessions(t.Context(), st, c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, s := range got {
			ids = append(ids, string(s.ID))
		}
		if s := strings.Join(ids, " "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.name, s, c.want)
		}
	}
}

// TestAPageSaysByWhatSessionsCanBeChosen: folders and tags of all sessions, also of
// those that aren't on it.
func TestAPageSaysByWhatSessionsCanBeChosen(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	for id, in := range map[belay.SessionID]string{"sess_1": "/ws", "sess_2": "/ws", "sess_3": "/other"} {
		of := belay.IDs{Session: id}
		w.add(fact{id.Stream(), of, event.SessionCreated{Workspace: in}, time.Second},
			fact{id.Stream(), of, event.SessionUpdated{Tag: map[string][]string{"/ws": {"b"}, "/other": {"a", "b"}}[in]}, time.Second})
	}
	if err := view.Catchup(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	p, err := view.PageOf(t.Context(), st, view.Filter{Workspace: "/other", Limit: 1})
	if got := fmt.Sprint(len(p.Sessions), p.Total, p.Folders, p.Tags); err != nil || got != "1 1 [/ws /other] [b a]" {
		t.Error(got, err)
	}
}

func TestASessionIsFoundByTheBeginningOrTheEndOfItsID(t *testing.T) {
	st := three(t)
	for _, c := range []struct{ id, want, code string }{
		{"sess_1", "sess_1", ""},
		{"sess_22", "sess_22", ""},
		{"sess_2", "", "usage"},
		{"ess_22", "", "not_found"},
		{"ss_22", "", "not_found"},
		{"sess_9", "", "not_found"},
		{"nothing", "", "not_found"},
		{"", "", "not_found"},
	} {
		got, err := view.SessionByID(t.Context(), st, c.id)
		if string(got.ID) != c.want || (err != nil) != (c.code != "") || err != nil && string(belay.CodeOf(err)) != c.code {
			t.Errorf("%q: got %q, %v; want %q, %s", c.id, got.ID, err, c.want, c.code)
		}
	}
}

func TestLastDigitsNameAnID(t *testing.T) {
	const id = "sess_01a20ba0-1fc4-7929-89cd-26db26f2bad7"
	for text, is := range map[string]bool{id: true, "sess_01a2": true, "26f2bad7": true, "f2bad7": true, "2bad7": false, "cd-26db26f2bad7": false, "bad": false} {
		if got := view.Named(id, text); got != is {
			t.Errorf("%s names it: %v", text, got)
		}
	}
	all := []view.Session{{ID: id}, {ID: "sess_01a20ba0-1fc4-7929-89cd-26db260000aa"}, {ID: "sess_01a20ba0-1fc4-7929-89cd-26db360000aa"}, {ID: "telegram-7"}}
	if got := strings.Join(view.Tails(all), " "); got != "26f2bad7 260000aa 360000aa telegram-7" {
		t.Errorf("a list shows %s", got)
	}
}

func TestAnActionIsFoundAlsoAfterItsAnswer(t *testing.T) {
	st := three(t)
	for _, c := range []struct {
		id     string
		stream belay.StreamID
		open   bool
	}{
		{"act_1", "thread/thr_1", false},
		{"act_2", "thread/thr_2", true},
	} {
		got, err := view.ActionByID(t.Context(), st, c.id)
		if err != nil {
			t.Fatal(err)
		}
		if got.Stream != c.stream || string(got.ID) != c.id || (got.Open != nil) != c.open {
			t.Errorf("%s: got %+v", c.id, got)
		}
	}
	if got, err := view.ActionByID(t.Context(), st, "act"); belay.CodeOf(err) != belay.CodeUsage {
		t.Errorf("an ambiguous beginning: got %+v, %v", got, err)
	}
	if got, err := view.ActionByID(t.Context(), st, "act_3"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("an unknown action: got %+v, %v", got, err)
	}
}

func TestARunIsFoundUntilItsSessionIsDeleted(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(story()...)
	if err := view.Catchup(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	want := view.RunAt{ID: "run_1", Place: view.Place{Session: "sess_1", Thread: "thr_1", Stream: "task/task_1", Task: "task_1", Turn: "turn_1"}}
	if got, err := view.RunByID(t.Context(), st, "run_1"); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := view.RunByID(t.Context(), st, "run"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("the beginning of an id: %v", err)
	}
	if err := st.Release(t.Context(), "sess_1", w.epochs["sess_1"]); err != nil {
		t.Fatal(err)
	}
	if _, err := st.DeleteSession(t.Context(), "sess_1", "user:ann"); err != nil {
		t.Fatal(err)
	}
	if err := view.Catchup(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if _, err := view.RunByID(t.Context(), st, "run_1"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("of a deleted session: %v", err)
	}
}
