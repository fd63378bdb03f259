package feed_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view/feed"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

// FuzzCursor: a text that is taken as a cursor is one that was given.
func FuzzCursor(f *testing.F) {
	st := memory.Open(memory.Options{})
	b := feedtest.New(f, st, nil)
	b.Add(feedtest.IDs("a"), feedtest.Note(1), feedtest.Note(2), feedtest.Note(3))
	scope := feed.Scope{Session: "sess_a"}
	given := map[string]store.Position{}
	for p := store.Position(0); p < 4; p++ {
		given[scope.Text(st.Runtime(), feed.Cursor{Position: p})] = p
	}
	for rec, err := range st.Scan(f.Context(), 0) {
		if err != nil {
			f.Fatal(err)
		}
		given[scope.Text(st.Runtime(), feed.CursorOf(rec))] = rec.Position
	}
	for text := range given {
		f.Add(text)
		f.Add(text[1:])
	}
	for _, text := range []string{"", "3", "03", "4", "-1", "1e3", "start", "AAAA"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := feed.Place(t.Context(), st, scope, text)
		if err != nil {
			if belay.CodeOf(err) != belay.CodeBadCursor {
				t.Fatal(err)
			}
			return
		}
		if p, ok := given[text]; ok && p == at {
			return
		}
		if len(text) > 20 || at < 0 || at > 3 {
			t.Fatalf("%q is taken as %d", text, at)
		}
	})
}
