package live_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/live"
	"github.com/belay-run/belay/internal/live/livetest"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/memory"
)

// FuzzCursor: a text that is taken as a cursor is one that was given.
func FuzzCursor(f *testing.F) {
	st := memory.Open(memory.Options{})
	b := livetest.New(f, st, nil)
	b.Add(livetest.IDs("a"), livetest.Note(1), livetest.Note(2), livetest.Note(3))
	scope := live.Scope{Session: "sess_a"}
	given := map[string]store.Position{}
	for p := store.Position(0); p < 4; p++ {
		given[scope.Text(st.Runtime(), live.Cursor{Position: p})] = p
	}
	for rec, err := range st.Scan(f.Context(), 0) {
		if err != nil {
			f.Fatal(err)
		}
		given[scope.Text(st.Runtime(), live.CursorOf(rec))] = rec.Position
	}
	for text := range given {
		f.Add(text)
		f.Add(text[1:])
	}
	for _, text := range []string{"", "3", "03", "4", "-1", "1e3", "start", "AAAA"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := live.Place(t.Context(), st, scope, text)
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
