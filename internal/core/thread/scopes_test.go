package thread

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// pool are calls that come again and again.
var pool = []event.ModelCall{
	{Name: "run", Args: json.RawMessage(`{"command":"touch a"}`)}, {Name: "run", Args: json.RawMessage(`{"command":"$X"}`)}, {Name: "run", Args: json.RawMessage(`{"command":"touch a; make x"}`)},
	{Name: "run", Args: json.RawMessage(`{"command":"curl https://a.example"}`)}, {Name: "run", Args: json.RawMessage(`{"command":"touch .envrc"}`)}, {Name: "run", Args: json.RawMessage(`{"command":"cp a /srv/out/a"}`)},
	{Name: "fetch", Args: json.RawMessage(`{"url":"https://a.example/x"}`)}, {Name: "fetch", Args: json.RawMessage(`{"url":"https://b.example/"}`)},
	{Name: "mcp__desk__add", Args: json.RawMessage(`{"n":1}`)}, {Name: "mcp__books__add", Args: json.RawMessage(`{"n":1}`)}, {Name: "mcp__local__add", Args: json.RawMessage(`{"n":1}`)},
	{Name: "edit", Args: json.RawMessage(`{"path":"a"}`), Path: "a"}, {Name: "read", Args: json.RawMessage(`{"path":".env"}`), Path: ".env"}, {Name: "mail", Args: json.RawMessage(`{"n":1}`)},
}

// own are the origins of what a call itself brings from outside, of the one server or host
// that it is for.
func own(c *event.ModelCall, hosts []string) []string {
	switch {
	case strings.HasPrefix(c.Name, "mcp__"):
		return []string{"mcp:" + strings.Split(c.Name, "__")[1]}
	case c.Name == "fetch" && len(hosts) > 0:
		return []string{"web:a.example", "web:b.example"}
	case c.Name == "fetch":
		return []string{"web:" + string(c.Args[len(`{"url":"https://`)]) + ".example"}
	}
	return nil
}

// taken is an answer with a scope, and what it promises of the same call.
type taken struct {
	call   string
	offer  Offer
	grant  belay.EventID
	left   int // calls; -1: it counts none
	until  time.Time
	taint  []string // with which it was given, and what the call brings
	secret bool
}

// scopesWorld plays a thread in which a model repeats calls and a person takes what is
// offered.
type scopesWorld struct {
	t      *rapid.T
	d      *Decider
	rules  Rules
	ref    belay.Ref
	blobs  map[belay.Digest][]byte
	now    time.Time
	turns  int
	count  int
	denied []string
	held   []taken
	seen   map[string]int // what happened, to be sure that all of it does
}

func (w *scopesWorld) handle(c belay.Command) ([]core.Fact, error) {
	facts, _, err := w.d.Handle(belay.Order{ID: "cmd_1", Principal: "user:ann", Session: "sess_1", Stream: stream, Command: c}, w.now)
	return facts, err
}

// add appends facts and decides until nothing follows.
func (w *scopesWorld) add(facts []core.Fact) (all []event.Envelope) {
	for len(facts) > 0 {
		for _, f := range facts {
			e := event.Envelope{Stream: stream, Seq: w.d.s.Seq + 1, Time: w.now, IDs: f.IDs, Data: f.Data}
			w.d.Apply(e)
			all = append(all, e)
		}
		for _, ref := range w.d.Missing() {
			if err := w.d.Supply(ref, w.blobs[ref.Digest]); err != nil {
				w.t.Fatal(err)
			}
		}
		facts = w.d.Next(w.now).Decided
	}
	return all
}

