package thread

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/model/price"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/testkit/golden"
)

// TestScenarios plays testdata/*.txt. A line that begins with "> " is a command;
// what follows is what the decider says then: facts, sends, effects, wake time.
// Guarantee: O2.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, f, play(t, string(want)))
		})
	}
}

// world drives one thread decider by hand.
type world struct {
	t       *testing.T
	d       *Decider
	now     time.Time
	rules   Rules
	blobs   map[belay.Digest][]byte
	log     []event.Envelope
	out     strings.Builder
	names   map[string]string
	counts  map[string]int
	forgets bool
	checks  []belay.Check // of the turns that are submitted

	quiet bool             // it doesn't say what is decided
	seen  func(core.Ready) // is told of each decision; nil: nobody is
}

const stream = belay.StreamID("thread/thr_1")

func newWorld(t *testing.T) *world {
	w := &world{t: t, d: New(stream), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), blobs: map[belay.Digest][]byte{}, names: map[string]string{}, counts: map[string]int{}}
	w.rules = Rules{Workspace: "/ws", Boundary: Boundary{Level: "L0", Why: "no sandbox", Network: "full"}, Tools: testTools(),
		Settings: belay.Settings{Provider: "scripted", Mode: belay.ModeDefault, Approvals: belay.ApprovalsWait, Limits: belay.DefaultLimits}}
	return w
}

func testTools() []belay.ToolSpec {
	return []belay.ToolSpec{
		{Name: "ask_user", Handled: "ask"},
		{Name: "complete_task", Handled: "complete", ReadOnly: true, Effect: belay.Pure},
		{Name: "edit", Effect: belay.Recoverable, PathArg: "path", Access: belay.Write},
		{Name: "exec", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Capabilities: []string{"process"}},
		{Name: "poll", Effect: belay.Pure, ReadOnly: true, Polling: true},
		{Name: "put", Effect: belay.Idempotent, Access: belay.Write},
		{Name: "read", Effect: belay.Pure, ReadOnly: true, PathArg: "path", Access: belay.Read},
		{Name: "solo", Effect: belay.Pure, ReadOnly: true, Exclusive: true},
	}
}

// moreTools are those that only some scenarios have.
var moreTools = map[string]belay.ToolSpec{
	"todo":       {Name: "todo", Effect: belay.Idempotent, ReadOnly: true, Exclusive: true},
	"fetch":      {Name: "fetch", Effect: belay.Pure, ReadOnly: true, Untrusted: true, HostArg: "url", Capabilities: []string{"network"}},
	"web_search": {Name: "web_search", Effect: belay.Pure, ReadOnly: true, Untrusted: true, Native: true, Capabilities: []string{"network"}},
	"desk":       {Name: "mcp__desk__add", Effect: belay.AtMostOnce, Destructive: true, Untrusted: true, Server: "desk", Capabilities: []string{"network"}},
	"books":      {Name: "mcp__books__add", Effect: belay.AtMostOnce, Destructive: true, Untrusted: true, Server: "books", Capabilities: []string{"network"}},
	"mail":       {Name: "mail", Effect: belay.Pure, ReadOnly: true, Untrusted: true},
	"look":       {Name: "look", Effect: belay.Pure, ReadOnly: true, Capabilities: []string{"process"}},
	"run": {Name: "run", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Capabilities: []string{"process"},
		Command: &belay.CommandArgs{Line: "command", Boundary: "boundary", Reason: "reason"}},
	"publish": {Name: "publish", Effect: belay.Idempotent, ReadOnly: true, PathArg: "path", Access: belay.Read, Capabilities: []string{"publish"}},
}

func play(t *testing.T, script string) string {
	w := newWorld(t)
	sc := bufio.NewScanner(strings.NewReader(script))
	for sc.Scan() {
		line := sc.Text()
		switch {
		case strings.HasPrefix(line, "#"), line == "":
			fmt.Fprintln(&w.out, line)
		case strings.HasPrefix(line, "> "):
			fmt.Fprintln(&w.out, line)
			w.do(line[2:])
		}
	}
	return strings.TrimRight(w.out.String(), "\n") + "\n"
}

