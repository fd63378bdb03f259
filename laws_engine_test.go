package belay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

// slow is a store whose appends take a while, so that everything that could
// come before one does.
type slow struct{ *memory.Store }

func (s slow) Append(ctx context.Context, b ...store.Batch) ([]store.Position, error) {
	time.Sleep(time.Millisecond) // of virtual time
	return s.Store.Append(ctx, b...)
}

// announced reports whether a stream's log holds a fact.
func announced(t *testing.T, st store.Store, is func(event.Envelope) bool) bool {
	for e, err := range st.Read(context.Background(), loopThread.Stream(), 0) {
		if err != nil {
			t.Error(err)
			return false
		}
		if is(e) {
			return true
		}
	}
	return false
}

// system is an engine on a memory store that plays a script.
type system struct {
	t        *testing.T
	st       store.Store
	e        *engine.Engine
	tools    *tool.Set
	mu       sync.Mutex
	requests []model.Request
	look     func(model.Request) // at each request before it is answered
	turns    int
}

type systemConfig struct {
	script  string
	tools   []tool.Tool
	now     func() time.Time
	look    func(model.Request)
	secrets *secret.Scrubber
}

func newSystem(t *testing.T, c systemConfig) *system {
	t.Helper()
	script, err := scripted.Parse("law.yaml", []byte(c.script))
	if err != nil {
		t.Fatal(err)
	}
	s := &system{t: t, st: slow{memory.Open(memory.Options{})}, look: c.look}
	if s.tools, err = tool.NewSet(append(c.tools, tool.TurnTools()...)...); err != nil {
		t.Fatal(err)
	}
	p, err := effect.New(effect.Config{Store: s.st, Tools: s.tools, Now: c.now, Secrets: c.secrets,
		Provider: func(context.Context, string, belay.Settings) (model.Provider, error) {
			return watched{scripted.New(script), s}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if s.e, err = engine.New(engine.Config{Store: s.st, Owner: store.Owner{ID: "proc_law"}, Performers: p, Now: c.now, Secrets: c.secrets}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.st.Close() })
	return s
}

// watched keeps the requests that a provider gets.
type watched struct {
	model.Provider
	s *system
}

func (w watched) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	w.s.mu.Lock()
	kept := r
	kept.Messages = slices.Clone(r.Messages)
	w.s.requests = append(w.s.requests, kept)
	w.s.mu.Unlock()
	if w.s.look != nil {
		w.s.look(r)
	}
	return w.Provider.Stream(ctx, r)
}

// orders are the commands that give the session a turn.
func (s *system) orders(settings belay.Settings) (orders []belay.Order) {
	s.t.Helper()
	s.turns++
	settings.Provider, settings.Mode = "scripted", belay.ModeDefault
	rules, err := json.Marshal(thread.Rules{Settings: settings, Workspace: s.t.TempDir(), Tools: s.tools.Specs()})
	if err != nil {
		s.t.Fatal(err)
	}
	ref, err := s.st.Put(s.t.Context(), rules, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for i, c := range []belay.Command{
		belay.CreateSession{Workspace: "/ws", Settings: settings},
		belay.SubmitWork{Thread: loopThread, Task: belay.TaskID(fmt.Sprint("task_", s.turns)), Turn: belay.TurnID(fmt.Sprint("turn_", s.turns)),
			Text: belay.Content{Text: "go"}, Rules: ref},
	} {
		orders = append(orders, belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_%d_%d", s.turns, i)), Principal: "user:ann",
			Session: loopSession, Stream: loopSession.Stream(), Command: c})
	}
	return orders
}

// turn submits a turn and drives the session until it rests.
func (s *system) turn(settings belay.Settings) {
	s.t.Helper()
	for _, o := range s.orders(settings) {
		if err := s.st.Enqueue(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.e.Session(s.t.Context(), loopSession, nil); err != nil {
		s.t.Fatal(err)
	}
}

// last is the newest request.
func (s *system) last() model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

// reading is a tool that only reads.
type reading struct {
	name string
	run  func(context.Context, tool.Call) string
}

func (r reading) Spec() tool.Spec {
	return tool.Spec{Name: r.name, Doc: r.name, Input: []byte(`{"type":"object"}`), ReadOnly: true, Effect: belay.Pure}
}

func (r reading) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	return tool.Result{Text: r.run(ctx, c)}, nil
}

const completes = "  - calls: [{tool: complete_task, args: {summary: done}}]\n"

// When a request leaves or a tool runs, the fact that says so is in the log.
// Guarantee: O1.
func announcedBeforeItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *system
		ran := 0
		look := reading{"look", func(_ context.Context, c tool.Call) string {
			ran++
			if !announced(t, s.st, func(e event.Envelope) bool { _, ok := e.Data.(event.ToolStarted); return ok && e.IDs.Call == c.ID }) {
				t.Errorf("%s runs and the log doesn't know", c.ID)
			}
			return "seen"
		}}
		s = newSystem(t, systemConfig{script: "name: law\nsteps:\n  - calls: [{tool: look, args: {}}]\n" + completes, tools: []tool.Tool{look},
			look: func(r model.Request) {
				if !announced(t, s.st, func(e event.Envelope) bool {
					_, ok := e.Data.(event.ModelRequested)
					return ok && string(e.IDs.Step) == r.Key
				}) {
					t.Errorf("request %s leaves and the log doesn't know", r.Key)
				}
			}})
		s.turn(belay.Settings{})
		if ran != 1 || len(s.requests) != 2 {
			t.Errorf("%d calls, %d requests", ran, len(s.requests))
		}
	})
}

