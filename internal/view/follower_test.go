package view_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
)

// counted counts how often the log is read to be folded.
type counted struct {
	store.Store
	saves atomic.Int32
}

func (c *counted) SaveView(ctx context.Context, name string, from, to store.Position, rows map[string]store.ViewRow) error {
	c.saves.Add(1)
	return c.Store.SaveView(ctx, name, from, to, rows)
}

// Many who want the view at once cost one of them the folding.
// Guarantee: L11.
func TestManyReadersFoldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counted{Store: memory.Open(memory.Options{})}
		newWriter(t, st).add(story()...)
		f := view.NewFollower(st)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := f.Catchup(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := st.saves.Load(); n != 1 {
			t.Errorf("100 readers saved the view %d times", n)
		}
		if lag, err := f.Lag(t.Context()); lag != 0 || err != nil {
			t.Errorf("the view is %d behind, %v", lag, err)
		}
	})
}

// The view follows the log without being asked, and stops when it is told to.
// Guarantee: L11.
func TestTheViewFollowsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.Open(memory.Options{})
		w := newWriter(t, st)
		f := view.NewFollower(st)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		for i, fact := range story() {
			w.add(fact)
			time.Sleep(time.Second)
			if lag, err := f.Lag(t.Context()); err != nil || lag != 0 {
				t.Fatalf("behind by %d a second after fact %d, %v", lag, i, err)
			}
			if d := cmp.Diff(fold(w.records()), stored(t, st)); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// fake is a view that counts.
type fake struct {
	at, end atomic.Int64
	steps   atomic.Int32
	took    time.Duration
}

func (f *fake) At(context.Context) (store.Position, error) {
	return store.Position(f.at.Load()), nil
}

func (f *fake) UpTo(_ context.Context, end store.Position) error {
	f.at.Store(int64(end))
	return nil
}

func (f *fake) Step(context.Context) (bool, error) {
	time.Sleep(f.took)
	f.steps.Add(1)
	return f.at.Add(1) < f.end.Load(), nil
}

// A gentle follower works a tenth of the time, however much there is to do, and
// whoever asks doesn't wait for that.
// Guarantee: L18.
func TestAGentleFollowerLeavesTimeForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.Open(memory.Options{})
		newWriter(t, st).add(story()...)
		fold := &fake{took: 100 * time.Millisecond}
		fold.end.Store(1 << 40)
		f := view.NewLazyFollower(st, fold)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		time.Sleep(200 * time.Millisecond)
		if n := fold.steps.Load(); n != 0 {
			t.Errorf("it began at once: %d steps", n)
		}
		time.Sleep(10 * time.Second)
		if n := fold.steps.Load(); n < 9 || n > 11 {
			t.Errorf("%d steps of a tenth of a second in ten seconds", n)
		}
		if err := f.Catchup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lag, err := f.Lag(t.Context()); lag != 0 || err != nil {
			t.Errorf("whoever asks finds it %d behind, %v", lag, err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}
