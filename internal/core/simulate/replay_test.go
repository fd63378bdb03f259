package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
)

// log records a thread as the engine does, as far as decisions go.
type log struct {
	stream  belay.StreamID
	content map[belay.Digest][]byte
	facts   []event.Envelope
	rules   belay.Ref
	calls   int
}

func (l *log) put(b []byte) belay.Ref {
	ref := belay.Ref{Digest: belay.DigestOf(b), Size: int64(len(b)), Media: "application/json"}
	l.content[ref.Digest] = b
	return ref
}

func (l *log) add(ids belay.IDs, p event.Payload) {
	ids.Session, ids.Thread, ids.Turn = "sess_a", "thr_a", "turn_a"
	l.facts = append(l.facts, event.Envelope{Stream: l.stream, Seq: int64(len(l.facts) + 1), Time: time.Unix(int64(len(l.facts)), 0), IDs: ids, Data: p})
}

// newLog begins a turn under rules.
func newLog(set *policy.Set, settings belay.Settings) *log {
	l := &log{stream: "thread/thr_a", content: map[belay.Digest][]byte{}}
	rules := thread.Rules{Settings: settings, Tools: specs, Workspace: "/w", Boundary: thread.Boundary{Level: "L0", Network: "full"}, Home: "/h"}
	if set != nil {
		raw, err := set.Encode()
		if err != nil {
			panic(err)
		}
		ref := l.put(raw)
		rules.Policy = &ref
	}
	raw, err := json.Marshal(rules)
	if err != nil {
		panic(err)
	}
	l.rules = l.put(raw)
	l.add(belay.IDs{}, event.ThreadStarted{Kind: "main", Workspace: "/w"})
	l.add(belay.IDs{}, event.TurnSubmitted{Kind: "user", Rules: l.rules})
	l.add(belay.IDs{}, event.TurnStarted{Kind: "user", Rules: l.rules, Limits: belay.DefaultLimits})
	return l
}

