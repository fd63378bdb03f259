package server

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// stubborn ends every turn at once, but those that say block: these it answers
// never, and doesn't end when it is told to.
type stubborn struct {
	model.Provider
	let chan struct{}
}

func (p stubborn) Stream(_ context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if strings.Contains(r.Messages[0].Parts[0].Text, "block") {
			<-p.let
			return
		}
		if yield(model.Chunk{Call: &model.Call{ID: "c", Name: "complete_task", Args: `{"summary":"Done."}`}}, nil) {
			yield(model.Chunk{Stop: "tool_calls"}, nil)
		}
	}
}

// thousand runs n sessions, one of them blocked or none, and returns how long each
// of the others' turns took to begin.
func thousand(t *testing.T, n int, blocked bool) (waits []time.Duration) {
	t.Helper()
	let := make(chan struct{})
	r := newRig(t, once, func(c *Config) { c.Drain, c.Open = time.Millisecond, stubbornly(t, c.Open, let) })
	defer r.stop()
	defer close(let)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	if blocked {
		r.command("submit_turn", owner, `{"text":"block","sessionId":"stuck","turnId":"t"}`).told(t)
		r.until(owner, firstRunOf(t, r, owner), "running")
	}
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n; i += 8 {
				r.command("submit_turn", owner, fmt.Sprintf(`{"text":"go","sessionId":"s%d","turnId":"t%d"}`, i, i)).told(t)
			}
		})
	}
	wg.Wait()
	return began(t, r, n)
}

// stubbornly opens houses whose engine has the stubborn provider.
func stubbornly(t *testing.T, open func(context.Context, string) (TenantConfig, error), let chan struct{}) func(context.Context, string) (TenantConfig, error) {
	set, err := tool.NewSet(tool.TurnTools()...)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, tenant string) (TenantConfig, error) {
		h, err := open(ctx, tenant)
		if err != nil {
			return h, err
		}
		p, err := effect.New(effect.Config{Store: h.Store, Tools: set,
			Provider: func(context.Context, string, belay.Settings) (model.Provider, error) { return stubborn{let: let}, nil }})
		if err != nil {
			return h, err
		}
		h.Engine, err = engine.New(engine.Config{Store: h.Store, Owner: store.ThisProcess(), Performers: p})
		return h, err
	}
}

func firstRunOf(t *testing.T, r *rig, owner string) belay.RunID {
	t.Helper()
	return r.command("submit_turn", owner, `{"text":"block","sessionId":"stuck","turnId":"t"}`).told(t).Run
}

// began waits until n turns besides the stuck one have ended, and returns how
// long each waited to begin.
func began(t *testing.T, r *rig, n int) (waits []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	st, accepted, ended, from := r.opened[auth.DefaultTenant], map[belay.TurnID]time.Time{}, 0, store.Position(0)
	for ended < n {
		changed := st.Changed(ctx)
		for rec, err := range st.Scan(ctx, from) {
			if err != nil {
				t.Fatal(err)
			}
			from = rec.Position
			switch id := rec.Event.IDs.Turn; rec.Event.Data.(type) {
			case event.TurnSubmitted:
				accepted[id] = rec.Event.Time
			case event.TurnStarted:
				if rec.Event.IDs.Session != "stuck" {
					waits = append(waits, rec.Event.Time.Sub(accepted[id]))
				}
			case event.TurnCompleted:
				ended++
			}
		}
		if ended == n {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d of %d turns ended", ended, n)
		}
	}
	slices.Sort(waits)
	return waits
}

// TestABlockedThreadDoesNotDelayOthers: a thread whose model neither answers nor ends
// costs the others nothing but its place. BELAY_BLOCKED=full measures it: five
// pairs of a thousand sessions, without and with a blocked one. Which comes first
// changes from pair to pair, and a run that doesn't count is before them all:
// what a process costs more the longer it runs isn't counted as blocking then.
// Guarantee: V25.
func TestABlockedThreadDoesNotDelayOthers(t *testing.T) {
	if os.Getenv("BELAY_BLOCKED") != "full" {
		if waits := thousand(t, 40, true); len(waits) != 40 {
			t.Errorf("%d of 40 turns began", len(waits))
		}
		return
	}
	median := func(blocked bool) (wait, processor time.Duration) {
		runtime.GC() // of the run before
		from := processorTime(t)
		waits := thousand(t, 999, blocked)
		return waits[len(waits)/2], processorTime(t) - from
	}
	median(true)
	var ratios []float64
	for pair := range 5 {
		first := pair%2 == 1 // the blocked one
		a, cost := median(first)
		b, other := median(!first)
		if first {
			a, b, cost, other = b, a, other, cost
		}
		ratios = append(ratios, float64(b)/float64(a))
		t.Logf("pair %d, blocked first %t: a turn begins after %s, beside a blocked thread after %s: %.3f (processor time of all: %.3f)",
			pair+1, first, a, b, ratios[pair], float64(other)/float64(cost))
	}
	slices.Sort(ratios)
	t.Logf("median ratio %.3f, at most 1.1", ratios[2])
	if ratios[2] > 1.1 {
		t.Errorf("a blocked thread makes others wait %.3f times as long", ratios[2])
	}
}

// processorTime is what this process took so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