// A clock that jumps back changes neither the order of times nor what folding
// the log says.
// Guarantee: O10.
func timeNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		clock := time.Now()
		s := newSystem(t, systemConfig{script: "name: law\nsteps:\n" + completes, now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			clock = clock.Add(-time.Second)
			return clock
		}})
		s.turn(belay.Settings{})
		stream := loopThread.Stream()
		fresh := thread.New(stream)
		var last time.Time
		for e, err := range s.st.Read(t.Context(), stream, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Time.Before(last) {
				t.Errorf("%s at %s, after %s", e.Type(), e.Time, last)
			}
			last = e.Time
			fresh.Apply(e)
		}
		cached, _, _, err := engine.Load(t.Context(), s.st, stream)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := cached.Save()
		want, _ := fresh.Save()
		if string(got) != string(want) {
			t.Errorf("the cached state is\n%s\nfolding says\n%s", got, want)
		}
	})
}

// Guarantee: E14.
func resultsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(name string, d time.Duration) tool.Tool {
			return reading{name, func(context.Context, tool.Call) string {
				time.Sleep(d) // of virtual time
				return "from " + name
			}}
		}
		s := newSystem(t, systemConfig{
			script: "name: law\nsteps:\n  - calls: [{tool: slow, args: {}}, {tool: quick, args: {}}, {tool: middle, args: {}}]\n" + completes,
			tools:  []tool.Tool{after("slow", 3*time.Second), after("quick", time.Second), after("middle", 2*time.Second)}})
		s.turn(belay.Settings{})
		m := s.last().Messages
		var got []string
		for _, p := range m[len(m)-1].Parts {
			if p.Result != nil {
				got = append(got, p.Result.Text)
			}
		}
		if want := []string{"from slow", "from quick", "from middle"}; !slices.Equal(got, want) {
			t.Errorf("the model reads %q, want %q", got, want)
		}
	})
}

// Guarantee: E14.
func toldHowTheTurnBeforeEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, systemConfig{script: "name: law\nsteps:\n" + strings.Repeat("  - text: hm\n", 2) + strings.Repeat(completes, 3)})
		s.turn(belay.Settings{Limits: belay.Limits{Steps: 1}})
		s.turn(belay.Settings{})
		var said string
		for _, m := range s.last().Messages {
			for _, p := range m.Parts {
				said += p.Text + "\n"
			}
		}
		if !strings.Contains(said, string(belay.NoCompletion)) {
			t.Errorf("the model reads %q and nothing of how the turn before ended", said)
		}
	})
}

