package thread

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// many plays a thread by itself: a model that asks for whatever there is, tools
// that answer, a person who answers at random.
type many struct {
	t     *testing.T
	d     *Decider
	rng   *rand.Rand
	now   time.Time
	blobs map[belay.Digest][]byte
	log   []event.Envelope
	calls int
}

func (m *many) add(facts []core.Fact) {
	for _, f := range facts {
		e := event.Envelope{Stream: stream, Seq: m.d.s.Seq + 1, Time: m.now, IDs: f.IDs, Data: f.Data}
		if raw, err := event.Encode(f.Data); err != nil || len(raw) > event.MaxPayload {
			m.t.Fatalf("%T has %d bytes: %v", f.Data, len(raw), err)
		}
		m.d.Apply(e)
		m.log = append(m.log, e)
	}
}

// settle decides until nothing follows.
func (m *many) settle() {
	for {
		for _, ref := range m.d.Missing() {
			if err := m.d.Supply(ref, m.blobs[ref.Digest]); err != nil {
				m.t.Fatal(err)
			}
		}
		rd := m.d.Next(m.now)
		if len(rd.Decided) == 0 {
			return
		}
		m.add(rd.Decided)
	}
}

func (m *many) command(c belay.Command) {
	facts, _, err := m.d.Handle(belay.Order{ID: "cmd_1", Principal: "user:ann", Session: "sess_1", Stream: stream, Command: c}, m.now)
	if err != nil {
		m.t.Fatal(err)
	}
	m.add(facts)
	m.settle()
}

// keep makes rules content. They are whatever a person could have written.
func (m *many) keep(n int) belay.Ref {
	pick := func(from ...string) string { return from[m.rng.IntN(len(from))] }
	doc := policy.Document{Version: 1, Rules: policy.BuiltinRules()}
	for i := range m.rng.IntN(5) {
		r := policy.Rule{ID: fmt.Sprint("r", i), Tier: pick("agent", "workspace", "user", "admin"), Priority: m.rng.IntN(10), Verdict: policy.Decision(pick("allow", "ask", "deny")), Tags: []string{"t"}}
		r.Tool = []string{pick("edit", "run", "fetch", "*")}
		if m.rng.IntN(2) == 0 {
			r.Args = []policy.ArgMatch{{Path: "n", Less: new(float64(m.rng.IntN(10_000)))}}
		}
		doc.Rules = append(doc.Rules, r)
	}
	set, err := policy.Compile(doc)
	if err != nil {
		m.t.Fatal(err)
	}
	raw, _ := set.Encode()
	rules := Rules{Workspace: "/ws", Boundary: Boundary{Level: "L0", Why: "none", Network: "full"}, Tools: append(testTools(), moreTools["fetch"], moreTools["mail"],
		belay.ToolSpec{Name: "run", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Capabilities: []string{"process"}, Command: &belay.CommandArgs{Line: "command"}}),
		Settings: belay.Settings{Provider: "scripted", Mode: belay.Modes[n%len(belay.Modes)], Approvals: belay.ApprovalsWait}, UntrustedWorkspace: n%2 == 0}
	if m.rng.IntN(2) == 0 {
		rules.Grants = []policy.Grant{{Tool: pick("exec", "run", "fetch"), Tier: policy.TierUser, Kind: "rule", By: "user:ann"}}
	}
	rules.Policy = &belay.Ref{Digest: set.Digest(), Size: int64(len(raw))}
	content, _ := json.Marshal(rules)
	ref := belay.Ref{Digest: belay.DigestOf(content), Size: int64(len(content))}
	m.blobs[ref.Digest], m.blobs[set.Digest()] = content, raw
	return ref
}

// answer is what the model asks for next, some of it long, odd or wrong.
func (m *many) answer() {
	st := m.d.s.Turn.Step
	p := event.ModelCompleted{Attempt: st.Attempt}
	for i := range 1 + m.rng.IntN(12) {
		name := []string{"read", "edit", "exec", "put", "run", "fetch", "mail", "nothing", "ask_user", "poll"}[m.rng.IntN(10)]
		args := fmt.Sprintf(`{"n":%d,"path":%q,"command":%q,"url":"https://h%d.example"}`, m.calls, []string{"a", ".env", "../x", "/etc/passwd"}[m.rng.IntN(4)],
			[]string{"ls", "touch a", "$X", "curl https://x.example", "rm a", "ls | wc", "cat .env"}[m.rng.IntN(7)], m.rng.IntN(5))
		c := event.ModelCall{ID: belay.CallID(belay.DeriveID("call", stream, m.d.s.Seq+1, i)), Name: name, Args: json.RawMessage(args), ArgsHash: belay.DigestOf([]byte(args))}
		if m.rng.IntN(5) == 0 {
			c.ArgsRef, c.Args = &belay.Ref{Digest: c.ArgsHash, Size: int64(len(args))}, nil
			m.blobs[c.ArgsHash] = []byte(args)
		}
		if name == "read" || name == "edit" {
			var in struct{ Path string }
			_ = json.Unmarshal([]byte(args), &in)
			c.Path = in.Path
		}
		if m.rng.IntN(20) == 0 {
			c.Problem = &event.Problem{Class: "bad_arguments", Code: "BAD_ARGUMENTS", Message: "no"}
		}
		p.Calls = append(p.Calls, c)
		m.calls++
	}
	m.add([]core.Fact{m.d.s.fact(p)})
	m.settle()
}

