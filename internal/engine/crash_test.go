package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/price"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/testkit/sample"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

const (
	sess   = belay.SessionID("sess_1")
	thr    = belay.ThreadID("thr_1")
	theJob = belay.TaskID("task_1")
)

var errPower = errors.New("the power went off")

// machine is what survives a crash: the store's data and the files.
type machine struct {
	t      *testing.T
	data   *memory.Data
	dir    string
	script *scripted.Script
	tools  *tool.Set
	trees  effect.Trees
	team   team
	checks []belay.Check // of the task
	agents belay.AgentLimits
	procs  atomic.Int64
	edit   json.RawMessage // that calls are allowed with; nil: as they are
	used   int             // uses of counted grants that were seen
	quota  belay.Quota

	also func(p *process, rules belay.Ref) []belay.Command // that the session is told besides

	hangs  func(core.Effect) bool // nil: none does
	let    chan struct{}          // closed: what hangs ends
	keeper history.Snapshots
	rules  func(*thread.Rules) // changes what the first turn is decided by; nil: nothing
}

// parts are the same in every life.
type parts struct {
	script *scripted.Script
	tools  *tool.Set
}

var kit = sync.OnceValue(func() parts {
	sc, err := scripted.Load("../model/scripted/testdata/killloop.yaml")
	if err != nil {
		panic(err)
	}
	tools := []tool.Tool{effects{}}
	for _, t := range append(file.Tools(), tool.TurnTools()...) {
		tools = append(tools, mortalOf(t))
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		panic(err)
	}
	return parts{sc, set}
})

// process is one life of the program on the machine.
type process struct {
	m       *machine
	h       *memory.Store
	e       *system
	ctx     context.Context
	cut     context.CancelCauseFunc
	mu      sync.Mutex
	points  int
	crashAt int
	dead    bool
	watch   func(point int)
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	base := ""
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		base = "/dev/shm" // thousands of lives: their syncs needn't reach a disk
	}
	dir, err := os.MkdirTemp(base, "belay-crash-")
	if err != nil {
		t.Fatal(err)
	}
	src := "../model/scripted/testdata/killloop"
	if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	k := kit()
	return &machine{t: t, data: memory.New(), dir: dir, script: k.script, tools: k.tools, quota: theQuota}
}

