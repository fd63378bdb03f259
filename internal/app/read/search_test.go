package read_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

// TestASearchHasWhatItWasToldToWaitFor: a search that names a position finds the
// words up to there, and says so when the log doesn't come so far in time.
// Guarantee: L18.
func TestASearchHasWhatItWasToldToWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.Open(memory.Options{})
		w := history(t, st, 3)
		get := reads(st)
		end, err := st.End(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			w.Add(feedtest.IDs("a"), event.TurnCompleted{Summary: belay.Content{Text: "the zebra is fed"}})
		}()
		var found struct {
			Position int64
			Stale    bool
			Hits     []struct{ SessionID, Excerpt string }
		}
		if code := get(t, fmt.Sprintf("/v1/search?q=zebra&after=%d", end+1), &found); code != "" {
			t.Fatal(code)
		}
		if found.Stale || found.Position != int64(end)+1 || len(found.Hits) != 1 || found.Hits[0].SessionID != "sess_a" || found.Hits[0].Excerpt != "the zebra is fed" {
			t.Errorf("%+v", found)
		}
		if code := get(t, fmt.Sprintf("/v1/search?q=zebra&after=%d", end+9), &found); code != "" || !found.Stale || len(found.Hits) != 1 {
			t.Errorf("in vain: %s %+v", code, found)
		}
	})
}
