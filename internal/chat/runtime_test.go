package chat

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
)

// log is a runtime whose session has ten facts. A reader gets three and is told then
// that it fell behind, unless the rest is less than that.
type log struct {
	Runtime
	putBack bool // nothing is as the cursor says
	follows int
}

func (l *log) Follow(_ context.Context, _ belay.SessionID, cursor string) Stream {
	return func(yield func(Item, error) bool) {
		l.follows++
		at := 0
		fmt.Sscan(cursor, &at)
		if l.putBack && at > 0 {
			yield(Item{Cursor: "0", Resync: &client.Resync{}}, nil)
			return
		}
		for n := range 10 - at {
			if n == 3 {
				yield(Item{Cursor: "10", Resync: &client.Resync{}}, nil)
				return
			}
			if !yield(Item{Cursor: fmt.Sprint(at + n + 1), Fact: &event.Envelope{}}, nil) {
				return
			}
		}
	}
}

// TestWhoFallsBehindMissesNothing: each fact comes once and in order; a store that was
// put back is told.
func TestWhoFallsBehindMissesNothing(t *testing.T) {
	read := func(l *log, cursor string) string {
		var got []string
		for item, err := range Followed(t.Context(), l, "s", cursor) {
			if err != nil {
				t.Fatal(err)
			}
			if item.Resync != nil {
				got = append(got, "resync")
				break
			}
			got = append(got, item.Cursor)
		}
		return strings.Join(got, " ")
	}
	l := &log{}
	if got := read(l, ""); got != "1 2 3 4 5 6 7 8 9 10" || l.follows != 4 {
		t.Errorf("%s, followed %d times", got, l.follows)
	}
	if got := read(&log{putBack: true}, "4"); got != "resync" {
		t.Errorf("a store that was put back: %s", got)
	}
}