// work lets the step end: what is asked is answered, what runs has a result.
func (m *many) work() {
	for m.d.s.Turn != nil && m.d.s.Turn.Step != nil && m.d.s.Turn.Step.Phase == stepAnswered && !m.d.s.Turn.Step.settled() {
		did := false
		for i, c := range m.d.s.Turn.Step.Calls {
			switch {
			case c.Ask != nil && c.Ask.Open:
				d, scope := "allow", ""
				if m.rng.IntN(2) == 0 {
					d = "deny"
				}
				if c.Ask.Kind == "question" && d == "allow" {
					d = "answer"
				}
				if offers := m.d.s.Offers(m.d.Rules(), c.Ask.Action, m.d.Rules().args(c), m.now); d == "allow" && len(offers) > 0 && offers[0].Scope == "session" && m.rng.IntN(50) == 0 {
					scope = "session"
				}
				m.command(belay.RespondAction{Action: c.Ask.Action, Decision: d, Scope: scope, Message: "m"})
			case c.inFlight():
				m.add([]core.Fact{{IDs: m.d.s.callIDs(c), Data: event.ToolResult{Name: c.Name, Attempt: c.Attempt, Output: belay.Content{Text: "x"}, Digest: belay.DigestOf([]byte(fmt.Sprint(m.calls, i)))}}})
				m.settle()
			default:
				continue
			}
			did = true
			break
		}
		if !did {
			m.t.Fatalf("nothing moves: %+v", m.d.s.Turn.Step.Calls)
		}
	}
	if t := m.d.s.Turn; t != nil && t.Ask != nil && t.Ask.Open {
		m.command(belay.RespondAction{Action: t.Ask.Action, Decision: "allow"})
	}
}

// Every call has a decision with everything that explains it, no call runs
// without one that allows it, for exactly its arguments, and every tainting
// result is on record before the next request.
// Guarantee: G2, G25.
func TestEveryCallHasItsDecision(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := &many{t: t, d: New(stream), rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), blobs: map[belay.Digest][]byte{}}
	m.command(belay.OpenThread{Workspace: "/ws"})
	const calls = 10_000
	for n := 0; m.calls < calls; n++ {
		m.now = m.now.Add(time.Second)
		m.command(belay.SubmitTurn{Turn: belay.TurnID(fmt.Sprint("t", n)), Kind: belay.TurnUser, Text: belay.Content{Text: "do"}, Rules: m.keep(n)})
		for m.d.s.Turn != nil && m.calls < calls && m.d.s.Turn.Steps < 40 {
			m.answer()
			m.work()
		}
		if m.d.s.Turn != nil {
			m.command(belay.InterruptTurn{})
			if m.d.s.Turn != nil { // the request that is out is cancelled
				m.add([]core.Fact{m.d.s.fact(event.ModelFailed{Attempt: m.d.s.Turn.Step.Attempt, Problem: event.Problem{Class: "cancelled", Code: "CANCELLED", Message: "cancelled"}})})
				m.settle()
			}
		}
		if m.d.s.Turn != nil {
			t.Fatalf("turn %d doesn't end", n)
		}
	}
	m.judge()
}

func (m *many) judge() {
	type call struct {
		hash    belay.Digest
		allowed bool
		judged  int
	}
	calls, asked := map[belay.CallID]*call{}, 0
	covered, brings, pending, known := 0, map[belay.CallID][]string{}, []string{}, map[string]bool{}
	for _, e := range m.log {
		c := calls[e.IDs.Call]
		switch p := e.Data.(type) {
		case event.ModelCompleted:
			for _, mc := range p.Calls {
				calls[mc.ID] = &call{hash: mc.ArgsHash}
			}
		case event.PermissionEvaluated:
			if p.Rule == "" || p.Tier == "" || p.ReasonCode == "" || p.Reason == "" || p.Source == "" || p.Mode == "" || p.Tool == "" || p.ArgsHash != c.hash {
				m.t.Fatalf("%d: the decision leaves something out: %+v", e.Seq, p)
			}
			if c.judged++; c.judged == 1 {
				covered++
			}
			c.allowed = p.Decision == "allow"
			if p.Decision == "ask" {
				asked++
			}
		case event.PermissionResolved:
			c.allowed = p.Decision == "allow"
		case event.ContextResolved:
			for _, t := range p.Taint {
				known[t] = true
			}
		case event.ToolResult:
			pending = append(pending, brings[e.IDs.Call]...)
		case event.ModelRequested:
			for _, t := range pending {
				if !known[t] {
					m.t.Fatalf("%d: the model reads what %s brought, and nothing says so", e.Seq, t)
				}
			}
			pending = nil
		case event.ToolStarted:
			brings[e.IDs.Call] = p.Taint
			if !c.allowed || p.ArgsHash != c.hash {
				m.t.Fatalf("%d: %s runs without a decision that allows it", e.Seq, p.Name)
			}
		}
	}
	if covered != len(calls) || len(calls) < 10_000 {
		m.t.Errorf("%d of %d calls have a decision", covered, len(calls))
	}
	m.t.Logf("%d calls, %d decisions (100 %%), %d asked, %d facts, %d taints", len(calls), covered, asked, len(m.log), len(m.d.s.Taint))
}