func (w *world) do(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "rules":
		for _, kv := range strings.Fields(rest) {
			w.setRule(kv)
		}
		return
	case "policy":
		w.policy(rest)
		return
	case "accept":
		w.accept(rest)
		return
	case "verified":
		w.verified(strings.SplitN(rest+" ", " ", 3))
	case "checked", "unchecked":
		w.checked(verb, strings.SplitN(rest, " ", 4))
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			w.t.Fatal(err)
		}
		w.now = w.now.Add(d)
	case "open":
		w.handle(belay.OpenThread{Workspace: "/ws"})
	case "submit":
		rest, purse, _ := strings.Cut(rest, " budget=")
		rest, tokens := cutNumber(rest, " tokens=")
		rest, at, _ := strings.Cut(rest, " place=")
		place, _ := strconv.ParseInt(at, 10, 64)
		rest, media, _ := strings.Cut(rest, " attach=")
		turn, mode, _ := strings.Cut(rest, " queue=")
		text := belay.Content{Text: "do " + turn, Tokens: tokens}
		if media != "" {
			text.Attached = []belay.Attachment{{Name: "it", Ref: belay.Ref{Digest: "digest", Media: media}}}
		}
		w.handle(belay.SubmitTurn{Turn: belay.TurnID(turn), Kind: belay.TurnUser, Task: "task_1", Run: "run_1", Text: text, Rules: w.keepRules(), Queue: belay.QueueMode(mode), Place: place, Budget: w.budget(purse), Checks: w.checks})
	case "queue":
		w.queue(strings.Fields(rest))
	case "budget":
		w.answerBudget(strings.Fields(rest))
	case "undone":
		w.undone(rest)
	case "interrupt":
		reason, turn, _ := strings.Cut(rest, "turn=")
		w.handle(belay.InterruptTurn{Turn: belay.TurnID(turn), Reason: strings.TrimSpace(reason)})
	case "remove":
		w.handle(belay.InterruptTurn{Turn: belay.TurnID(rest), Queued: true})
	case "resume":
		w.handle(belay.ResumeThread{Rules: w.keepRules(), Limits: &w.rules.Settings.Limits})
	case "widest":
		mode, boundary, _ := strings.Cut(rest, " ")
		w.handle(belay.LimitMode{Mode: belay.Mode(strings.TrimPrefix(mode, "-")), Boundary: boundary})
	case "share":
		w.handle(belay.ShareWorkspace{})
	case "paused", "resumed":
		w.handle(belay.PauseThread{Op: verb})
	case "grant":
		n, _ := strconv.Atoi(rest)
		w.handle(belay.GiveGrant{Call: w.d.s.Turn.Step.Calls[n-1].ID})
	case "use":
		f := strings.Fields(rest + " . .")
		u := belay.WorkspaceUse{Use: belay.Use(f[0])}
		if u.Use == belay.UseReader {
			u.Writer, u.Path = belay.SessionID(f[1]), f[2]
		}
		w.handle(belay.UseWorkspace{Use: &u})
	case "approve", "deny", "answer":
		w.respond(verb, rest)
	case "edit":
		w.editCall(rest)
	case "revoke":
		w.revoke(rest)
	case "takeover":
		w.takeOver(rest)
	case "model":
		w.model(rest)
	case "fail":
		w.fail(rest)
	case "result", "error", "retry":
		w.tool(verb, rest)
	case "stopped":
		w.stopped(strings.Fields(rest))
	case "asks":
		w.asks(strings.Fields(rest))
	case "told":
		w.told(strings.SplitN(rest, " ", 4))
	case "another":
		w.another(strings.Fields(rest))
	case "rollback":
		w.rollBack(rest)
	case "compact":
		w.handle(belay.CompactThread{Focus: rest, Rules: w.keepRules()})
	case "compacted", "uncompacted":
		w.compacted(verb, strings.Fields(rest))
	case "pin":
		name, text, _ := strings.Cut(rest, " ")
		w.handle(belay.PinContext{Pin: name, Text: text})
	case "unpin":
		w.handle(belay.UnpinContext{Pin: rest})
	case "kept":
		w.kept(rest)
	case "look":
		w.look(rest)
	case "restored":
		w.restored(strings.Fields(rest))
	case "plan", "publish":
		w.artifact(verb, rest)
	case "proc":
		w.process(strings.SplitN(rest, " ", 3))
	case "steps":
		w.steps()
		return
	case "forget":
		w.forgets = true
		return
	case "lose": // all content, and what was read of it
		clear(w.blobs)
		w.forgets = true
		w.reload()
	case "reload":
		w.reload()
	default:
		w.t.Fatalf("unknown command %q", line)
	}
	w.settle()
}

