package engine_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/testkit/sample"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

var (
	interleavings = flag.Int("interleavings", 1000, "how many random interleavings are played")
	firstSeed     = flag.Uint64("seed", 1, "the seed of the first interleaving")
)

// gate lets one of those that wait at it go on at a time.
type gate struct {
	mu   sync.Mutex
	here []waiter
}

type waiter struct {
	name string
	on   chan struct{}
}

func (g *gate) pass(name string) {
	w := waiter{name, make(chan struct{})}
	g.mu.Lock()
	g.here = append(g.here, w)
	g.mu.Unlock()
	<-w.on
}

// next lets one go on; false when nobody waits. Who came in which order is the
// machine's doing, so it is sorted out first.
func (g *gate) next(rng *rand.Rand) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.here) == 0 {
		return false
	}
	slices.SortFunc(g.here, func(a, b waiter) int { return strings.Compare(a.name, b.name) })
	i := rng.IntN(len(g.here))
	close(g.here[i].on)
	g.here = slices.Delete(g.here, i, i+1)
	return true
}

// gated is a real tool that stops at the gate before it begins, after it ended
// and, because it keeps contents in between, between its look at a file and its
// change of it.
type gated struct {
	tool.Tool
	g *gate
}

func (t gated) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	name := string(c.ID)
	t.g.pass(name + " begins")
	c.Sink = gatedSink{c.Sink, name, t.g}
	r, err := t.Tool.Run(ctx, c)
	t.g.pass(name + " ended")
	return r, err
}

type gatedSink struct {
	tool.Sink
	name string
	g    *gate
}

func (s gatedSink) Keep(b []byte, media string) (belay.Ref, error) {
	s.g.pass(s.name + " keeps")
	return s.Sink.Keep(b, media)
}

// agent is a model that adds tokens to files, by what it read of them.
type agent struct {
	name  string
	rng   *rand.Rand
	exec  bool // it changes files by programs too
	left  int  // tokens to add
	tries int
	again bool // it read what it knew, once for each token: more would be a loop
	token string
	file  string
	known map[string][]string // the tokens of a file as it was read last
	made  map[string]string   // token → file: what it was told is done
	fails map[string]int      // by code
	done  bool
}

var tokenForm = regexp.MustCompile(`tok-[\w-]+`)

func content(tokens []string) string { return strings.Join(tokens, "\n") + "\nEND\n" }

func (a *agent) Stream(_ context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	a.learn(r.Messages[len(r.Messages)-1])
	name, args := a.act()
	raw, _ := json.Marshal(args)
	return func(yield func(model.Chunk, error) bool) {
		_ = yield(model.Chunk{Call: &model.Call{ID: "c", Name: name, Args: string(raw)}}, nil) && yield(model.Chunk{Stop: "tool_calls"}, nil)
	}
}

// learn takes in the outcome of the last call.
func (a *agent) learn(m belay.Message) {
	for _, p := range m.Parts {
		r := p.Result
		switch {
		case r == nil:
		case r.Name == "read" && !r.Error:
			a.known[a.file] = tokenForm.FindAllString(r.Text, -1)
		case !r.Error:
			a.made[a.token] = a.file
			a.known[a.file] = append(slices.Clone(a.known[a.file]), a.token)
			if r.Name == "append" {
				delete(a.known, a.file) // it doesn't know what the program found
			}
			a.token = ""
		default:
			code := "other: " + r.Text
			for _, c := range []string{"CONFLICT", "SAME_FAILURE"} {
				if strings.Contains(r.Text, c) {
					code = c
				}
			}
			a.fails[code]++
			delete(a.known, a.file)
		}
	}
	if a.token == "" || a.tries > 8 {
		a.left--
		a.tries, a.again = 0, false
		a.token = fmt.Sprintf("tok-%s-%d", a.name, a.left)
		a.file = []string{"a", "b"}[a.rng.IntN(2)]
	}
}

