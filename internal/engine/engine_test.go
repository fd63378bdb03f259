package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/internal/effect"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench runs one script with test tools.
type bench struct {
	t        *testing.T
	h        *memory.Store
	e        *system
	c        config // it was made with
	ref      belay.Ref
	live     []event.Delta
	mu       sync.Mutex
	settings belay.Settings
	asked    []string     // the messages of each request, as JSON
	check    effect.Check // nil refuses
	now      func() time.Time
	wrap     func(model.Provider) model.Provider // around the script; nil is none
}

// spy notes what a model is asked.
type spy struct {
	model.Provider
	b *bench
}

func (s spy) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	raw, _ := json.Marshal(r.Messages)
	s.b.mu.Lock()
	s.b.asked = append(s.b.asked, string(raw))
	s.b.mu.Unlock()
	return s.Provider.Stream(ctx, r)
}

func (b *bench) clock(now func() time.Time) { b.now = now }

// dropGrants takes back what the tools were allowed beforehand.
func (b *bench) dropGrants() {
	b.t.Helper()
	b.changeRules(func(r *thread.Rules) { r.Grants = nil })
}

func (b *bench) changeRules(change func(*thread.Rules)) {
	b.t.Helper()
	raw, err := b.h.Get(b.t.Context(), b.ref.Digest)
	var rules thread.Rules
	if err == nil {
		err = json.Unmarshal(raw, &rules)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	change(&rules)
	raw, _ = json.Marshal(rules)
	if b.ref, err = b.h.Put(b.t.Context(), raw, ""); err != nil {
		b.t.Fatal(err)
	}
}

// fn is a tool made of a function.
type fn struct {
	spec tool.Spec
	run  func(context.Context, tool.Call) (tool.Result, error)
}

func (f fn) Spec() tool.Spec { return f.spec }
func (f fn) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	return f.run(ctx, c)
}