// boot starts a process that loses power at its crashAt-th point; 0 is never.
func (m *machine) boot(crashAt int) *process {
	proc := int(m.procs.Add(1))
	ctx, cut := context.WithCancelCause(context.Background())
	p := &process{m: m, h: m.data.Open(memory.Options{}), cut: cut, crashAt: crashAt}
	p.ctx = context.WithValue(ctx, life{}, p)
	var err error
	p.e, err = newEngine(config{
		Store: p.h, Owner: store.Owner{ID: fmt.Sprintf("proc-%d", proc), Host: "test", PID: proc}, Tools: m.tools, Trees: m.trees, Team: m.team,
		Provider: func(context.Context, string, belay.Settings) (model.Provider, error) {
			return scripted.New(m.script), nil
		},
		Point: func(string) { p.point(cut) }, Hangs: m.hangs, Let: m.let, Keeper: m.keeper,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

// point counts, and at the chosen one the process is dead before it can do anything else.
func (p *process) point(cut context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.points++
	if p.watch != nil {
		p.watch(p.points)
	}
	if p.points == p.crashAt {
		p.dead = true
		p.h.Kill()
		cut(errPower)
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) off() {
	p.h.Close()
}

// life is the key of the process in a context: its tools die with it.
type life struct{}

func deadIn(ctx context.Context) bool {
	p, ok := ctx.Value(life{}).(*process)
	return ok && p.isDead()
}

// mortalOf is a tool that does nothing once its process is dead.
func mortalOf(t tool.Tool) tool.Tool {
	if r, ok := t.(tool.Recoverer); ok {
		return mortalRecoverer{mortal{t}, r}
	}
	return mortal{t}
}

type mortal struct{ tool.Tool }

func (m mortal) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if deadIn(ctx) {
		return tool.Result{}, errPower
	}
	return m.Tool.Run(ctx, c)
}

type mortalRecoverer struct {
	mortal
	r tool.Recoverer
}

func (m mortalRecoverer) Recover(ctx context.Context, c tool.Call) (tool.Result, bool, error) {
	if deadIn(ctx) {
		return tool.Result{}, false, errPower
	}
	return m.r.Recover(ctx, c)
}

// effects is exec reduced to its effect: every run leaves a line with its call.
type effects struct{}

func (effects) Spec() tool.Spec {
	return tool.Spec{Name: "exec", Doc: "run", Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"argv":{"type":"array"}},"additionalProperties":false}`),
		Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Capabilities: []string{"process"}}
}

func (effects) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if deadIn(ctx) {
		return tool.Result{}, errPower
	}
	f, err := os.OpenFile(filepath.Join(c.Dir, "effects.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, c.ID, string(c.Args))
	return tool.Result{Text: "exit 0"}, err
}

// theQuota is of all sessions.
var theQuota = belay.Quota{Of: "tenant", Kind: belay.BudgetCost, Limit: 5_000_000, Per: "month"}

// accept puts the work into the store: from here on nothing may be lost.
func (m *machine) accept() {
	p := m.boot(0)
	defer p.off()
	rules := thread.Rules{Workspace: m.dir, Boundary: thread.Boundary{Level: "L0", Why: "test", Network: "full"}, System: "test",
		Settings: belay.Settings{Provider: "scripted", Mode: belay.ModeAcceptEdits, Approvals: belay.ApprovalsWait, Limits: belay.DefaultLimits, Agents: m.agents, Budget: belay.Amounts{MicroUSD: 30_000, Calls: 100}},
		Models:   thread.Models{Routes: []core.Candidate{{Candidate: event.Candidate{Route: event.Route{Provider: "scripted"}}, Prices: &price.List{Rates: price.Rates{Input: 1e6, Output: 2e6}}}}}}
	if m.edit != nil {
		rules.Settings.Mode = belay.ModeDefault
	}
	rules.Tools = m.tools.Specs()
	if m.rules != nil {
		m.rules(&rules)
	}
	raw, _ := json.Marshal(rules)
	ref, err := p.h.Put(p.ctx, raw, "application/json")
	if err != nil {
		m.t.Fatal(err)
	}
	all := []belay.Command{
		belay.CreateSession{Workspace: m.dir, Settings: rules.Settings},
		belay.SubmitWork{Thread: thr, Task: theJob, Turn: "turn_1", Text: belay.Content{Text: "go"}, Rules: ref, Acceptance: m.checks,
			Quotas: []belay.Quota{m.quota}},
	}
	if m.also != nil {
		all = append(all, m.also(p, ref)...)
	}
	for i, c := range all {
		o := belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_%d", i)), Principal: "user:ann", Time: time.Now(), Session: sess, Stream: sess.Stream(), Command: c}
		if err := p.h.Enqueue(p.ctx, o); err != nil {
			m.t.Fatal(err)
		}
	}
}

// live drives the session until its turn ended or the process died. A second
// process answers what is asked.
func (p *process) live() error {
	for range 20 {
		if err := p.e.Session(p.ctx, sess, nil); err != nil {
			return err
		}
		d, err := loadThread(p.ctx, p.h)
		if err != nil {
			return err
		}
		if d.Turn == nil && d.Prev != nil {
			return nil
		}
		if p.m.edit != nil {
			p.m.enqueue(d)
			continue
		}
		p.m.answer(d)
	}
	return fmt.Errorf("the turn neither ends nor waits")
}

// enqueue leaves the answer to who drives the session, with other arguments.
func (m *machine) enqueue(s *thread.State) {
	for _, o := range s.Opens() {
		answer := belay.RespondAction{Action: o.Action, Decision: "allow", Seen: o.Version()}
		if o.Call != nil { // else it is about the budget
			answer.Args = m.edit
		}
		h := m.data.Open(memory.Options{})
		err := h.Enqueue(m.t.Context(), belay.Order{ID: belay.CommandID("cmd_answer_" + string(o.Action)), Principal: "user:bob", Time: time.Now(), Session: sess, Stream: thr.Stream(),
			Command: answer})
		if err != nil {
			m.t.Errorf("the answer isn't in the inbox: %v", err)
		}
		h.Close()
	}
}

func loadThread(ctx context.Context, st store.Store) (*thread.State, error) {
	return loadThreadOf(ctx, st, thr)
}

func loadThreadOf(ctx context.Context, st store.Store, id belay.ThreadID) (*thread.State, error) {
	d, _, _, err := engine.Load(ctx, st, id.Stream())
	if err != nil {
		return nil, err
	}
	return d.(*thread.Decider).State(), nil
}

// answer allows what a thread asks. more is what it allows besides the calls that ask.
func (m *machine) answer(s *thread.State, more ...belay.RespondAction) {
	for _, o := range s.Opens() {
		p := m.boot(0)
		yes := belay.RespondAction{}
		if len(more) > 0 && o.Kind == "permission" {
			yes = more[0]
		}
		yes.Action, yes.Decision = o.Action, "allow"
		if o.Kind == "question" {
			yes.Decision, yes.Message = "answer", "this one"
		}
		if o.Call != nil && o.Call.Input != nil {
			yes.Decision, yes.Message = "answer", `{"name":"Ada"}`
		}
		_, err := p.e.Submit(p.ctx, belay.Order{ID: belay.CommandID("cmd_answer_" + string(o.Action)), Principal: "user:bob", Session: sess, Stream: s.Stream,
			Command: yes})
		if err != nil && belay.CodeOf(err) != belay.CodeAlreadyAnswered { // an interrupt may come first
			m.t.Errorf("the answer was refused: %v", err)
		}
		p.off()
	}
}

// run lives through the crashes, one per process, and then to the end. It
// returns the points that the last process passed.
func (m *machine) run(crashes ...int) (points int, hit bool) {
	m.accept()
	return m.through(crashes, (*process).live)
}

// through lets one process after the other live until one of them doesn't crash.
func (m *machine) through(crashes []int, live func(*process) error) (points int, hit bool) {
	m.t.Helper()
	for i := 0; ; i++ {
		at := 0
		if i < len(crashes) {
			at = crashes[i]
		}
		p := m.boot(at)
		err := live(p)
		died := p.isDead()
		p.off()
		switch {
		case died:
			hit = i == len(crashes)-1
		case err != nil:
			m.t.Fatalf("crashes %v: %v", crashes, err)
		default:
			return p.points, hit
		}
	}
}

// check holds the laws against what is on the machine.
func (m *machine) check(what any) (lost bool) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	ctx := m.t.Context()
	s, err := loadThread(ctx, h)
	if err != nil {
		m.t.Fatalf("%v: %v", what, err)
	}
	var summary string
	for _, stream := range []belay.StreamID{sess.Stream(), thr.Stream(), theJob.Stream()} {
		summary += m.checkStream(ctx, h, stream, what)
	}
	var facts []event.Envelope
	for r, err := range h.Scan(ctx, 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		facts = append(facts, r.Event)
	}
	if books := coretest.Books(m.t, what, facts); books.Ops["ask"] == 0 || books.Ops["ledger quota returned"] == 0 {
		m.t.Errorf("%v: nobody was asked for a budget, or no quota was told: %v", what, books.Ops)
	}
	runs, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	n := bytes.Count(runs, []byte("\n"))
	lost = summary == "done (lost)"
	switch {
	case s.Prev == nil || s.Prev.Outcome != belay.Completed:
		m.t.Errorf("%v: ended %+v", what, s.Prev)
	case lost && n <= 1, summary == "done" && n == 1:
	default:
		m.t.Errorf("%v: %q after %d runs of the at-most-once tool", what, summary, n)
	}
	if edited, _ := os.ReadFile(filepath.Join(m.dir, "notes/a.txt")); !bytes.Contains(edited, []byte("colour green")) {
		m.t.Errorf("%v: the edit is not there: %q", what, edited)
	}
	rows, err := h.Lanes(ctx, "")
	if err != nil || len(rows) != 0 {
		m.t.Errorf("%v: lanes at rest: %+v %v", what, rows, err)
	}
	return lost
}

// checkStream: sequences without gap, ids that hold, and a cached state that
// is what folding says.
func (m *machine) checkStream(ctx context.Context, h store.Store, stream belay.StreamID, what any) (summary string) {
	m.t.Helper()
	d, summary := m.foldStream(ctx, h, stream, what)
	if td, ok := d.(*task.Decider); ok && (stream == theJob.Stream() && td.State().Status != "completed" || !td.State().Ended()) {
		m.t.Errorf("%v: the task is %s", what, td.State().Status)
	}
	return summary
}

// foldStream is checkStream but for how its task ended.
func (m *machine) foldStream(ctx context.Context, h store.Store, stream belay.StreamID, what any) (d core.Decider, summary string) {
	m.t.Helper()
	d, _, _, err := engine.Load(ctx, h, stream)
	if err != nil {
		m.t.Fatalf("%v: %s: %v", what, stream, err)
	}
	loaded, _ := d.Save()
	fresh, _, _ := engine.NewDecider(stream)
	next := int64(1)
	for e, err := range h.Read(ctx, stream, 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		if e.Seq != next {
			m.t.Errorf("%v: %s: sequence %d where %d should be", what, stream, e.Seq, next)
		}
		next++
		if err := eventtest.Check(e); err != nil {
			m.t.Errorf("%v: %v", what, err)
		}
		if c, ok := e.Data.(event.TurnCompleted); ok {
			summary = c.Summary.Text
		}
		fresh.Apply(e)
	}
	folded, _ := fresh.Save()
	if !bytes.Equal(loaded, folded) {
		m.t.Errorf("%v: %s: loading gives\n%s\nfolding gives\n%s", what, stream, loaded, folded)
	}
	return d, summary
}

func (m *machine) discard() { os.RemoveAll(m.dir) }

// one plays a life with the given crashes in virtual time.
func one(t *testing.T, crashes ...int) (points int, hit, lost bool) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		defer m.discard()
		points, hit = m.run(crashes...)
		lost = m.check(crashes)
	})
	return points, hit, lost
}

// TestCrashAtEveryPoint lets the process die before and after every append and
// at the start and end of every effect, once per run.
// Guarantee: O1, O3, O7, E1, E17, E71.
func TestCrashAtEveryPoint(t *testing.T) {
	points, losses := 0, 0
	for ; ; points++ {
		_, hit, lost := one(t, points+1)
		if !hit {
			break
		}
		if lost {
			losses++
		}
	}
	if losses == 0 || losses == points || points < 50 {
		t.Errorf("%d of %d crashes lost the at-most-once call; some must, most must not", losses, points)
	}
	t.Logf("%d points: %d ended done, %d done (lost)", points, points-losses, losses)
}

// TestCrashAtEveryPairOfPoints lets the process that resumes die as well.
// Guarantee: O3.
func TestCrashAtEveryPairOfPoints(t *testing.T) {
	total, _, _ := one(t)
	if raceEnabled {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		for range 200 {
			one(t, 1+r.IntN(total), 1+r.IntN(total))
		}
		t.Logf("200 pairs, seed %d", seed)
		return
	}
	pairs, losses := 0, 0
	for first := 1; first <= total; first++ {
		if !sample.Has(strconv.Itoa(first)) {
			continue
		}
		for second := 1; ; second++ {
			_, hit, lost := one(t, first, second)
			if !hit {
				break
			}
			pairs++
			if lost {
				losses++
			}
		}
	}
	t.Logf("%d pairs: %d ended done, %d done (lost)", pairs, pairs-losses, losses)
}

// TestInterruptAtEveryPoint: a second process interrupts at any moment; the turn
// ends cancelled, and a new turn continues to the same answer.
// Guarantee: O6.
func TestInterruptAtEveryPoint(t *testing.T) {
	cancelled := 0
	for at := 1; at < 200; at++ {
		reached := false
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			reached = m.interruptAt(at, &cancelled)
		})
		if !reached {
			t.Logf("%d points, %d turns ended cancelled", at-1, cancelled)
			if cancelled < 5 {
				t.Errorf("only %d turns were cancelled", cancelled)
			}
			return
		}
	}
	t.Error("the points don't end")
}

func (m *machine) interruptAt(at int, cancelled *int) (reached bool) {
	m.accept()
	p := m.boot(0)
	defer p.off()
	var once sync.WaitGroup
	p.watch = func(n int) {
		if n != at {
			return
		}
		reached = true
		once.Go(func() {
			q := m.boot(0)
			defer q.off()
			// Refused when no turn runs yet or any more: that is an answer too.
			_, _ = q.e.Submit(q.ctx, belay.Order{ID: "cmd_stop", Principal: "user:bob", Session: sess, Stream: thr.Stream(), Command: belay.InterruptTurn{}})
		})
	}
	if err := p.live(); err != nil {
		m.t.Fatalf("interrupt at %d: %v", at, err)
	}
	once.Wait()
	s, err := loadThread(p.ctx, p.h)
	if err != nil {
		m.t.Fatal(err)
	}
	if s.Prev.Outcome != belay.Cancelled {
		return reached
	}
	*cancelled++
	m.goOn(p, at)
	return reached
}

// goOn submits a new turn after a cancelled one and expects the script's end.
func (m *machine) goOn(p *process, at int) {
	var rules belay.Ref
	for e, err := range p.h.Read(p.ctx, thr.Stream(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		if s, ok := e.Data.(event.TurnStarted); ok {
			rules = s.Rules
		}
	}
	o := belay.Order{ID: "cmd_again", Principal: "user:ann", Session: sess, Stream: sess.Stream(),
		Command: belay.SubmitWork{Thread: thr, Task: "task_2", Turn: "turn_2", Text: belay.Content{Text: "go on"}, Rules: rules}}
	if err := p.h.Enqueue(p.ctx, o); err != nil {
		m.t.Fatal(err)
	}
	if err := p.live(); err != nil {
		m.t.Fatalf("after the interrupt at %d: %v", at, err)
	}
	s, err := loadThread(p.ctx, p.h)
	if err != nil || s.Prev.Turn != "turn_2" || s.Prev.Outcome != belay.Completed {
		m.t.Errorf("after the interrupt at %d: %+v %v", at, s.Prev, err)
	}
	runs, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	if n := strings.Count(string(runs), "\n"); n > 1 {
		m.t.Errorf("after the interrupt at %d the at-most-once tool ran %d times", at, n)
	}
}