func (w *scopesWorld) command(c belay.Command) []event.Envelope {
	facts, err := w.handle(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.add(facts)
}

// begin draws what the thread is decided by.
func (w *scopesWorld) begin() {
	t := w.t
	local := moreTools["desk"]
	local.Name, local.Server, local.Capabilities, local.Access = "mcp__local__add", "local", []string{"process"}, belay.Write
	local.Bounds = &belay.ToolBounds{Network: rapid.SampledFrom([]string{"", "full"}).Draw(t, "network")}
	fetch := moreTools["fetch"]
	if rapid.Bool().Draw(t, "hosts") {
		fetch.Hosts = []string{"*.example"}
	}
	level := rapid.SampledFrom([]string{"L0", "L1", "L2", "L3"}).Draw(t, "level")
	mode := rapid.SampledFrom([]belay.Mode{belay.ModeDefault, belay.ModeDefault, belay.ModeAcceptEdits, belay.ModeAuto, belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeUntrusted}).Draw(t, "mode")
	w.rules = Rules{Workspace: "/ws", Boundary: Boundary{Level: level, Why: "drawn", Network: "full", Decides: true}, UntrustedWorkspace: rapid.Bool().Draw(t, "strange"),
		Tools:    append(testTools(), moreTools["run"], fetch, moreTools["desk"], moreTools["books"], local, moreTools["mail"]),
		Settings: belay.Settings{Provider: "scripted", Mode: mode, Approvals: belay.ApprovalsWait, Limits: belay.Limits{Steps: 1000, Calls: 1000}}}
	for _, name := range []string{"fetch", "run", "mcp__desk__*"} {
		if rapid.IntRange(0, 5).Draw(t, "allow "+name) == 0 {
			w.rules.Grants = append(w.rules.Grants, policy.Grant{Tool: name, Tier: policy.TierUser, Kind: "rule", By: "user:ann"})
		}
	}
	doc := policy.Document{Version: policy.FormatVersion, Rules: policy.BuiltinRules()}
	for i := range rapid.IntRange(0, 2).Draw(t, "rules") {
		r := policy.Rule{ID: fmt.Sprint("r", i), Tier: rapid.SampledFrom(policy.Tiers[1:]).Draw(t, "tier"), Verdict: rapid.SampledFrom([]policy.Decision{policy.Allow, policy.Ask, policy.Deny}).Draw(t, "verdict")}
		r.Tool = []string{rapid.SampledFrom([]string{"run", "fetch", "edit", "mcp__desk__add", "mcp__books__add"}).Draw(t, "tool")}
		if r.Verdict == policy.Deny {
			w.denied = append(w.denied, r.Tool[0])
		}
		doc.Rules = append(doc.Rules, r)
	}
	set, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := set.Encode()
	w.rules.Policy = &belay.Ref{Digest: set.Digest(), Size: int64(len(raw))}
	content, _ := json.Marshal(w.rules)
	w.ref = belay.Ref{Digest: belay.DigestOf(content), Size: int64(len(content))}
	w.blobs[w.ref.Digest], w.blobs[set.Digest()] = content, raw
	w.command(belay.OpenThread{Workspace: "/ws"})
}

// outside are the origins of what the conversation has from outside, and whether a secret
// was read.
func (w *scopesWorld) outside() (names []string, secret bool) {
	for _, t := range w.d.s.Taint {
		switch t.Kind {
		case policy.TaintSecret:
			secret = true
		case policy.TaintWorkspace:
		default:
			names = append(names, tainted(t.Kind, t.Origin))
		}
	}
	return names, secret
}

// sends reports whether a call could send something out, by what the test knows of it.
func (w *scopesWorld) sends(c *event.ModelCall) bool {
	open := !belay.Level(w.rules.Boundary.Level).AtLeast(belay.L2)
	switch c.Name {
	case "fetch", "mcp__desk__add", "mcp__books__add":
		return true
	case "mcp__local__add":
		spec, _ := w.rules.Tool(c.Name)
		return open || spec.Bounds.Network != ""
	case "run":
		wider := w.d.s.widerFor(&Call{Name: c.Name, ArgsHash: c.ArgsHash})
		return open || strings.Contains(string(c.Args), "curl") || wider != nil && wider.Bound.Is.Network != belay.NetworkNone
	}
	return false
}

// holds reports whether an answer hasn't come to its end for a call.
func (w *scopesWorld) holds(p *taken, c *event.ModelCall) bool {
	names, secret := w.outside()
	ended := secret && !p.secret || slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(p.taint, n) })
	return p.call == c.Name+string(c.Args) && p.left != 0 && (p.until.IsZero() || w.now.Before(p.until)) && !(ended && (w.sends(c) || c.Path == ".env"))
}

