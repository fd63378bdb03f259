package memory_test

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/storetest"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// TestAStoreThatIsSharedIsOne: what is shared passes the laws of stores.
func TestAStoreThatIsSharedIsOne(t *testing.T) {
	storetest.Run(t, storetest.Config{
		Open: func(t *testing.T, env *storetest.Env) store.Store { return store.Share(memory.Open(options(env))) },
		Again: func(t *testing.T, env *storetest.Env, s store.Store) store.Store {
			return store.Share(s.(*store.Shared).Store.(*memory.Store).Data().Open(options(env)))
		},
	})
}

// counted counts the facts that are read from a store, which tells nothing.
type counted struct {
	store.Store
	mu    sync.Mutex
	facts int
	scans int
}

func (c *counted) Scan(ctx context.Context, after store.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		c.mu.Lock()
		c.scans++
		c.mu.Unlock()
		for r, err := range c.Store.Scan(ctx, after) {
			c.mu.Lock()
			c.facts++
			c.mu.Unlock()
			if !yield(r, err) {
				return
			}
		}
	}
}

// follower is one who scans from where it came to last.
type follower struct {
	at   store.Position
	seen []store.Position
}

func (f *follower) scan(t *testing.T, s store.Store, most int) {
	t.Helper()
	for r, err := range s.Scan(t.Context(), f.at) {
		if err != nil {
			t.Fatal(err)
		}
		f.at = r.Position
		f.seen = append(f.seen, r.Position)
		if most--; most == 0 {
			return
		}
	}
}

// TestFollowersReadTheLogOnce: each fact is read from the store once for all who
// follow, as long as they aren't further behind than what is kept; and each gets
// every fact once and in order, wherever it breaks off.
func TestFollowersReadTheLogOnce(t *testing.T) {
	c := &counted{Store: memory.Open(memory.Options{})}
	s := store.Share(c)
	epoch, err := s.Claim(t.Context(), "sess_a", store.Owner{ID: "one"}, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	stream := belay.ThreadID("thr_a").Stream()
	seq := int64(0)
	put := func(n int, text string) {
		b := store.Batch{Session: "sess_a", Stream: stream, After: seq, Epoch: epoch}
		for range n {
			b.Events = append(b.Events, event.Envelope{IDs: belay.IDs{Session: "sess_a", Thread: "thr_a"}, Data: event.ModelDelta{Attempt: 1, Text: text}})
		}
		if _, err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		seq += int64(n)
	}
	quick, slow, jumpy := &follower{}, &follower{}, &follower{}
	for range 50 {
		put(7, "some text")
		quick.scan(t, s, -1)
		jumpy.scan(t, s, 3)
		put(1, "more")
		quick.scan(t, s, -1)
		slow.scan(t, s, -1)
	}
	jumpy.scan(t, s, -1)
	if c.facts != int(seq) {
		t.Errorf("%d facts were read %d times", seq, c.facts)
	}
	for i := range quick.seen {
		if quick.seen[i] != store.Position(i+1) {
			t.Fatalf("fact %d stands at %d", i+1, quick.seen[i])
		}
	}
	if !slices.Equal(quick.seen, slow.seen) || !slices.Equal(quick.seen, jumpy.seen) || len(quick.seen) != int(seq) {
		t.Errorf("of %d facts the followers saw %d, %d and %d", seq, len(quick.seen), len(slow.seen), len(jumpy.seen))
	}
	late := &follower{}
	for range 600 { // more than is kept
		put(1, strings.Repeat("x", 8<<10))
		quick.scan(t, s, -1)
	}
	before := c.facts
	late.scan(t, s, -1)
	if c.facts == before {
		t.Error("what isn't kept any more wasn't read")
	}
	if !slices.Equal(late.seen, quick.seen) {
		t.Errorf("a late follower saw %d facts of %d", len(late.seen), len(quick.seen))
	}
}

// telling is a counted store that tells what it writes.
type telling struct{ *counted }

func (t telling) OnCommit(told func([]store.Written)) { t.Store.(store.CommitNotifier).OnCommit(told) }

// TestAnnouncedFactsAreNotReadAgain: followers of a store that tells get its facts without
// reading them, and those of other processes between them, each once and in order.
func TestAnnouncedFactsAreNotReadAgain(t *testing.T) {
	d := memory.New()
	c := &counted{Store: d.Open(memory.Options{})}
	s, other := store.Share(telling{c}), d.Open(memory.Options{})
	n, title := 0, "x"
	found := func(st store.Store) {
		n++
		id := belay.SessionID("sess_" + strconv.Itoa(n))
		b := store.Batch{Session: id, Stream: id.Stream(), Epoch: 1, Claim: &store.Claim{Owner: store.Owner{ID: "one"}}, Events: []event.Envelope{
			{IDs: belay.IDs{Session: id}, Data: event.SessionCreated{Workspace: "/ws"}}, {IDs: belay.IDs{Session: id}, Data: event.SessionUpdated{Title: title}}}}
		if _, err := st.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	quick, slow := &follower{}, &follower{}
	quick.scan(t, s, -1) // it follows from the beginning
	for range 30 {
		found(s)
		found(s)
		slow.scan(t, s, 1)
		quick.scan(t, s, -1)
	}
	if c.facts != 0 {
		t.Errorf("%d facts were read, which were told", c.facts)
	}
	for i := range 40 {
		found([]store.Store{s, other, s, s, other}[i%5])
		switch i % 7 { // so some is told behind what another wrote
		case 0:
			quick.scan(t, s, -1)
		case 3:
			slow.scan(t, s, i%4)
		}
	}
	found(s)
	found(other) // the last one, which nobody tells of
	slow.scan(t, s, -1)
	quick.scan(t, s, -1)
	if !slices.Equal(quick.seen, slow.seen) || len(quick.seen) != 2*n || quick.at != store.Position(2*n) {
		t.Errorf("of %d facts the followers saw %d and %d", 2*n, len(quick.seen), len(slow.seen))
	}
	for title = strings.Repeat("x", 8<<10); n < 1500; { // nobody follows, and more is told than is kept
		found(s)
	}
	late := &follower{at: quick.at}
	late.scan(t, s, -1)
	quick.scan(t, s, -1)
	if quick.at != store.Position(2*n) || late.at != quick.at || c.facts < 2000 {
		t.Errorf("of %d facts the last that were seen are %d and %d; %d were read", 2*n, quick.at, late.at, c.facts)
	}
}