// steps shows which steps the facts so far name.
func (w *world) steps() {
	for _, e := range w.log {
		if e.IDs.Step != "" {
			fmt.Fprintf(&w.out, "  %s %s\n", e.Type(), w.short(string(e.IDs.Step)))
		}
	}
}

// takeOver plays crash upon crash and shows what follows from the last.
func (w *world) takeOver(times string) {
	n, _ := strconv.Atoi(times)
	shown := w.out.String()
	for i := range n - 1 {
		w.handle(belay.TakeOver{Epoch: int64(2 + i)})
		w.settle()
	}
	w.out.Reset()
	w.out.WriteString(shown)
	w.handle(belay.TakeOver{Epoch: int64(2 + max(0, n-1))})
}

func (w *world) setRule(kv string) {
	k, v, _ := strings.Cut(kv, "=")
	n, _ := strconv.Atoi(v)
	s := &w.rules.Settings
	switch k {
	case "mode":
		s.Mode = belay.Mode(v)
	case "approvals":
		s.Approvals = belay.Approvals(v)
	case "context":
		name, text, held := strings.Cut(v, "#") // held outside of the rules: its text changes
		i := event.ContextItem{Kind: "instruction", Name: name, Scope: "workspace"}
		if held {
			i.Ref = &belay.Ref{Digest: belay.DigestOf([]byte(text)), Size: int64(len(text))}
			w.rules.Instructions = &belay.Content{Ref: i.Ref, Tokens: 100}
		}
		w.rules.Context = append(w.rules.Context, i)
	case "nocontext":
		w.rules.Context, w.rules.Instructions = nil, nil
	case "leftout":
		w.rules.LeftOut = append(w.rules.LeftOut, event.ContextOmission{Kind: "instruction", Name: v, Reason: "budget"})
	case "compact":
		strategy, at, _ := strings.Cut(v, "@")
		w.rules.Settings.Compact.Strategy = belay.CompactStrategy(strategy)
		w.rules.Settings.Compact.At, _ = strconv.Atoi(at)
	case "environment":
		w.rules.Environment, w.rules.Cwd = true, v
	case "snapshot":
		s.Snapshot = v
	case "output":
		w.rules.Output = json.RawMessage(v)
	case "completion":
		s.Completion = belay.Completion(v)
	case "without":
		w.rules.Tools = slices.DeleteFunc(slices.Clone(w.rules.Tools), func(t belay.ToolSpec) bool { return t.Name == v })
	case "allow":
		w.rules.Grants = append(w.rules.Grants, policy.Grant{Tool: v, Tier: policy.TierUser, Kind: "rule", By: "user:ann"})
	case "strange":
		w.rules.UntrustedWorkspace = true
	case "level":
		w.rules.Boundary = Boundary{Level: v, Why: "the probe says so", Network: "full", Decides: true}
	case "boundary":
		s.Boundary = v
	case "steps":
		s.Limits.Steps = n
	case "calls":
		s.Limits.Calls = n
	case "tokens":
		w.rules.Tokens = int64(n)
	case "routes": // instead of those before
		w.rules.Routes = []core.Candidate{candidate(v)}
	case "add":
		w.rules.Tools = append(slices.Clone(w.rules.Tools), moreTools[v])
	case "drop":
		w.rules.Tools = slices.DeleteFunc(slices.Clone(w.rules.Tools), func(t belay.ToolSpec) bool { return t.Name == v })
	case "route":
		w.rules.Routes = append(w.rules.Routes, candidate(v))
	case "needs":
		w.rules.Profile.Kind, w.rules.Profile.Source, w.rules.Profile.Needs = "work", "settings", []string{v}
	case "max-cost", "max-tokens":
		l := w.amounts(v)
		s.Limits.MicroUSD, s.Limits.Tokens = max(s.Limits.MicroUSD, l.MicroUSD), max(s.Limits.Tokens, l.Tokens)
	case "priced":
		w.rules.Profile.Priced = true
	case "time":
		d, _ := time.ParseDuration(v)
		s.Limits.Time = belay.Duration(d)
	default:
		w.t.Fatalf("unknown rule %q", kv)
	}
}

