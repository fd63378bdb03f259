package term

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// scanned is a log of notes that counts how often it is read.
type scanned struct {
	store.Store
	notes []string // at positions from 1
	reads int
}

func note(text string) event.Envelope {
	return event.Envelope{IDs: belay.IDs{Session: "sess_1"}, Data: event.ReasoningSummary{Text: belay.Content{Text: text}}}
}

func (c *scanned) Scan(_ context.Context, after store.Position) iter.Seq2[store.Record, error] {
	c.reads++
	return func(yield func(store.Record, error) bool) {
		for i := int(after); i < len(c.notes); i++ {
			if !yield(store.Record{Position: store.Position(i + 1), Event: note(c.notes[i])}, nil) {
				return
			}
		}
	}
}

// add makes notes durable, and tells u of them if this process wrote them.
func (c *scanned) add(u *Follower, notes ...string) {
	c.notes = append(c.notes, notes...)
	if u != nil {
		u.Recorded(noted(len(c.notes)-len(notes), notes...))
	}
}

// noted are notes behind a position.
func noted(after int, notes ...string) (facts []store.Record) {
	for i, n := range notes {
		facts = append(facts, store.Record{Position: store.Position(after + 1 + i), Event: note(n)})
	}
	return facts
}

func counting(json bool) (*scanned, *Follower, *bytes.Buffer) {
	var out bytes.Buffer
	st := &scanned{}
	u := NewFollower(&Env{JSON: json})
	u.w = Followed{Log: st, Session: "sess_1"}
	u.live = &renderer{out: &out, calls: map[belay.CallID]string{}, steps: map[belay.StepID]int{}}
	return st, u, &out
}

// TestOwnFactsAreShownWithoutReadingThem looks at what is shown, and how often
// the log is read for it.
func TestOwnFactsAreShownWithoutReadingThem(t *testing.T) {
	st, u, out := counting(false)
	look := func(wants ...string) {
		t.Helper()
		out.Reset()
		if err := u.facts(t.Context()); err != nil {
			t.Fatal(err)
		}
		var shown []string
		for l := range strings.Lines(out.String()) {
			shown = append(shown, strings.Fields(l)[len(strings.Fields(l))-1])
		}
		if !slices.Equal(shown, wants) {
			t.Errorf("shown: %q, want %q", shown, wants)
		}
	}
	st.add(u, "a", "b")
	st.add(u, "c")
	look("a", "b", "c")
	if st.reads != 0 || !u.behind {
		t.Errorf("own facts were read %d times; another look follows: %t", st.reads, u.behind)
	}
	look()
	if st.reads != 1 || u.behind {
		t.Errorf("after that the log was read %d times; another look follows: %t", st.reads, u.behind)
	}
	st.add(nil, "theirs") // another process
	st.add(u, "ours")
	look("theirs", "ours")
	st.add(u, "more")
	st.add(nil, "later")
	look("more")
	look("later")
	if st.reads != 3 {
		t.Errorf("the log was read %d times", st.reads)
	}
}

// TestFactsThatAreToldOutOfOrderAreShownInOrder, once each.
func TestFactsThatAreToldOutOfOrderAreShownInOrder(t *testing.T) {
	st, u, out := counting(false)
	st.notes = []string{"a", "b", "c"}
	u.Recorded(noted(2, "c"))
	u.Recorded(noted(0, "a", "b"))
	for range 3 {
		if err := u.facts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(out.String(), "\n"); got != 3 || !strings.Contains(out.String(), "a\n") || len(u.recent.parts) != 0 {
		t.Errorf("shown: %q, kept: %d", out, len(u.recent.parts))
	}
}

// TestFactsThatAreNotShownAreNotKept without end.
func TestFactsThatAreNotShownAreNotKept(t *testing.T) {
	var r recent
	for i := range 3 * maxRecent {
		r.add(noted(i, "x"))
		if len(r.parts) > maxRecent {
			t.Fatalf("%d facts are kept", len(r.parts))
		}
	}
	if facts := r.after(0); facts != nil {
		t.Errorf("%d facts, though those before them were dropped", len(facts))
	}
}

// TestWithJSONTheLogItselfIsShown: what is printed is what was stored.
func TestWithJSONTheLogItselfIsShown(t *testing.T) {
	st, u, _ := counting(true)
	st.add(u, "a")
	if len(u.recent.parts) != 0 {
		t.Error("facts are kept that are never shown from here")
	}
}
