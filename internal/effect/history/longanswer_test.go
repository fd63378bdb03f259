package history

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// A long answer is read when a request needs it, and then whole.
func TestALongAnswerIsReadWithTheNextRequest(t *testing.T) {
	ctx, st := t.Context(), memory.Open(memory.Options{})
	text := strings.Repeat("a line of it\n", longAnswer/13+1)
	ref, err := st.Put(ctx, []byte(text), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	ids := belay.IDs{Session: "sess_a", Thread: "thr_a", Turn: "turn_a"}
	facts := []event.Payload{event.ThreadStarted{}, event.TurnSubmitted{Text: belay.Content{Text: "tell me"}}, event.TurnStarted{},
		event.ModelCompleted{Text: belay.Content{Text: "a line", Ref: &ref}}, event.TurnCompleted{}}
	var all []event.Envelope
	for i, p := range facts {
		all = append(all, event.Envelope{Stream: ids.Thread.Stream(), Seq: int64(i + 1), IDs: ids, Data: p})
	}
	epoch, err := st.Claim(ctx, ids.Session, store.Owner{ID: "o"}, time.Hour)
	if err == nil {
		_, err = st.Append(ctx, store.Batch{Session: ids.Session, Stream: ids.Thread.Stream(), Epoch: epoch, Events: all})
	}
	if err != nil {
		t.Fatal(err)
	}
	c := NewCache(st, lru.New(1<<20))
	c.Feed(ctx, ids.Thread.Stream(), all)
	v := c.Take(ids.Thread.Stream())
	if v.seq != 3 || v.size > 1000 {
		t.Errorf("it is folded up to %d and has %d bytes", v.seq, v.size)
	}
	if err := v.UpTo(ctx, st, 0, 5); err != nil || len(v.msgs) != 2 || v.msgs[1].Parts[0].Text != text {
		t.Errorf("%d messages, %v", len(v.msgs), err)
	}
}