var noArgs = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`)

func newBench(t *testing.T, script string, change func(*belay.Settings), tools ...tool.Tool) *bench {
	t.Helper()
	sc, err := scripted.Parse("test.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(append(tools, tool.TurnTools()...)...)
	if err != nil {
		t.Fatal(err)
	}
	secrets := &secret.Scrubber{}
	secrets.Add("KEY", "s3cr3t-value")
	b := &bench{t: t, h: memory.Open(memory.Options{})}
	b.now = time.Now
	b.c = config{
		Now:   func() time.Time { return b.now() },
		Store: b.h, Owner: store.Owner{ID: "proc", Host: "test", PID: 1}, Tools: set,
		Provider: func(context.Context, string, belay.Settings) (model.Provider, error) {
			if b.wrap != nil {
				return spy{b.wrap(scripted.New(sc)), b}, nil
			}
			return spy{scripted.New(sc), b}, nil
		},
		Secrets: secrets,
		Check: func(ctx context.Context, c policy.Checker, dir string, q []byte) (policy.Answer, error) {
			if b.check == nil {
				return policy.Answer{}, errors.New("there is none")
			}
			return b.check(ctx, c, dir, q)
		},
		Live: func(l event.Delta) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.live = append(b.live, l)
		},
	}
	if b.e, err = newEngine(b.c); err != nil {
		t.Fatal(err)
	}
	b.settings = belay.Settings{Provider: "scripted", Mode: belay.ModeDefault, Approvals: belay.ApprovalsDeny, Limits: belay.DefaultLimits}
	if change != nil {
		change(&b.settings)
	}
	rules := thread.Rules{Workspace: t.TempDir(), Settings: b.settings, Tools: set.Specs(), System: "test"}
	for _, f := range tools {
		rules.Grants = append(rules.Grants, policy.Grant{Tool: f.Spec().Name, Tier: policy.TierUser, Kind: "rule"})
	}
	raw, _ := json.Marshal(rules)
	if b.ref, err = b.h.Put(t.Context(), raw, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.h.Close() })
	return b
}

func (b *bench) submit(n int, text string) {
	b.t.Helper()
	id := belay.SessionID(fmt.Sprintf("sess_%d", n))
	for i, c := range []belay.Command{
		belay.CreateSession{Workspace: "/ws", Settings: b.settings},
		belay.SubmitWork{Thread: belay.ThreadID(fmt.Sprintf("thr_%d", n)), Task: belay.TaskID(fmt.Sprintf("task_%d", n)), Turn: belay.TurnID(fmt.Sprintf("turn_%d", n)), Text: belay.Content{Text: text}, Rules: b.ref},
	} {
		if err := b.h.Enqueue(b.t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_%d_%d", n, i)), Principal: "user:ann", Session: id, Stream: id.Stream(), Command: c}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// run plays session 1 to its rest and returns the thread's facts.
func (b *bench) run() []event.Envelope {
	b.t.Helper()
	b.submit(1, "go")
	if err := b.e.Session(b.t.Context(), sess, nil); err != nil {
		b.t.Fatal(err)
	}
	return b.log()
}

func (b *bench) log() (log []event.Envelope) {
	for e, err := range b.h.Read(context.Background(), thr.Stream(), 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		raw, err := event.Encode(e.Data)
		if err != nil || len(raw) > 16<<10 {
			b.t.Errorf("%s: payload of %d bytes (%v)", e.Type(), len(raw), err)
		}
		log = append(log, e)
	}
	return log
}

func find[P event.Payload](log []event.Envelope) (out []P) {
	for _, e := range log {
		if p, ok := e.Data.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

const done = "  - calls: [{tool: complete_task, args: {summary: done}}]\n"

func pure(name string, run func(context.Context, tool.Call) (tool.Result, error)) fn {
	return fn{tool.Spec{Name: name, Doc: name, Input: noArgs, Effect: belay.Pure, ReadOnly: true}, run}
}

// Guarantee: E12.
func TestFaultsOfAModelAreFactsAndRetried(t *testing.T) {
	for _, kind := range []string{"transient", "rate_limited", "cut"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "name: t\nsteps:\n  - text: hello world\n    fault: {kind: "+kind+", attempts: 2, afterChars: 5}\n    calls: [{tool: complete_task, args: {summary: done}}]\n", nil)
				log := b.run()
				fails := find[event.ModelFailed](log)
				if len(fails) != 2 || len(find[event.TurnCompleted](log)) != 1 {
					t.Fatalf("%d failures, ends %v", len(fails), log[len(log)-1].Type())
				}
				if !fails[1].RetryAt.After(fails[0].RetryAt) {
					t.Error("the second retry isn't later than the first")
				}
			})
		})
	}
}

// Guarantee: E12.
func TestAModelThatKeepsFailingEndsTheTurn(t *testing.T) {
	for kind, attempts := range map[string]int{"transient": 4, "auth": 1, "bad_request": 1, "overflow": 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, "name: t\nsteps:\n  - text: x\n    fault: {kind: "+kind+", attempts: 100, message: it broke}\n", nil)
			log := b.run()
			ends := find[event.TurnFailed](log)
			code := "MODEL_FAILED"
			if kind == "overflow" {
				code = "CONTEXT_FULL"
			}
			if len(ends) != 1 || ends[0].Outcome != belay.Failed || ends[0].Code != code || len(find[event.ModelFailed](log)) != attempts {
				t.Errorf("%s: %+v after %d failures", kind, ends, len(find[event.ModelFailed](log)))
			}
		})
	}
}

// A provider that asks for a short wait is waited for; one that asks for a long
// one ends the turn, and the reason says how long.
func TestALongWaitEndsTheTurn(t *testing.T) {
	for wait, patient := range map[time.Duration]bool{9 * time.Minute: true, 11 * time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			b := newBench(t, "name: t\nsteps:\n  - text: x\n    fault: {kind: rate_limited, attempts: 1, retryAfter: "+wait.String()+"}\n    calls: [{tool: complete_task, args: {summary: done}}]\n", nil)
			log := b.run()
			if patient {
				if took := time.Since(began); len(find[event.TurnCompleted](log)) != 1 || took < wait {
					t.Errorf("asked to wait %s: %s after %s", wait, log[len(log)-1].Type(), took)
				}
				return
			}
			ends := find[event.TurnFailed](log)
			if len(ends) != 1 || ends[0].Code != "MODEL_FAILED" || !strings.Contains(ends[0].Reason, wait.String()) || time.Since(began) > time.Minute {
				t.Errorf("asked to wait %s: %+v after %s", wait, ends, time.Since(began))
			}
		})
	}
}

// Guarantee: O6.
func TestTextIsCheckpointedAndKeptWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("word ", 2000)
		b := newBench(t, "name: t\nsteps:\n  - text: "+text+"\n    fault: {kind: hang, afterChars: 9000}\n", nil)
		b.submit(1, "go")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.e.Session(t.Context(), sess, nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := b.e.Submit(t.Context(), belay.Order{ID: "cmd_x", Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: belay.InterruptTurn{}}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		log := b.log()
		var saved strings.Builder
		for _, d := range find[event.ModelDelta](log) {
			if int(d.Offset) != saved.Len() {
				t.Errorf("checkpoint at %d, %d bytes before it", d.Offset, saved.Len())
			}
			saved.WriteString(d.Text)
		}
		if saved.Len() < 8000 {
			t.Errorf("only %d bytes in checkpoints", saved.Len())
		}
		end := find[event.TurnFailed](log)[0]
		if end.Outcome != belay.Cancelled || end.PartialRef == nil || end.PartialRef.Size != 9000 {
			t.Errorf("ended %+v", end)
		}
	})
}

// Who has followed the checkpoints of a long answer needn't read it.
func TestTheCheckpointsOfALongAnswerHaveAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.TrimSpace(strings.Repeat("word ", 2100))
		b := newBench(t, "name: t\nsteps:\n  - text: "+text+"\n", nil)
		b.submit(1, "go")
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
		log := b.log()
		step := find[event.ModelCompleted](log)[0].Text
		var saved strings.Builder
		for _, d := range find[event.ModelDelta](log) {
			saved.WriteString(d.Text)
		}
		if saved.String() != text || step.Ref == nil || step.Ref.Digest != belay.DigestOf([]byte(text)) || step.Tokens != tokens.Text(text) {
			t.Errorf("%d bytes in checkpoints, the answer is %+v", saved.Len(), step)
		}
	})
}

// Guarantee: X1.
func TestARegisteredSecretNeverReachesTheStore(t *testing.T) {
	const secret = "s3cr3t-value"
	synctest.Test(t, func(t *testing.T) {
		leak := pure("leak", func(_ context.Context, c tool.Call) (tool.Result, error) {
			if _, err := c.Sink.Keep([]byte("kept "+secret), ""); !errors.Is(err, tool.ErrHoldsSecret) {
				t.Errorf("content with a secret is kept: %v", err)
			}
			out, err := c.Sink.Output("")
			if err != nil {
				return tool.Result{}, err
			}
			fmt.Fprint(out, "streamed s3cr")
			fmt.Fprint(out, "3t-value")
			ref, err := out.Commit()
			if content, _ := c.Sink.Kept(ref.Digest); err != nil || bytes.Contains(content, []byte(secret)) {
				t.Errorf("a streamed output holds the secret: %q %v", content, err)
			}
			return tool.Result{Text: strings.Repeat("x", 20_000) + secret + strings.Repeat("y", 20_000)}, nil
		})
		b := newBench(t, "name: t\nsteps:\n  - text: it is "+secret+"\n    chunks: 5\n    calls: [{tool: leak, args: {path: "+secret+"}}]\n  - calls: [{tool: complete_task, args: {summary: "+secret+"}}]\n", nil, leak)
		b.submit(1, "use "+secret)
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
		for r, err := range b.h.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := json.Marshal(r.Event)
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s holds the secret: %s", r.Event.Type(), raw)
			}
			for _, ref := range refsIn(raw) {
				content, err := b.h.Get(t.Context(), ref)
				if err != nil {
					t.Errorf("%s names %s: %v", r.Event.Type(), ref, err)
				}
				if bytes.Contains(content, []byte(secret)) {
					t.Errorf("%s names content with the secret", r.Event.Type())
				}
			}
		}
		if len(find[event.TurnCompleted](b.log())) != 1 {
			t.Error("the turn did not complete")
		}
	})
}

// refsIn are the digests of the blobs that a fact names.
func refsIn(raw []byte) (out []belay.Digest) {
	rest := string(raw)
	for {
		i := strings.Index(rest, `{"digest":"sha256:`)
		if i < 0 {
			return out
		}
		rest = rest[i+len(`{"digest":"`):]
		out = append(out, belay.Digest(rest[:len("sha256:")+64]))
	}
}