// step lets the model make a call, and ends it.
func (w *scopesWorld) step() {
	if w.d.s.Turn == nil {
		w.turns++
		w.command(belay.SubmitTurn{Turn: belay.TurnID(fmt.Sprint("t", w.turns)), Kind: belay.TurnUser, Text: belay.Content{Text: "do"}, Rules: w.ref})
	}
	c := pool[rapid.IntRange(0, len(pool)-1).Draw(w.t, "call")]
	c.ID, c.ArgsHash = belay.CallID(belay.DeriveID("call", stream, w.d.s.Seq+1, 0)), belay.DigestOf(c.Args)
	names, secret := w.outside()
	facts := w.add([]core.Fact{w.d.s.fact(event.ModelCompleted{Attempt: w.d.s.Turn.Step.Attempt, Calls: []event.ModelCall{c}})})
	w.judged(&c, facts, names, secret)
	for _, e := range facts { // what a failure is shown with
		if p, ok := e.Data.(event.PermissionEvaluated); ok {
			w.t.Logf("%s %s: %s by %s: %s; taint %q", c.Name, c.Args, p.Decision, p.Rule, p.Reason, p.Taint)
		}
	}
	for range 4 {
		switch call := w.d.s.CallOf(c.ID); {
		case call == nil || call.Phase == CallOver:
		case call.Ask != nil && call.Ask.Open:
			w.asked(&c, call)
		case call.inFlight():
			w.ends(call)
		}
	}
	if turn := w.d.s.Turn; turn != nil && turn.Ask != nil && turn.Ask.Open {
		w.command(belay.RespondAction{Action: turn.Ask.Action, Decision: "allow"})
	}
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(w.t, "minutes")) * time.Minute)
}

// ends is the outcome of a call: a result, or that its boundary stopped it.
func (w *scopesWorld) ends(c *Call) {
	ids := w.d.s.callIDs(c)
	if w.count++; c.Name == "run" && w.rules.confines(c) && c.Widened == 0 && rapid.IntRange(0, 3).Draw(w.t, "stopped") == 0 {
		stop := event.SandboxViolation{Layer: "files", Op: policy.OpWrite, Target: "/srv/other/x"}
		if rapid.Bool().Draw(w.t, "network") {
			stop = event.SandboxViolation{Layer: "network", Op: policy.OpConnect}
		}
		w.add([]core.Fact{{IDs: ids, Data: stop}, {IDs: ids, Data: event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Problem: event.Problem{Class: "denied", Code: CodeViolation, Message: "stopped"}}}})
		return
	}
	w.add([]core.Fact{{IDs: ids, Data: event.ToolResult{Name: c.Name, Attempt: c.Attempt, Output: belay.Content{Text: fmt.Sprint(w.count)}, Digest: belay.DigestOf([]byte(fmt.Sprint(w.count)))}}})
}

// judged holds what was decided of a call without a person against the law that no scope
// gets past a deny, a secret or what somebody else's content could have wanted.
func (w *scopesWorld) judged(c *event.ModelCall, facts []event.Envelope, names []string, secret bool) {
	for _, e := range facts {
		p, ok := e.Data.(event.PermissionEvaluated)
		if !ok || e.IDs.Call != c.ID || p.Decision != string(policy.Allow) || p.Source != "grant" {
			continue
		}
		w.seen["unasked"]++
		spec, _ := w.rules.Tool(c.Name)
		foreign := slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(own(c, spec.Hosts), n) })
		named := slices.ContainsFunc(w.d.s.Grants, func(g policy.Grant) bool { return g.Scope == "prefix" && c.Name == "fetch" })
		switch {
		case slices.Contains(w.denied, c.Name):
			w.t.Fatalf("%s %s: a grant gets past a deny", c.Name, c.Args)
		case w.sends(c) && secret && len(names) > 0:
			w.t.Fatalf("%s %s: a grant sends what could be a secret; taint %q", c.Name, c.Args, names)
		case w.sends(c) && foreign && !named:
			w.t.Fatalf("%s %s: a grant counts although content of others is there: %q", c.Name, c.Args, names)
		}
		for i := range w.held {
			if t := &w.held[i]; t.grant == p.Grant && t.left > 0 {
				t.left--
			}
		}
	}
}

