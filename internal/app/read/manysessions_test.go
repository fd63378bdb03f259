package read_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

// tenThousand makes so many sessions of one workspace, of which one was told of a zebra.
func tenThousand(t testing.TB, st store.Store) {
	w := feedtest.New(t, st, nil)
	for i := range 10_000 {
		ids := feedtest.IDs(fmt.Sprintf("%08x", i))
		w.AddTo(ids.Session.Stream(), ids, event.SessionCreated{Workspace: "/ws", Title: fmt.Sprintf("Work number %d", i)})
		if i == 3 {
			w.Add(ids, event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "feed the zebra"}})
		}
	}
}

// lookedFor are texts, and how many of those sessions have them.
var lookedFor = map[string]int{"": 100, "NUMBER 77": 100, "number 7777": 1, "zebra feed": 1, "sess_00001fff": 1, "001fff": 1, "?": 0}

// TestASessionIsFoundAmongTenThousand: by a piece of its title, by its id, by words that
// were said in it, however old it is.
func TestASessionIsFoundAmongTenThousand(t *testing.T) {
	st := memory.Open(memory.Options{})
	tenThousand(t, st)
	get := reads(st)
	for text, n := range lookedFor {
		var found struct {
			Sessions []struct{ ID string }
			More     bool
		}
		if code := get(t, "/v1/sessions?workspace=/ws&q="+url.QueryEscape(text), &found); code != "" || len(found.Sessions) != n || found.More != (n == 100) {
			t.Errorf("%q: %s, %d sessions, more: %v; want %d", text, code, len(found.Sessions), found.More, n)
		}
	}
}

// BenchmarkTenThousandSessions looks for one of them, as a person does who types.
func BenchmarkTenThousandSessions(b *testing.B) {
	st, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	tenThousand(b, st)
	get := reads(st)
	var found struct{ Sessions []struct{ ID string } }
	get(b, "/v1/sessions?q=zebra", &found) // folds the views, which is done once
	for b.Loop() {
		if get(b, "/v1/sessions?workspace=/ws&q=zebra", &found) != "" || len(found.Sessions) != 1 {
			b.Fatal("it isn't found")
		}
	}
}