// call records a call and what was said of it, or what the set says of it.
func (l *log) call(set *policy.Set, tool, args string, change func(*event.ModelCall, *event.PermissionEvaluated)) {
	l.calls++
	id, step := belay.CallID(fmt.Sprintf("call_%d", l.calls)), belay.StepID(fmt.Sprintf("step_%d", l.calls))
	c := event.ModelCall{ID: id, Name: tool, Args: json.RawMessage(args), ArgsHash: belay.DigestOf([]byte(args))}
	var in struct{ Path string }
	if json.Unmarshal(c.Args, &in) == nil {
		c.Path = in.Path
	}
	p := event.PermissionEvaluated{Tool: tool, ArgsHash: c.ArgsHash, Mode: "default"}
	for _, s := range specs {
		if s.Name == tool {
			r := policy.Request{Tool: s, Args: c.Args, Mode: belay.ModeDefault, Workspace: "/w", Level: "L0", Network: "full", Commands: policy.CommandsOf(s, c.Args, policy.Place{Workspace: "/w", Home: "/h"})}
			if c.Path != "" {
				r.Paths = []string{c.Path}
			}
			v := policy.Evaluate(set, &r)
			p.Decision, p.Source, p.Rule, p.Tier, p.ReasonCode, p.Reason = string(v.Decision), v.Source, v.Rule, v.Tier, v.ReasonCode, v.Reason
		}
	}
	if change != nil {
		change(&c, &p)
	}
	l.add(belay.IDs{Step: step}, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p", From: 1, To: int64(len(l.facts))})
	l.add(belay.IDs{Step: step}, event.ModelCompleted{Attempt: 1, Calls: []event.ModelCall{c}, Stop: "tool_calls"})
	l.add(belay.IDs{Step: step, Call: id}, p)
	l.add(belay.IDs{Step: step, Call: id}, event.ToolStarted{Name: tool, Attempt: 1, Effect: "pure", ArgsHash: c.ArgsHash})
	l.add(belay.IDs{Step: step, Call: id}, event.ToolResult{Name: tool, Attempt: 1, Output: belay.Content{Text: "done"}})
}

func (l *log) get(d belay.Digest) ([]byte, error) {
	if b, ok := l.content[d]; ok {
		return b, nil
	}
	return nil, ErrGone
}

// replay judges all that was recorded under a set.
func (l *log) replay(t testing.TB, set *policy.Set) (*Tally, []*Change) {
	t.Helper()
	var sum Tally
	var changes []*Change
	r := NewReader(l.get)
	for _, e := range l.facts {
		c, err := r.Apply(e)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		if ch := sum.Take(c, set); ch != nil {
			changes = append(changes, ch)
		}
	}
	return &sum, changes
}

var calls = []struct{ tool, args string }{
	{"exec", `{"command":"git log"}`}, {"exec", `{"command":"git push"}`}, {"exec", `{"command":"npm test && git push"}`}, {"read", `{"path":"a.md"}`},
	{"write", `{"path":"src/a.go"}`}, {"write", `{"path":"/etc/passwd"}`}, {"fetch", `{"url":"https://x.org"}`}, {"complete_task", `{}`}, {"exec", `[1]`}, {"exec", `"ls"`},
}

// Guarantee: G32.
func TestTheRulesOfTheDayChangeNothing(t *testing.T) {
	day := compiled(t, policy.Rule{ID: "push", Verdict: policy.Deny, Match: policy.Match{Command: &policy.CommandMatch{Program: []string{"git"}, Subcommand: []string{"push"}}}})
	for _, set := range []*policy.Set{nil, day} {
		gate := set
		if gate == nil {
			gate = policy.Builtin()
		}
		l := newLog(set, belay.Settings{Mode: belay.ModeDefault})
		for _, c := range calls {
			l.call(gate, c.tool, c.args, nil)
		}
		sum, changes := l.replay(t, gate)
		if sum.Decisions != len(calls) || sum.Same != len(calls) || len(changes) > 0 {
			t.Errorf("got %+v, %+v", sum, changes)
		}
	}
}

// TestAWiderBoundaryIsNoChangeOfTheRules: what is decided about a call that a
// boundary stopped comes of no rule, so the rules of the day are said to agree.
func TestAWiderBoundaryIsNoChangeOfTheRules(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	l.call(policy.Builtin(), "exec", `{"command":"git log"}`, nil)
	l.facts = l.facts[:len(l.facts)-1] // it has no result: its boundary stopped it
	ids := belay.IDs{Step: "step_1", Call: "call_1"}
	l.add(ids, event.SandboxViolation{Layer: "landlock", Op: "write", Target: "/etc/x"})
	l.add(ids, event.ToolFailed{Name: "exec", Attempt: 1, Problem: event.Problem{Class: "denied", Code: thread.CodeViolation}})
	l.add(ids, event.PermissionEvaluated{Tool: "exec", Decision: "ask", Source: "rule", Rule: "builtin/escalation", Tier: policy.TierDefault, ReasonCode: thread.CodeViolation})
	sum, changes := l.replay(t, policy.Builtin())
	if sum.Decisions != 2 || sum.Same != 1 || sum.Lost[lostStopped] != 1 || len(changes) > 0 {
		t.Errorf("got %+v, %+v", sum, changes)
	}
}

// Guarantee: G32.
func TestEveryChangedVerdictIsListed(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	for _, c := range calls {
		l.call(policy.Builtin(), c.tool, c.args, nil)
	}
	set := compiled(t, policy.Rule{ID: "push", Verdict: policy.Deny, Match: policy.Match{Command: &policy.CommandMatch{Program: []string{"git"}, Subcommand: []string{"push"}}}},
		policy.Rule{ID: "src", Verdict: policy.Allow, Match: policy.Match{Tool: []string{"write"}, Path: &policy.PathMatch{Match: []string{"src/**"}, Where: "inside"}}},
		policy.Rule{ID: "look", Verdict: policy.Allow, Match: policy.Match{Tool: []string{"read"}}})
	sum, changes := l.replay(t, set)
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprintf("%s %s(%s)→%s(%s) %s", c.Case.Request.Args, c.Old, c.OldRule, c.New, c.NewRule, c.Cause))
	}
	want := []string{`{"command":"git push"} ask(builtin/ask-network)→deny(user/push) rules`, `{"command":"npm test && git push"} ask(builtin/ask)→deny(user/push) rules`, `{"path":"src/a.go"} ask(builtin/ask)→allow(user/src) rules`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if sum.Changed != 3 || sum.OtherRule != 1 || sum.Same != 6 || len(sum.Rows()) != 3 {
		t.Errorf("got %+v", sum)
	}
}