// candidate is PROVIDER/MODEL, then :N for what it reads, +ABILITY for what it
// is known to do, $N or $N@DAY for what a million tokens cost in dollars, to the end of that day,
// *N for its factor,
// !REASON for why it can't be used.
func candidate(v string) (c core.Candidate) {
	v, c.Lacks, _ = strings.Cut(v, "!")
	v, factor, _ := strings.Cut(v, "*")
	c.Factor, _ = strconv.ParseFloat(factor, 64)
	v, dollars, priced := strings.Cut(v, "$")
	if priced {
		dollars, until, _ := strings.Cut(dollars, "@")
		n, _ := strconv.ParseInt(dollars, 10, 64)
		c.Prices = &price.List{Until: until, Rates: price.Rates{Input: n * 1e6, Output: n * 1e6}}
	}
	v, able, known := strings.Cut(v, "+")
	if c.Known = known; able != "" {
		c.Capabilities = strings.Split(able, "+")
	}
	v, size, _ := strings.Cut(v, ":")
	c.Context, _ = strconv.ParseInt(size, 10, 64)
	c.Provider, c.Model, _ = strings.Cut(v, "/")
	return c
}

// policy puts the next turn under rules besides the built-in ones; they are
// JSON as they are kept.
func (w *world) policy(text string) {
	var doc policy.Document
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		w.t.Fatal(err)
	}
	doc.Version, doc.Rules = policy.FormatVersion, append(policy.BuiltinRules(), doc.Rules...)
	set, err := policy.Compile(doc)
	if err != nil {
		w.t.Fatal(err)
	}
	raw, _ := set.Encode()
	w.rules.Govern(belay.Ref{Digest: set.Digest(), Size: int64(len(raw))}, set)
	w.blobs[set.Digest()] = raw
}

// checked ends a checker of the n-th call: "checked N ID DECISION reason",
// "unchecked N ID why".
func (w *world) checked(verb string, f []string) {
	n, _ := strconv.Atoi(f[0])
	ids := w.d.s.callIDs(w.d.s.Turn.Step.Calls[n-1])
	var p event.Payload = event.HookFailed{Hook: "checker/" + f[1], Point: "permission_request", Problem: event.Problem{Class: "internal", Code: "CHECKER_FAILED", Message: f[2]}, Fails: "closed"}
	if verb == "checked" {
		p = event.HookCompleted{Hook: "checker/" + f[1], Point: "permission_request", Decision: f[2], Reason: strings.Join(f[3:], " ")}
	}
	w.add([]core.Fact{{IDs: ids, Data: p}}, nil)
}

func (w *world) keepRules() belay.Ref {
	b, _ := json.Marshal(w.rules)
	ref := belay.Ref{Digest: belay.DigestOf(b), Size: int64(len(b))}
	if !w.forgets {
		w.blobs[ref.Digest] = b
	}
	return ref
}

func (w *world) handle(c belay.Command) {
	facts, sends, err := w.d.Handle(belay.Order{ID: "cmd_1", Principal: "user:ann", Session: "sess_1", Stream: stream, Command: c}, w.now)
	if err != nil {
		fmt.Fprintf(&w.out, "refused %s: %s\n", belay.CodeOf(err), w.short(err.Error()))
	}
	w.add(facts, sends)
}