// act reads what it doesn't know, and at times what it does.
func (a *agent) act() (string, any) {
	if a.left < 0 {
		a.done = true
		return "complete_task", map[string]string{"summary": "done"}
	}
	known, ok := a.known[a.file]
	if again := ok && !a.again && a.rng.IntN(4) == 0; !ok || again {
		a.again = again
		return "read", map[string]string{"path": a.file}
	}
	a.tries++
	switch {
	case a.exec && a.rng.IntN(2) == 0:
		return "append", map[string]string{"file": a.file, "token": a.token}
	case a.rng.IntN(2) == 0 && a.tries < 3:
		return "edit", map[string]string{"path": a.file, "old": "END", "new": a.token + "\nEND"}
	}
	return "write", map[string]string{"path": a.file, "content": content(append(slices.Clone(known), a.token))}
}

// crowd is some sessions of several threads on one workspace.
type crowd struct {
	t      *testing.T
	dir    string
	gate   *gate
	agents map[string]*agent
	runs   []func() error
	seen   map[string][]string // what was in the files at the last look
	close  []func() error
	data   *memory.Data
	first  *memory.Store // the first session's process
	set    *tool.Set
}

// newCrowd makes a session of its own engine, as a process would have it, for
// each list of threads.
func newCrowd(t *testing.T, seed uint64, g *gate, tools []tool.Tool, sessions ...[]string) *crowd {
	c := &crowd{t: t, dir: quickDir(t), gate: g, agents: map[string]*agent{}, seen: map[string][]string{}}
	for _, name := range []string{"a", "b"} {
		c.seen[name] = []string{"tok-start"}
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content(c.seen[name])), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var all []tool.Tool
	for _, t := range tools {
		all = append(all, gated{t, c.gate})
	}
	set, err := tool.NewSet(append(all, tool.TurnTools()...)...)
	if err != nil {
		t.Fatal(err)
	}
	data := memory.New()
	for i, threads := range sessions {
		h := data.Open(memory.Options{})
		e, err := newEngine(config{Store: h, Owner: store.Owner{ID: fmt.Sprint("process-", i), Host: "test", PID: i + 1}, Tools: set,
			Provider: func(_ context.Context, _ string, s belay.Settings) (model.Provider, error) {
				return c.agents[s.Provider], nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		c.close = append(c.close, h.Close)
		if c.data, c.set = data, set; c.first == nil {
			c.first = h
		}
		id := belay.SessionID(fmt.Sprint("sess_", i))
		orders := []belay.Command{belay.CreateSession{Workspace: c.dir}}
		for n, name := range threads {
			c.agents[name] = &agent{name: name, rng: rand.New(rand.NewPCG(seed, uint64(10*i+n))), left: 3, known: map[string][]string{}, made: map[string]string{}, fails: map[string]int{}}
			rules, _ := json.Marshal(thread.Rules{Workspace: c.dir, Tools: set.Specs(), System: "test",
				Grants:   []policy.Grant{{Tool: "append", Tier: policy.TierUser, Kind: "rule"}},
				Settings: belay.Settings{Provider: name, Mode: belay.ModeAcceptEdits, Approvals: belay.ApprovalsDeny, Limits: belay.DefaultLimits}})
			ref, err := h.Put(t.Context(), rules, "")
			if err != nil {
				t.Fatal(err)
			}
			orders = append(orders, belay.SubmitWork{Thread: belay.ThreadID("thr_" + name), Task: belay.TaskID("task_" + name), Turn: belay.TurnID("turn_" + name), Text: belay.Content{Text: "go"}, Rules: ref})
		}
		for n, o := range orders {
			if err := h.Enqueue(t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_%d_%d", i, n)), Principal: "user:ann", Session: id, Stream: id.Stream(), Command: o}); err != nil {
				t.Fatal(err)
			}
		}
		c.runs = append(c.runs, func() error { return e.Session(t.Context(), id, nil) })
	}
	return c
}

// quickDir is a folder of real files, in memory where the machine has that: what
// is synced is not the matter here, and there are thousands of changes.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "belay-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// play runs the sessions to their ends, one tool step after the other.
func (c *crowd) play(rng *rand.Rand) {
	ended := make(chan error, len(c.runs))
	for _, run := range c.runs {
		go func() { ended <- run() }()
	}
	for left := len(c.runs); left > 0; {
		synctest.Wait()
		c.look()
		if c.gate.next(rng) {
			continue
		}
		select {
		case err := <-ended:
			if left--; err != nil {
				c.t.Error(err)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	for _, f := range c.close {
		if err := f(); err != nil {
			c.t.Error(err)
		}
	}
}

// look: nothing that was in a file is ever gone from it.
func (c *crowd) look() {
	for name, before := range c.seen {
		b, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			c.t.Fatal(err)
		}
		now := tokenForm.FindAllString(string(b), -1)
		for _, token := range before {
			if !slices.Contains(now, token) {
				c.t.Errorf("%s: %s was there and is lost: %v, then %v", name, token, before, now)
			}
		}
		if string(b) != content(now) {
			c.t.Errorf("%s is torn: %q", name, b)
		}
		c.seen[name] = now
	}
}

// settled: what the agents were told is done is there, once; what they were
// told failed is not.
func (c *crowd) settled() (made, conflicts int) {
	c.look()
	for _, a := range c.agents {
		if !a.done {
			c.t.Errorf("%s didn't end: %v", a.name, a.fails)
		}
		for code, n := range a.fails {
			if strings.HasPrefix(code, "other") {
				c.t.Errorf("%s: %d × %s", a.name, n, code)
			}
		}
		for token, name := range a.made {
			if n := count(c.seen[name], token); n != 1 {
				c.t.Errorf("%s was told that %s is in %s; it is there %d times: %v", a.name, token, name, n, c.seen[name])
			}
		}
		made += len(a.made)
		conflicts += a.fails["CONFLICT"]
	}
	if n := len(c.seen["a"]) + len(c.seen["b"]) - 2; n != made {
		c.t.Errorf("%d changes are in the files, %d were said to be made", n, made)
	}
	return made, conflicts
}

func count(all []string, s string) (n int) {
	for _, o := range all {
		if o == s {
			n++
		}
	}
	return n
}

// again says how to see a failure once more.
func again(t *testing.T, seed uint64) {
	if t.Failed() {
		t.Logf("seed %d; play it again with -seed %d -interleavings 1", seed, seed)
	}
}

// Two sessions, each of another process, and two threads of each change two
// files with the real tools, step by step in random order. The files are the
// witness: no change is lost unless its thread was told of a conflict.
// Guarantee: T20.
func TestNoUpdateIsLostWithoutAConflict(t *testing.T) {
	made, conflicts, n := 0, 0, sample.Of(*interleavings)
	if raceEnabled {
		n = min(n, 50)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(n) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			defer again(t, seed)
			c := newCrowd(t, seed, &gate{}, []tool.Tool{file.Read(), file.Write(), file.Edit()}, []string{"A1", "A2"}, []string{"B1", "B2"})
			c.play(rand.New(rand.NewPCG(seed, 0)))
			m, x := c.settled()
			made, conflicts = made+m, conflicts+x
		})
	}
	if conflicts < made/20 {
		t.Errorf("%d conflicts in %d changes: the threads hardly met", conflicts, made)
	}
	t.Logf("seeds %d to %d: %d changes, %d conflicts", *firstSeed, *firstSeed+uint64(n)-1, made, conflicts)
}

// appender is a program as the runtime sees one: it changes what it wants in
// the workspace, knows no digests and takes its time between reading and writing.
type appender struct{ g *gate }

func (appender) Spec() tool.Spec {
	return tool.Spec{Name: "append", Doc: "append", Effect: belay.AtMostOnce, Access: belay.Write,
		Input: json.RawMessage(`{"type":"object","properties":{"file":{"type":"string"},"token":{"type":"string"}},"required":["file","token"],"additionalProperties":false}`)}
}

func (t appender) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	var in struct{ File, Token string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Result{}, err
	}
	name := filepath.Join(c.Dir, in.File)
	b, err := os.ReadFile(name)
	if err != nil {
		return tool.Result{}, err
	}
	t.g.pass(string(c.ID) + " computes")
	return tool.Result{Text: "ok"}, os.WriteFile(name, []byte(content(append(tokenForm.FindAllString(string(b), -1), in.Token))), 0o644)
}

// Threads of one session: a program that one of them runs, and that knows
// nothing of digests, holds the workspace against the changes of the others.
// Guarantee: E22.
func TestAProgramHoldsTheWorkspaceInItsSession(t *testing.T) {
	made, n := 0, sample.Of(*interleavings/4)
	if raceEnabled {
		n = min(n, 25)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(n) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			defer again(t, seed)
			g := &gate{}
			c := newCrowd(t, seed, g, []tool.Tool{file.Read(), file.Write(), file.Edit(), appender{g}}, []string{"A1", "A2", "A3"})
			for _, a := range c.agents {
				a.exec = true
			}
			c.play(rand.New(rand.NewPCG(seed, 0)))
			m, _ := c.settled()
			made += m
		})
	}
	t.Logf("seeds %d to %d: %d changes", *firstSeed, *firstSeed+uint64(n)-1, made)
}