// What can't be judged again is counted by its reason, and never as unchanged.
// Guarantee: G32.
func TestWhatIsLostIsNeverUnchanged(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	gate := policy.Builtin()
	ref := belay.Ref{Digest: belay.DigestOf([]byte("gone")), Size: 4}
	l.call(gate, "exec", `{"command":"ls"}`, func(c *event.ModelCall, _ *event.PermissionEvaluated) { c.Args, c.ArgsRef = nil, &ref })
	l.call(gate, "nothing", `{}`, func(_ *event.ModelCall, p *event.PermissionEvaluated) {
		p.Decision, p.Rule = "deny", "builtin/unknown-tool"
	})
	l.call(gate, "exec", `{"command":"ls"}`, func(_ *event.ModelCall, p *event.PermissionEvaluated) { p.Source = "checker" })
	l.call(gate, "exec", `{"command":"git push"}`, func(_ *event.ModelCall, p *event.PermissionEvaluated) { p.Decision, p.Source = "allow", "person" })
	l.add(belay.IDs{Call: "call_other"}, event.PermissionEvaluated{Decision: "allow", Tool: "exec"})
	l.add(belay.IDs{Call: "call_3"}, event.Unknown{Type: "permission.evaluated", Raw: []byte(`{"verdict":7}`)})
	sum, changes := l.replay(t, gate)
	want := map[string]int{lostArguments: 1, lostTool: 1, lostChecker: 1, lostCall: 1, lostForeign: 1}
	if !maps.Equal(sum.Lost, want) || sum.Decisions != 6 || sum.Same != 1 || len(changes) > 0 || sum.Unjudged() != 5 {
		t.Errorf("got %+v, %+v", sum, changes)
	}
	for why := range want {
		if LostWords[why] == "" {
			t.Errorf("%s has no words", why)
		}
	}
	long := l.put([]byte(`{"command":"ls"}`))
	l.calls = 100
	l.call(gate, "exec", `{"command":"ls"}`, func(c *event.ModelCall, _ *event.PermissionEvaluated) { c.Args, c.ArgsRef = nil, &long })
	if sum, _ = l.replay(t, gate); sum.Same != 2 {
		t.Errorf("long arguments that are there: %+v", sum)
	}
	delete(l.content, l.rules.Digest)
	if sum, _ = l.replay(t, gate); sum.Lost[lostRules] != 3 || sum.Same != 0 {
		t.Errorf("without the turn's rules: %+v", sum)
	}
}

// Content that is there and can't be read is an error, not a loss.
func TestDamagedRulesAreAnError(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	l.call(policy.Builtin(), "read", `{"path":"a"}`, nil)
	l.content[l.rules.Digest] = []byte("{")
	r := NewReader(l.get)
	for _, e := range l.facts {
		if _, err := r.Apply(e); err != nil {
			if belay.CodeOf(err) != belay.CodeStoreDamaged {
				t.Errorf("got %v", err)
			}
			return
		}
	}
	t.Error("nothing was said")
}

// BenchmarkReplay judges what a store has recorded: read, checked against the
// chain, folded, judged. Each call has seven facts and half of them are command
// lines.
func BenchmarkReplay(b *testing.B) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const n = 5000
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	for i := range n {
		c := calls[i%len(calls)]
		args := c.args
		if c.tool == "exec" {
			args = fmt.Sprintf(`{"command":"git log --oneline -n %d | head -3 && npm run test-%d"}`, i, i)
		}
		l.call(policy.Builtin(), c.tool, args, nil)
		l.add(belay.IDs{Step: "step_x", Call: "call_x"}, event.SandboxApplied{Level: "L0", Why: "no sandbox"})
		l.add(belay.IDs{Step: "step_x"}, event.CostRecorded{})
	}
	epoch, err := db.Claim(ctx, "sess_a", store.ThisProcess(), time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	for _, raw := range l.content {
		if _, err := db.Put(ctx, raw, "application/json"); err != nil {
			b.Fatal(err)
		}
	}
	for at := 0; at < len(l.facts); at += 500 {
		part := l.facts[at:min(at+500, len(l.facts))]
		if _, err := db.Append(ctx, store.Batch{Session: "sess_a", Stream: l.stream, After: int64(at), Epoch: epoch, Events: part}); err != nil {
			b.Fatal(err)
		}
	}
	end, err := db.End(ctx)
	if err != nil {
		b.Fatal(err)
	}
	set := compiled(b, policy.Rule{ID: "src", Verdict: policy.Allow, Match: policy.Match{Tool: []string{"write"}, Path: &policy.PathMatch{Match: []string{"src/**"}, Where: "inside"}}})
	for b.Loop() {
		var sum Tally
		r := NewReader(func(d belay.Digest) ([]byte, error) { return db.Get(ctx, d) })
		for f, err := range db.Stored(ctx, "sess_a", end) {
			if err != nil {
				b.Fatal(err)
			}
			if !Needed(f.Row.Type) {
				continue
			}
			e, err := f.Row.Unpack(db.Runtime(), "sess_a", f.Stream)
			if err != nil {
				b.Fatal(err)
			}
			c, err := r.Apply(e)
			if err != nil {
				b.Fatal(err)
			}
			if c != nil {
				sum.Take(c, set)
			}
		}
		if sum.Decisions != n || sum.Unjudged() > 0 {
			b.Fatalf("got %+v", sum)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