// asked looks at a question and answers it.
func (w *scopesWorld) asked(c *event.ModelCall, call *Call) {
	w.seen["asked"]++
	for i := range w.held {
		if p := &w.held[i]; call.Ask.Wider == nil && w.holds(p, c) {
			w.t.Fatalf("%s %s is asked about although %+v was taken for it: %+v", c.Name, c.Args, p, call.Ask)
		}
	}
	id := call.Ask.Action
	offers := w.d.s.Offers(w.d.Rules(), id, nil, w.now)
	for _, scope := range []string{"session", "prefix", "count", "until"} {
		o := find(offers, func(o *Offer) bool { return o.Scope == scope })
		a := Offer{Scope: scope}
		if o != nil {
			a = *o
		} else if a.Prefix = map[string]string{"run": "make", "fetch": "a.example", "edit": "a"}[c.Name]; scope != "prefix" {
			a.Prefix = ""
		}
		if _, err := w.handle(answering(id, a, w.now)); (err == nil) != (o != nil) && (o != nil || scope != "prefix") {
			w.t.Fatalf("%s %s: scope %s is offered: %v, and taken: %v", c.Name, c.Args, scope, o != nil, err)
		} else if err != nil && (belay.CodeOf(err) != belay.CodeBadCommand || !strings.Contains(err.Error(), "would ask again the next time: ") && scope != "prefix" && call.Ask.Wider == nil) {
			w.t.Fatalf("%s %s: scope %s: %v", c.Name, c.Args, scope, err)
		}
		w.seen[fmt.Sprint(scope, " ", o != nil)]++
	}
	do := rapid.IntRange(0, 4+3*len(offers)).Draw(w.t, "answer")
	switch {
	case do == 0:
		w.command(belay.RespondAction{Action: id, Decision: "deny"})
	case do <= 2:
		w.command(belay.RespondAction{Action: id, Decision: "allow"})
	case do <= 4:
		w.command(belay.RespondAction{Action: id, Decision: "allow", Clear: true})
	default:
		w.take(c, offers[(do-5)/3], id, call.Ask.Wider)
	}
}

func answering(id belay.ActionID, o Offer, now time.Time) belay.RespondAction {
	r := belay.RespondAction{Action: id, Decision: "allow", Scope: o.Scope}
	switch o.Scope {
	case "prefix":
		r.Prefix = o.Prefix
	case "count":
		r.Count = 3
	case "until":
		r.Until = now.Add(time.Hour)
	}
	return r
}

// take answers with what is offered, and notes the promise.
func (w *scopesWorld) take(c *event.ModelCall, o Offer, id belay.ActionID, wider *policy.Bound) {
	p := taken{call: c.Name + string(c.Args), offer: o, left: -1}
	p.taint, p.secret = w.outside()
	if brings := own(c, nil); brings != nil {
		p.taint = append(p.taint, brings...)
	}
	r := answering(id, o, w.now)
	if p.until = r.Until; r.Count > 0 {
		p.left = r.Count - 1
	}
	for _, e := range w.command(r) {
		if g, ok := e.Data.(event.PolicyChanged); ok && g.Op == "granted" {
			p.grant = e.ID()
		}
	}
	w.held = append(w.held, p)
	w.seen["took "+o.Scope+" of "+o.Covers]++
	if wider != nil {
		w.seen["took a wider boundary"]++
	}
}

// TestAScopeThatIsOfferedHolds: in random sequences of calls, answers and taints each
// scope that is offered can be taken, each that isn't is refused, and what was taken makes
// the same call unasked until its end: its number or time, a secret, or content of another
// origin. No scope gets a call past a deny, or past what others could have wanted.
// Guarantee: G93.
func TestAScopeThatIsOfferedHolds(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := &scopesWorld{t: t, d: New(stream), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), blobs: map[belay.Digest][]byte{}, seen: seen}
		w.begin()
		for range 40 {
			w.step()
		}
	})
	t.Log(seen)
	for _, what := range []string{"unasked", "session true", "session false", "count true", "count false", "took session of tool", "took session of call", "took prefix of host", "took count of call", "took until of call"} {
		if seen[what] == 0 {
			t.Errorf("%s never happened", what)
		}
	}
}