// A process that only brings a command lets the streams handle it and leaves
// what follows to whoever drives the session.
// Guarantee: S8.
func bringingACommandStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, systemConfig{script: "name: law\nsteps:\n" + completes})
		for _, o := range s.orders(belay.Settings{}) {
			if _, err := s.e.Submit(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.requests); n != 0 {
			t.Errorf("%d requests left", n)
		}
		if !announced(t, s.st, func(e event.Envelope) bool { return e.Type() == "turn.submitted" }) {
			t.Error("the command was not handled")
		}
		rows, err := s.st.Lanes(t.Context(), loopSession)
		if err != nil || len(rows) != 1 || !rows[0].Runnable {
			t.Errorf("what is left to do: %+v %v", rows, err)
		}
		if err := s.e.Session(t.Context(), loopSession, nil); err != nil || len(s.requests) != 1 {
			t.Errorf("driven then: %v, %d requests", err, len(s.requests))
		}
	})
}

// A command waits in the inbox as long as another process owns the session.
// Guarantee: X1.
func commandsWaitWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const value = "s3cr3t-value"
		known := &secret.Scrubber{}
		known.Add("KEY", value)
		s := newSystem(t, systemConfig{script: "name: law\nsteps:\n" + completes, secrets: known})
		if _, err := s.st.Claim(t.Context(), loopSession, store.Owner{ID: "another"}, time.Hour); err != nil {
			t.Fatal(err)
		}
		answer, err := s.e.Submit(t.Context(), belay.Order{ID: "cmd_stop", Principal: "user:ann", Session: loopSession, Stream: loopThread.Stream(),
			Command: belay.InterruptTurn{Reason: "the key is " + value}})
		if err != nil || !answer.Pending {
			t.Fatalf("got %+v, %v; want an answer that is pending", answer, err)
		}
		waiting, err := s.st.Inbox(t.Context(), loopThread.Stream())
		if err != nil || len(waiting) != 1 {
			t.Fatalf("waiting: %v, %v", waiting, err)
		}
		if got := waiting[0].Command.(belay.InterruptTurn).Reason; got != "the key is [redacted:KEY]" {
			t.Errorf("the inbox holds %q", got)
		}
	})
}

func idsFollowFromTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, systemConfig{script: "name: law\nsteps:\n" + completes})
		s.turn(belay.Settings{})
		calls := 0
		for e, err := range s.st.Read(t.Context(), loopThread.Stream(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			p, ok := e.Data.(event.ModelCompleted)
			if !ok {
				continue
			}
			for i, c := range p.Calls {
				calls++
				if want := belay.DeriveID(belay.PrefixCall, e.Stream, e.Seq, i); string(c.ID) != want {
					t.Errorf("call %d of fact %d is %s, want %s", i, e.Seq, c.ID, want)
				}
			}
		}
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

// Guarantee: O11.
func newerFactsStopAnOlderProgram(t *testing.T) {
	st := memory.Open(memory.Options{})
	defer st.Close()
	epoch, err := st.Claim(t.Context(), loopSession, store.Owner{ID: "newer"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Append(t.Context(), store.Batch{Session: loopSession, Stream: loopThread.Stream(), Epoch: epoch, Events: []event.Envelope{
		{IDs: belay.IDs{Session: loopSession, Thread: loopThread}, Requires: 1 << 20, Data: event.ThreadStarted{Kind: "main", Workspace: "/ws"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := engine.Load(t.Context(), st, loopThread.Stream()); belay.CodeOf(err) != belay.CodeRequires {
		t.Errorf("got %v, want %s", err, belay.CodeRequires)
	}
}