// Guarantee: S19.
func TestALargeOutputIsShownInPartAndKeptWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := strings.Repeat("0123456789\n", 100_000)
		b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: big, args: {}}]\n"+done, nil, pure("big", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Text: big}, nil
		}))
		r := find[event.ToolResult](b.run())[0]
		if r.Whole == nil || r.Whole.Size != int64(len(big)) {
			t.Fatalf("whole: %+v", r.Whole)
		}
		shown, err := b.h.Get(t.Context(), r.Output.Ref.Digest)
		if err != nil || len(shown) > tool.DefaultOutputLimit+100 || !bytes.Contains(shown, []byte("bytes left out")) {
			t.Errorf("the model is shown %d bytes (%v)", len(shown), err)
		}
	})
}

// Guarantee: E9.
func TestAHangingToolMeetsItsTimeoutAndTheTurnsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}
		slow := pure("slow", hang)
		slow.spec.Timeout = belay.Duration(10 * time.Second)
		script := "name: t\nsteps:\n  - calls: [{tool: slow, args: {}}]\n  - calls: [{tool: slow, args: {n: 1}}]\n" + done
		b := newBench(t, script, func(s *belay.Settings) { s.Limits.Time = belay.Duration(15 * time.Second) }, slow)
		log := b.run()
		fails := find[event.ToolFailed](log)
		if len(fails) != 2 || fails[0].Problem.Class != tool.Timeout || fails[1].Problem.Class != "cancelled" {
			t.Fatalf("failures: %+v", fails)
		}
		reqs := find[event.ModelRequested](log)
		if last := reqs[len(reqs)-1]; last.Kind != thread.KindFinal || last.Limit != "time" {
			t.Errorf("the last request is %+v", last)
		}
		if end := find[event.TurnCompleted](log); len(end) != 1 || end[0].Stats.ActiveMS < 15_000 || end[0].Stats.ActiveMS > 16_000 {
			t.Errorf("end: %+v", end)
		}
	})
}

func TestTransientFailuresOfPureToolsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		flaky := pure("flaky", func(context.Context, tool.Call) (tool.Result, error) {
			if n++; n < 3 {
				return tool.Result{}, &tool.Error{Problem: event.Problem{Class: tool.Transient, Code: "NET", Message: "no route"}}
			}
			return tool.Result{Text: "ok"}, nil
		})
		begun := time.Now()
		log := newBench(t, "name: t\nsteps:\n  - calls: [{tool: flaky, args: {}}]\n"+done, nil, flaky).run()
		r := find[event.ToolResult](log)
		if len(r) != 2 || r[0].Attempt != 3 {
			t.Errorf("results: %+v", r)
		}
		if d := time.Since(begun); d != 3*time.Second {
			t.Errorf("the retries took %s, not 1 s and 2 s", d)
		}
	})
}

// Guarantee: E13.
func TestReadsRunTogetherAndWritesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, readers, overlap atomic.Int32
		enter := func(write bool) func() {
			n := now.Add(1)
			if write && n > 1 {
				overlap.Add(1)
			}
			readers.Store(max(readers.Load(), n))
			return func() { now.Add(-1) }
		}
		work := func(write bool) func(context.Context, tool.Call) (tool.Result, error) {
			return func(_ context.Context, c tool.Call) (tool.Result, error) {
				defer enter(write)()
				time.Sleep(time.Second)
				return tool.Result{Text: string(c.Args)}, nil
			}
		}
		rd := pure("rd", work(false))
		rd.spec.PathArg, rd.spec.Access = "path", belay.Read
		wr := fn{tool.Spec{Name: "wr", Doc: "w", Input: noArgs, Effect: belay.Idempotent, Access: belay.Write}, work(true)}
		b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: rd, args: {path: a}}, {tool: rd, args: {path: b}}, {tool: rd, args: {path: c}}, {tool: wr, args: {}}, {tool: rd, args: {path: a}}]\n"+done, nil, rd, wr)
		begun := time.Now()
		b.run()
		if readers.Load() != 3 || overlap.Load() != 0 || time.Since(begun) != 3*time.Second {
			t.Errorf("%d ran together, %d writes overlapped, %s in all", readers.Load(), overlap.Load(), time.Since(begun))
		}
	})
}