// until lets one after the other go on until something is so.
func (c *crowd) until(rng *rand.Rand, so func() bool) {
	for synctest.Wait(); !so(); synctest.Wait() {
		if !c.gate.next(rng) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// A process dies while one of its threads runs a program and has the workspace.
// The next one calls that lost, and the other threads go on.
// Guarantee: E22.
func TestAHoldOfALostCallIsFreeAfterATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, rng := &gate{}, rand.New(rand.NewPCG(1, 0))
		c := newCrowd(t, 1, g, []tool.Tool{file.Read(), file.Write(), file.Edit(), appender{g}}, []string{"A1", "A2"})
		for _, a := range c.agents {
			a.exec = true
		}
		ended := make(chan error, 1)
		go func() { ended <- c.runs[0]() }()
		c.until(rng, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return slices.ContainsFunc(g.here, func(w waiter) bool { return strings.HasSuffix(w.name, "computes") })
		})
		c.first.Kill()
		c.until(rng, func() bool { return len(ended) > 0 })

		h := c.data.Open(memory.Options{})
		e, err := newEngine(config{Store: h, Owner: store.Owner{ID: "next", Host: "test", PID: 99}, Tools: c.set,
			Provider: func(_ context.Context, _ string, s belay.Settings) (model.Provider, error) {
				return c.agents[s.Provider], nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		<-ended
		go func() { ended <- e.Session(t.Context(), "sess_0", nil) }()
		c.until(rng, func() bool { return len(ended) > 0 })
		if err := <-ended; err != nil {
			t.Error(err)
		}
		lost, held := 0, map[string]int{}
		for r, err := range h.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch p := r.Event.Data.(type) {
			case event.ToolFailed:
				if p.Problem.Class == "lost" {
					lost++
				}
			case event.SessionUpdated:
				if p.Hold != nil {
					held[p.Hold.Op]++
				}
			case event.TurnCompleted:
				held["turns"]++
			}
		}
		if lost == 0 || held[event.HoldGranted] == 0 || held[event.HoldReleased] != held[event.HoldGranted] || held["turns"] != 2 {
			t.Errorf("%d calls are lost; %v", lost, held)
		}
		for _, f := range append(c.close, h.Close) {
			_ = f()
		}
	})
}