func (w *world) supply() {
	for refs := w.d.Missing(); len(refs) > 0; refs = w.d.Missing() {
		for _, ref := range refs {
			if err := w.d.Supply(ref, w.blobs[ref.Digest]); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// cutNumber cuts what stands behind a mark at the end of a line.
func cutNumber(line, mark string) (rest string, n int64) {
	rest, number, _ := strings.Cut(line, mark)
	n, _ = strconv.ParseInt(number, 10, 64)
	return rest, n
}

// model answers the request in flight: an optional "text", calls NAME{args}, and
// stop=WHY, and at the end misfit=WHY, input=N for what was reported, 0 if nothing was, and
// sealed=N for bytes that only this model reads.
var callForm = regexp.MustCompile(`"([^"]*)"|(\w+)(\{[^ ]*\})`)

func (w *world) model(rest string) {
	st := w.d.s.Turn.Step
	p := event.ModelCompleted{Attempt: st.Attempt, Usage: belay.Usage{Input: 10, Output: 5, Reported: true}}
	rest, n := cutNumber(rest, " sealed=")
	if n > 0 {
		p.Echo.Ref = &belay.Ref{Digest: belay.DigestOf([]byte("sealed")), Size: n}
	}
	if line, input := cutNumber(rest, " input="); line != rest {
		rest, p.Usage = line, belay.Usage{Input: input, Output: 5, Reported: input != 0}
	}
	rest, bad := strings.CutSuffix(rest, " BAD")
	rest, usage, _ := strings.Cut(rest, " usage=")
	if usage != "" {
		p.Usage = belay.Usage{}
		p.Usage.Reported = usage != "none"
		_, _ = fmt.Sscanf(usage, "%d/%d/%d", &p.Usage.Input, &p.Usage.Output, &p.Usage.Reasoning)
	}
	rest, p.Misfit, _ = strings.Cut(rest, " misfit=")
	rest, p.Stop, _ = strings.Cut(rest, " stop=")
	rest, query, _ := strings.Cut(rest, " search=")
	if query != "" {
		p.Searches = []event.ModelSearch{{Query: query, Found: 1, Pages: belay.Content{Text: "https://a.example"}}}
	}
	for _, m := range callForm.FindAllStringSubmatch(rest, -1) {
		if m[2] == "" {
			p.Text = belay.Content{Text: m[1]}
			continue
		}
		args := json.RawMessage(m[3])
		c := event.ModelCall{ID: belay.CallID(belay.DeriveID("call", stream, w.d.s.Seq+1, len(p.Calls))), Name: m[2], Args: args, ArgsHash: belay.DigestOf(args)}
		var in struct{ Path string }
		_ = json.Unmarshal(args, &in)
		c.Path = in.Path
		if bad {
			c.Problem = &event.Problem{Class: "bad_arguments", Code: "BAD_ARGUMENTS", Message: "path is missing"}
		}
		p.Calls = append(p.Calls, c)
	}
	w.add([]core.Fact{w.d.s.fact(p)}, nil)
}

// fail is CLASS [CODE] [WAIT]; in place of the code, limit= is the context that the
// refusal names, and cut= as much as the server said that it read, to an earlier release;
// at the end bytes=N is how much text had come.
func (w *world) fail(rest string) {
	st := w.d.s.Turn.Step
	rest, came := cutNumber(rest, " bytes=")
	class, rest, _ := strings.Cut(rest, " ")
	code, wait, _ := strings.Cut(rest, " ")
	after, _ := time.ParseDuration(wait)
	p := event.ModelFailed{Attempt: st.Attempt, Offset: came, Problem: event.Problem{Class: class, Code: strings.ToUpper(class), Message: "it broke", Retryable: class == "transient" || class == "rate_limited"}}
	if limit, ok := strings.CutPrefix(code, "limit="); ok {
		p.Limit, _ = strconv.ParseInt(limit, 10, 64)
	} else if read, ok := strings.CutPrefix(code, "cut="); ok {
		p.Limit, _ = strconv.ParseInt(read, 10, 64)
		p.Problem.Code, p.Charge, p.Usage = codeContextCut, event.ChargeAnswer, belay.Usage{Input: p.Limit, Reported: true}
	} else if code != "" {
		p.Problem.Code = code
	}
	if class == "cancelled" && code != "SILENT" {
		p.Partial = "half an ans"
	}
	if p.Problem.Retryable {
		p.RetryAt = ModelRetryAt(w.now, st.ID, st.Failures, after)
	}
	w.add([]core.Fact{w.d.s.fact(p)}, nil)
}

// tool ends the n-th call of the step: "result N text", "error N class CODE",
// "retry N" for a transient failure; "ms=N" at the end is how long it took, or
// "tokens=N" how much it says; "guides=" ends it with files of instructions.
func (w *world) tool(verb, rest string) {
	rest, guides, _ := strings.Cut(rest, " guides=")
	rest, tokens := cutNumber(rest, " tokens=")
	rest, exit := cutNumber(rest, " exit=")
	rest, took, _ := strings.Cut(rest, " ms=")
	ms, _ := strconv.ParseInt(took, 10, 64)
	f := strings.SplitN(rest, " ", 2)
	n, err := strconv.Atoi(f[0])
	if err != nil || n < 1 || n > len(w.d.s.Turn.Step.Calls) {
		w.t.Fatalf("no call %q", rest)
	}
	c := w.d.s.Turn.Step.Calls[n-1]
	arg := ""
	if len(f) > 1 {
		arg = f[1]
	}
	var p event.Payload
	switch verb {
	case "result":
		r := event.ToolResult{Name: c.Name, Attempt: c.Attempt, Output: belay.Content{Text: arg, Tokens: tokens}, Digest: belay.DigestOf([]byte(arg)), Millis: ms, Instructions: strings.Fields(guides)}
		r.Exit = int(exit)
		if c.Path != "" {
			r.Files = []event.FileSeen{{Path: c.Path, Digest: "sha256:" + arg}}
		}
		p = r
	case "error":
		class, code, _ := strings.Cut(arg, " ")
		p = event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Final: true, Millis: ms, Problem: event.Problem{Class: class, Code: code, Message: "it broke"}}
	case "retry":
		prob := event.Problem{Class: "transient", Code: "NET", Message: "it broke", Retryable: true}
		spec, _ := w.rules.Tool(c.Name)
		at, again := ToolRetryAt(w.now, spec, c.Attempt, prob)
		p = event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Problem: prob, Final: !again, RetryAt: at, Millis: ms}
	}
	w.add([]core.Fact{{IDs: w.d.s.callIDs(c), Data: p}}, nil)
}

// reload replaces the decider by one that folded the log, and by one that
// loaded a saved state: both must be where this one is.
func (w *world) reload() {
	saved, err := w.d.Save()
	if err != nil {
		w.t.Fatal(err)
	}
	fresh := New(stream)
	for _, e := range w.log {
		fresh.Apply(e)
	}
	again, _ := fresh.Save()
	if d := cmp.Diff(string(saved), string(again)); d != "" {
		w.t.Errorf("folding the log gives another state (-live +folded):\n%s", d)
	}
	w.d = New(stream)
	if err := w.d.Load(saved); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add(facts []core.Fact, sends []core.Send) {
	for _, f := range facts {
		e := event.Envelope{Stream: stream, Seq: w.d.s.Seq + 1, Time: w.now, IDs: f.IDs, Data: f.Data}
		w.d.Apply(e)
		if w.log = append(w.log, e); w.quiet {
			continue
		}
		raw, _ := event.Encode(f.Data)
		about := ""
		if f.IDs.Call != "" {
			about = " " + w.short(string(f.IDs.Call))
		}
		if f.IDs.Action != "" {
			about += " " + w.short(string(f.IDs.Action))
		}
		fmt.Fprintf(&w.out, "  %s%s %s\n", e.Type(), about, w.short(string(raw)))
	}
	for _, s := range sends {
		raw, _ := json.Marshal(s.Command)
		fmt.Fprintf(&w.out, "  send %s %s %s\n", s.To, belay.CommandName(s.Command), w.short(string(raw)))
	}
}

func (w *world) settle() {
	for range 100 {
		w.supply()
		rd := w.d.Next(w.now)
		if w.seen != nil {
			w.seen(rd)
		}
		if len(rd.Decided) > 0 {
			if len(rd.Effects) > 0 {
				w.t.Fatal("facts and effects in one breath")
			}
			w.add(rd.Decided, rd.Sends)
			continue
		}
		if w.quiet {
			return
		}
		for _, e := range rd.Effects {
			expect := ""
			if e, ok := e.(core.RunTool); ok {
				if w.edited(e.IDs.Call) {
					expect = " with " + string(e.Args)
				}
				for path, digest := range e.Expect {
					expect += " if " + path + " is " + digest
				}
				for name, p := range e.Known {
					expect += fmt.Sprintf(" knowing %s version %d", name, p.Version)
				}
				if b := e.Bound; b != nil {
					expect += fmt.Sprintf(" in [%s]", b.Name)
					if b.Least != "" {
						expect += " of level " + string(b.Least)
					}
				}
			}
			fmt.Fprintf(&w.out, "  want %s%s\n", w.short(e.Key()), expect)
		}
		if !rd.Wake.IsZero() {
			fmt.Fprintf(&w.out, "  wake in %s\n", rd.Wake.Sub(w.now))
		}
		w.reload()
		return
	}
	w.t.Fatal("the decider decides without end")
}

// edited reports whether a call has other arguments than the model gave.
func (w *world) edited(id belay.CallID) bool {
	return slices.ContainsFunc(w.log, func(e event.Envelope) bool {
		_, ok := e.Data.(event.ToolArgs)
		return ok && e.IDs.Call == id
	})
}

var idForm = regexp.MustCompile(`(step|call|act|run|grant)_[0-9a-f]{8}-[0-9a-f-]{27}|sha256:[0-9a-f]{64}`)

// short gives ids and digests readable names, in the order they appear.
func (w *world) short(s string) string {
	return idForm.ReplaceAllStringFunc(s, func(id string) string {
		if w.names[id] == "" {
			kind, _, _ := strings.Cut(strings.ReplaceAll(id, "sha256:", "digest_"), "_")
			w.counts[kind]++
			w.names[id] = kind + strconv.Itoa(w.counts[kind])
		}
		return w.names[id]
	})
}