// Guarantee: S3.
func TestAnEngineThatLostItsSessionStopsAndWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		hang := pure("hang", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			close(ended)
			return tool.Result{}, ctx.Err()
		})
		hang.spec.Timeout = belay.Duration(time.Hour)
		b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: hang, args: {}}]\n"+done, nil, hang)
		b.submit(1, "go")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.e.Session(t.Context(), sess, nil); err == nil {
				t.Error("the session ended well though it was taken")
			}
		})
		synctest.Wait()
		before := len(b.log())
		b.h.Kill() // its leases can't be renewed any more
		time.Sleep(engine.Lease)
		<-ended
		wg.Wait()
		next := b.h.Data().Open(memory.Options{})
		defer next.Close()
		n := 0
		for _, err := range next.Read(t.Context(), thr.Stream(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != before {
			t.Errorf("%d facts before, %d after", before, n)
		}
	})
}

// Guarantee: E15.
func TestShutdownRecordsKnownResultsAndTheNextDriveContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		hang := pure("look", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			if first {
				first = false
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			return tool.Result{Text: "seen"}, nil
		})
		b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: look, args: {}}]\n"+done, nil, hang)
		b.submit(1, "go")
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.e.Session(ctx, sess, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("left with %v", err)
			}
		})
		synctest.Wait()
		leave()
		wg.Wait()
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
		log := b.log()
		if r := find[event.ToolResult](log); len(r) != 2 || r[0].Attempt != 2 || len(find[event.TurnCompleted](log)) != 1 {
			t.Errorf("results %+v", r)
		}
	})
}

func TestManySessionsOnOneEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := pure("look", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "seen"}, nil })
		b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: look, args: {}}]\n  - calls: [{tool: look, args: {n: 1}}]\n"+done, nil, look)
		var wg sync.WaitGroup
		for n := 1; n <= 100; n++ {
			b.submit(n, "go")
			wg.Go(func() {
				if err := b.e.Session(t.Context(), belay.SessionID(fmt.Sprintf("sess_%d", n)), nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		ends := 0
		for r, err := range b.h.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Event.Type() == "task.completed" {
				ends++
			}
		}
		if ends != 100 {
			t.Errorf("%d tasks completed", ends)
		}
	})
}

// Guarantee: E8.
func TestAnOutputSchemaIsHeldBeforeCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, `name: t
steps:
  - calls: [{tool: complete_task, args: {summary: x}}]
  - calls: [{tool: complete_task, args: {summary: x, output: {n: text}}}]
  - calls: [{tool: complete_task, args: {summary: x, output: {n: 3}}}]
`, nil)
		b.changeRules(func(r *thread.Rules) {
			r.Output = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
		})
		log := b.run()
		fails := find[event.ToolFailed](log)
		if len(fails) != 2 || fails[0].Problem.Code != "OUTPUT_MISSING" || fails[1].Problem.Code != "OUTPUT_INVALID" {
			t.Errorf("failures: %+v", fails)
		}
		if end := find[event.TurnCompleted](log); len(end) != 1 || end[0].Output == nil || end[0].Output.Text != `{"n":3}` {
			t.Errorf("end: %+v", end)
		}
	})
}

// Guarantee: T10.
func TestSchemasOpenNothing(t *testing.T) {
	for _, s := range []string{`{"$ref":"http://127.0.0.1/x.json"}`, `{"$ref":"file:///etc/passwd"}`, `{"type":3}`, `{`} {
		if err := tool.CheckSchema([]byte(s)); belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%s: %v", s, err)
		}
	}
}
