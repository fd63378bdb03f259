package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

// hanging performs effects, of which some hear nothing and don't end until they are let.
type hanging struct {
	engine.Performers
	hangs func(core.Effect) bool
	let   <-chan struct{}
}

func (h hanging) Of(s belay.SessionID, stream belay.StreamID) engine.Performer {
	return hangingIn{h.Performers.Of(s, stream), h}
}

type hangingIn struct {
	engine.Performer
	h hanging
}

func (p hangingIn) Perform(ctx context.Context, run *engine.Run, eff core.Effect) []core.Fact {
	if p.h.hangs != nil && p.h.hangs(eff) {
		<-p.h.let
		return nil
	}
	return p.Performer.Perform(ctx, run, eff)
}

func kindOf(eff core.Effect) string { return reflect.TypeOf(eff).Name() }

// hang is a life in which one effect hangs.
type hang struct {
	kind string
	nth  int    // of its kind
	way  string // what happens to it
}

func (h hang) String() string { return fmt.Sprintf("%s %d hangs and %s", h.kind, h.nth, h.way) }

const (
	goesOn      = "goes on"
	leaves      = "its process leaves"
	interrupted = "its turn is interrupted"
	loses       = "its process loses the store"
)

// TestWhateverHangsIsGivenUp: any effect may hear nothing and never end. Its thread goes on,
// is interrupted, leaves, or is taken over all the same, and soon; the books balance.
// Guarantee: V24.
func TestWhateverHangsIsGivenUp(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := map[string]int{}
	for _, start := range []func(*testing.T) *machine{newAlone, newFamily} {
		kinds := live(t, start, hang{})
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			ways := []string{goesOn, leaves, interrupted, loses}
			if all[kind] > 0 { // seen on the other machine
				ways = ways[r.IntN(len(ways)):][:1]
			}
			for _, way := range ways {
				live(t, start, hang{kind, 1 + r.IntN(kinds[kind]), way})
			}
			all[kind] += kinds[kind]
		}
	}
	if t.Logf("%v", all); len(all) < 10 {
		t.Errorf("only effects of %d kinds began", len(all))
	}
}

// newAlone is a machine with one thread, which asks for what families don't.
func newAlone(t *testing.T) *machine {
	m := newMachine(t)
	m.keeper = kept{}
	m.rules = func(r *thread.Rules) {
		r.Environment, r.Settings.Snapshot, r.Agent, r.AgentFile = true, "git", "user:clerk", &thread.AgentFile{Origin: "user", Path: "a.md"}
	}
	return m
}

// kept are snapshots that are never read.
type kept struct{ history.Snapshots }

func (kept) Take(context.Context, string, string) (string, error) { return "kept", nil }

// live is a life in which one effect hangs. It returns how many of each kind began.
func live(t *testing.T, start func(*testing.T) *machine, what hang) map[string]int {
	kinds := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		m := start(t)
		defer m.discard()
		m.accept()
		var mu sync.Mutex
		let, hung := make(chan struct{}), make(chan core.Effect, 1)
		m.hangs, m.let = func(eff core.Effect) bool {
			mu.Lock()
			defer mu.Unlock()
			kinds[kindOf(eff)]++
			if kindOf(eff) != what.kind || kinds[what.kind] != what.nth {
				return false
			}
			hung <- eff
			return true
		}, let
		p := m.boot(0)
		gone := make(chan struct{})
		var about sync.WaitGroup
		var stopped time.Time
		about.Go(func() { stopped = m.hangWay(p, what, hung, gone) })
		err := p.liveFamily()
		close(gone)
		about.Wait()
		if n := p.e.Stuck(); n != 1 && what.kind != "" {
			t.Errorf("%s: %d effects were given up (%v)", what, n, err)
		}
		p.off()
		m.hangs = nil
		switch {
		case what.way == leaves || what.way == loses:
			m.through(nil, (*process).liveFamily)
		case err != nil:
			t.Errorf("%s: %v", what, err)
		}
		close(let)
		synctest.Wait()
		m.checkHang(what, stopped)
	})
	return kinds
}

var errLeave = errors.New("the process was told to leave")

// hangWay does to a process what happens when the effect hangs. It returns when the turn
// was interrupted.
func (m *machine) hangWay(p *process, what hang, hung chan core.Effect, gone chan struct{}) (stopped time.Time) {
	select {
	case <-hung:
	case <-gone:
		return stopped
	}
	time.Sleep(time.Second)
	switch what.way {
	case leaves, loses:
		if what.way == loses {
			p.h.Kill()
		}
		p.cut(errLeave)
		begun := time.Now()
		<-gone
		if took := time.Since(begun); took > engine.DefaultStall {
			m.t.Errorf("%s: it left after %s", what, took)
		}
	case interrupted:
		q := m.boot(0)
		defer q.off()
		o := belay.Order{ID: "cmd_stop", Principal: "user:bob", Session: sess, Stream: thr.Stream(), Command: belay.InterruptTurn{}}
		if _, err := q.e.Submit(q.ctx, o); err == nil {
			return time.Now()
		}
	}
	return stopped
}

// checkHang holds the laws against what is on the machine.
func (m *machine) checkHang(what hang, stopped time.Time) {
	h := m.data.Open(memory.Options{})
	defer h.Close()
	for _, th := range m.threads(h) {
		if th.Turn != nil || th.Prev == nil {
			m.t.Errorf("%s: %s didn't end", what, th.Stream)
		}
	}
	var facts []event.Envelope
	streams := map[belay.StreamID]bool{}
	for r, err := range h.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		facts = append(facts, r.Event)
		streams[r.Event.Stream] = true
		end, ok := r.Event.Data.(event.TurnFailed)
		if ok && end.Outcome == belay.Cancelled && r.Event.Stream == thr.Stream() && !stopped.IsZero() {
			if took := r.Event.Time.Sub(stopped); took > engine.DefaultStall {
				m.t.Errorf("%s: the turn ended %s after that: %+v", what, took, end)
			}
		}
	}
	for stream := range streams {
		m.foldStream(m.t.Context(), h, stream, what)
	}
	coretest.Books(m.t, what, facts)
	if rows, err := h.Lanes(m.t.Context(), ""); err != nil || len(rows) != 0 {
		m.t.Errorf("%s: lanes at rest: %+v %v", what, rows, err)
	}
}

// mounted is a tool whose programs lie on a file system that may hang.
type mounted struct {
	fn
	hangs *atomic.Bool
	let   chan struct{}
}

func (m mounted) Starts(context.Context, tool.Call, []string) (tool.Start, error) {
	if m.hangs.Load() {
		<-m.let
	}
	return tool.Start{}, errors.New("they aren't looked up")
}

// TestAQuestionDoesntWaitForAFileSystem: where the world can't be looked at, a person is
// asked all the same, and soon, other arguments are refused for the moment, and a yes runs
// nothing: they are asked again when it is there.
// Guarantee: V24.
func TestAQuestionDoesntWaitForAFileSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, ran := mounted{hangs: &atomic.Bool{}, let: make(chan struct{})}, 0
		m.spec = tool.Spec{Name: "put", Doc: "p", Input: noArgs, Effect: belay.Idempotent, Access: belay.Write}
		m.run = func(context.Context, tool.Call) (tool.Result, error) {
			ran++
			return tool.Result{Text: "put"}, nil
		}
		b := newBench(t, "steps:\n  - calls: [{tool: put, args: {path: a}}]\n"+done, waits, m)
		b.dropGrants()
		soon := func(what string, f func()) {
			t.Helper()
			begun := time.Now()
			if f(); time.Since(begun) > engine.DefaultStall {
				t.Errorf("%s took %s", what, time.Since(begun))
			}
		}
		m.hangs.Store(true)
		var log []event.Envelope
		soon("the question", func() { log = b.run() })
		asked := find[event.PermissionRequested](log)
		if len(asked) != 1 || asked[0].Stands == nil || asked[0].Stands.Folder != "" || b.e.Stuck() != 1 {
			t.Fatalf("asked %+v, given up %d", asked, b.e.Stuck())
		}
		soon("the answer", func() {
			other := belay.RespondAction{Decision: "allow", Args: json.RawMessage(`{"path":"b"}`)}
			if err := b.brings(log, other); belay.CodeOf(err) != belay.CodeBusy {
				t.Errorf("other arguments were answered with %v", err)
			}
		})
		m.hangs.Store(false)
		b.answer(log, belay.RespondAction{Decision: "allow"})
		log = b.log()
		if asked = find[event.PermissionRequested](log); ran != 0 || len(asked) != 2 || asked[1].Stands.Folder == "" {
			t.Errorf("%d runs after %+v", ran, asked)
		}
		b.answer(log, belay.RespondAction{Decision: "allow"})
		if ran != 1 || len(find[event.TurnCompleted](b.log())) != 1 {
			t.Errorf("%d runs at last", ran)
		}
		close(m.let)
		synctest.Wait()
	})
}
