package thread

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/budget"
)

// What lines of a scenario say that people, tools and the store do.

func (w *world) respond(verb, rest string) {
	name, msg, _ := strings.Cut(rest, " ")
	var id string
	for real, short := range w.names {
		if short == name {
			id = real
		}
	}
	scope, clears := "", false
	if said, ok := strings.CutSuffix(msg, "clear"); ok {
		clears, msg = true, strings.TrimSpace(said)
	}
	if msg == "session" {
		scope, msg = "session", ""
	}
	c := belay.RespondAction{Action: belay.ActionID(id), Decision: map[string]string{"approve": "allow"}[verb] + strings.TrimPrefix(verb, "approve"), Scope: scope, Message: msg, Clear: clears}
	if verb == "approve" {
		w.scoped(&c, msg)
	}
	w.supply()
	w.handle(c)
}

// editCall allows a call with other arguments: "ACT {args} [scope=S] [seen=now|before] [asks]".
func (w *world) editCall(rest string) {
	f := strings.Fields(rest)
	c := Edited{RespondAction: belay.RespondAction{Decision: "allow", Args: json.RawMessage(f[1])}}
	for real, short := range w.names {
		if short == f[0] {
			c.Action = belay.ActionID(real)
		}
	}
	c.Call = event.ModelCall{Args: c.Args, ArgsHash: belay.DigestOf(c.Args)}
	var in struct{ Path string }
	_ = json.Unmarshal(c.Args, &in)
	c.Call.Path = in.Path
	for _, kv := range f[2:] {
		switch k, v, _ := strings.Cut(kv, "="); k {
		case "asks":
			c.Asks = true
		case "scope":
			c.Scope = v
		case "seen":
			if c.Seen = "0123456789ab"; v == "now" {
				c.Seen = w.d.s.OpenAsk(c.Action).Version()
			}
		}
	}
	w.supply()
	w.handle(c)
}

// scoped reads what an approval allows besides: prefix=a,b count=2 until=1h.
func (w *world) scoped(c *belay.RespondAction, said string) {
	for _, f := range strings.Fields(said) {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			continue
		}
		c.Message = ""
		if c.Scope == "" {
			c.Scope = name
		}
		switch name {
		case "scope":
			c.Scope = value
		case "prefix":
			c.Prefix = strings.ReplaceAll(value, ",", " ")
		case "count":
			c.Count, _ = strconv.Atoi(value)
		case "until":
			d, _ := time.ParseDuration(value)
			c.Until = w.now.Add(d)
		case "budget":
			c.Scope, c.Budget = "", w.amounts(value)
		}
	}
}

func (w *world) amounts(s string) belay.Amounts {
	l, err := budget.Parse(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Amounts
}

// budget is what a session gives with a turn: LIMIT, or LIMIT:AMOUNT.
func (w *world) budget(s string) *belay.BudgetGrant {
	if s == "" {
		return nil
	}
	limit, amount, parts := strings.Cut(s, ":")
	b := &belay.BudgetGrant{ID: "gift", Limit: w.amounts(limit), Amount: w.amounts(limit)}
	if parts {
		b.Amount = w.amounts(amount)
	}
	for w.d.s.Purse.Grants.Find("", b.ID) != nil {
		b.ID += "+"
	}
	return b
}

// answerBudget is the session's word: "give AMOUNT" or "refuse" for what the thread
// asked for, "limit AMOUNT", "recall"; "recall all" if the thread waits for budget.
func (w *world) answerBudget(f []string) {
	b := belay.BudgetGrant{Limit: w.d.s.Purse.Limit}
	if g := w.d.s.Purse.asked(); g != nil {
		b.ID = g.ID
	}
	switch f[0] {
	case "recall":
		w.handle(belay.RecallGrants{Waits: len(f) > 1})
		return
	case "give":
		b.Amount = w.amounts(f[1])
	case "refuse":
		b.Refused = true
	case "limit":
		b = belay.BudgetGrant{Limit: w.amounts(f[1])}
	}
	w.handle(belay.GiveGrant{Budget: &b})
}

// revoke takes back the n-th grant of the thread, counted from one, or what the
// session allowed for a tool.
func (w *world) revoke(rest string) {
	if n, err := strconv.Atoi(rest); err == nil {
		w.handle(belay.RevokeGrant{Grant: string(w.d.s.Grants[n-1].ID), Reason: "enough"})
		return
	}
	w.handle(belay.RevokeGrant{Grant: "evt_session", Tool: rest})
}

// queue is "promote TURN [N]", "reorder TURN…", or a configuration: "mode=M cap=N
// drop=D quiet=T".
func (w *world) queue(f []string) {
	switch f[0] {
	case "promote":
		n := 0
		if len(f) > 2 {
			n, _ = strconv.Atoi(f[2])
		}
		w.handle(belay.PromoteTurn{Turn: belay.TurnID(f[1]), Position: n})
		return
	case "reorder":
		var order []belay.TurnID
		for _, t := range f[1:] {
			order = append(order, belay.TurnID(t))
		}
		w.handle(belay.ReorderTurns{Order: order})
		return
	}
	var q belay.Queueing
	for _, kv := range f {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case "mode":
			q.Mode = belay.QueueMode(v)
		case "cap":
			q.Cap, _ = strconv.Atoi(v)
		case "drop":
			q.Drop = belay.QueueDrop(v)
		case "quiet":
			d, _ := time.ParseDuration(v)
			q.Quiet = belay.Duration(d)
		}
	}
	w.handle(belay.ConfigureQueue{Queue: q})
}

// rollBack is "SCOPE TURN", or "SCOPE -" for before the first turn; "plan" at
// the end names files to restore, "late" says that facts came since it was made.
func (w *world) rollBack(rest string) {
	f := strings.Fields(rest)
	c := belay.RollBack{Scope: f[0], To: belay.TurnID(strings.TrimPrefix(f[1], "-")), After: w.d.s.Seq, Reason: "wrong way"}
	for _, more := range f[2:] {
		switch more {
		case "plan":
			c.Plan, c.Files, c.Kept = &belay.Ref{Digest: belay.DigestOf([]byte("plan")), Size: 4}, 2, []string{"exec: unknown"}
		case "late":
			c.After--
		}
	}
	w.handle(c)
}

// stopped ends the n-th call of the step by its boundary: "N OP TARGET". Without
// an operation nobody knows what it was.
func (w *world) stopped(f []string) {
	n, _ := strconv.Atoi(f[0])
	c := w.d.s.Turn.Step.Calls[n-1]
	ids := w.d.s.callIDs(c)
	var facts []core.Fact
	if len(f) > 1 {
		facts = append(facts, core.Fact{IDs: ids, Data: event.SandboxViolation{Layer: "files", Op: f[1], Target: strings.Join(f[2:], " "), Reason: "the program says so"}})
	}
	w.add(append(facts, core.Fact{IDs: ids, Data: event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Output: belay.Content{Text: "sh: Permission denied"},
		Problem: event.Problem{Class: "denied", Code: CodeViolation, Message: "its boundary stopped it", Hint: "stay inside"}}}), nil)
}

// asks ends an attempt of the n-th call with a question: "N held" if its server waits
// for the answer, "N kept" if the store has what another attempt goes on with.
func (w *world) asks(f []string) {
	n, _ := strconv.Atoi(f[0])
	c := w.d.s.Turn.Step.Calls[n-1]
	in := &event.InputAsked{FormAsked: event.FormAsked{Server: "desk"}, Prompt: belay.Content{Text: "Who are you?"}, Held: f[1] == "held"}
	if !in.Held {
		in.State = &belay.Ref{Digest: belay.DigestOf([]byte("state")), Size: 5}
	}
	w.add([]core.Fact{{IDs: w.d.s.callIDs(c), Data: event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Problem: event.Problem{Class: "waiting", Code: CodeInput, Message: "a person has to answer"}, Input: in}}}, nil)
}

// told is what the n-th call tells of itself: "N DONE TOTAL TEXT".
func (w *world) told(f []string) {
	n, _ := strconv.Atoi(f[0])
	c := w.d.s.Turn.Step.Calls[n-1]
	done, _ := strconv.ParseInt(f[1], 10, 64)
	total, _ := strconv.ParseInt(f[2], 10, 64)
	w.add([]core.Fact{{IDs: w.d.s.callIDs(c), Data: event.ToolProgress{Attempt: c.Attempt, Done: done, Total: total, Text: f[3]}}}, nil)
}

// another ends an attempt of the n-th call because it would be another call than
// was allowed: "N CODE".
func (w *world) another(f []string) {
	n, _ := strconv.Atoi(f[0])
	c := w.d.s.Turn.Step.Calls[n-1]
	w.add([]core.Fact{{IDs: w.d.s.callIDs(c), Data: event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Problem: event.Problem{Class: "conflict", Code: f[1], Message: "it is another one now"}}}}, nil)
}

// process is "start N" for one that call N starts, "exit N CODE" and "ended N" for
// the n-th of them, "write N TEXT" and "eof N" for what a command brings,
// "wrote N NUMBER" for its outcome, and "kill N".
func (w *world) process(f []string) {
	n, _ := strconv.Atoi(f[1])
	if f[0] == "start" {
		ids := w.d.s.callIDs(w.d.s.Turn.Step.Calls[n-1])
		w.counts["started"]++
		ids.Process = belay.ProcessID(fmt.Sprint("proc_", w.counts["started"]))
		w.add([]core.Fact{{IDs: ids, Data: event.ProcessStarted{PID: 7, Argv: []string{"server", "--all"}}}}, nil)
		return
	}
	id := belay.ProcessID(fmt.Sprint("proc_", n))
	ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Process: id}
	switch f[0] {
	case "exit":
		code, _ := strconv.Atoi(f[2])
		w.add([]core.Fact{{IDs: ids, Data: event.ProcessCompleted{Exit: code}}}, nil)
	case "ended":
		w.add([]core.Fact{{IDs: ids, Data: event.ProcessTerminated{Signal: "SIGTERM", Reason: "cancelled"}}}, nil)
	case "write":
		w.handle(belay.WriteProcessStdin{Process: id, Input: f[2]})
	case "eof":
		w.handle(belay.WriteProcessStdin{Process: id, End: true})
	case "empty":
		w.handle(belay.WriteProcessStdin{Process: id})
	case "wrote":
		number, _ := strconv.Atoi(f[2])
		w.add([]core.Fact{{IDs: ids, Data: event.ProcessInput{Number: number, Bytes: 3}}}, nil)
	case "kill":
		w.handle(belay.TerminateProcess{Process: id, Reason: "no need"})
	default:
		w.t.Fatalf("unknown %q", f)
	}
}

// artifact is what the first call of the step leaves: "plan ID:STATUS:TEXT …",
// "publish NAME VERSION DIGEST".
func (w *world) artifact(verb, rest string) {
	p := event.ArtifactChanged{Kind: "plan", Op: "changed"}
	f := strings.Fields(rest)
	if verb == "publish" {
		p = event.ArtifactChanged{Kind: "artifact", Op: "published", Name: f[0], Version: f[1], After: &belay.Ref{Digest: belay.Digest(f[2]), Size: 1}}
		f = nil
	}
	for _, item := range f {
		parts := strings.SplitN(item, ":", 3)
		p.Plan = append(p.Plan, event.PlanItem{ID: parts[0], Status: parts[1], Text: parts[2]})
	}
	w.add([]core.Fact{{IDs: w.d.s.callIDs(w.d.s.Turn.Step.Calls[0]), Data: p}}, nil)
}

// kept ends the keeping of the workspace: it was, or "failed".
func (w *world) kept(how string) {
	for _, ref := range w.d.Missing() {
		if err := w.d.Supply(ref, w.blobs[ref.Digest]); err != nil {
			w.t.Fatal(err)
		}
	}
	eff := w.d.Next(w.now).Effects[0].(core.TakeSnapshot)
	p := event.ArtifactChanged{Kind: "snapshot", Op: "taken", Name: eff.When, Scope: eff.How, Version: "c0ffee"}
	if how == "failed" {
		p.Op, p.Version, p.Note = "failed", "", "no space left"
	}
	w.add([]core.Fact{{IDs: eff.IDs, Data: p}}, nil)
}

// look tells the model of its surroundings what it doesn't know: that of the rules, and
// what is named.
func (w *world) look(lines string) {
	eff, _ := wanted[core.LookAround](w)
	p := event.ContextResolved{Look: eff.Look}
	for _, line := range append(eff.Lines, strings.Split(lines, "; ")...) {
		if eff.Environment && !slices.Contains(eff.Known, line) {
			p.Environment = append(p.Environment, line)
		}
	}
	p.Items = append(p.Items, eff.Changed...)
	for _, name := range eff.Gone {
		p.Omitted = append(p.Omitted, event.ContextOmission{Kind: "instruction", Name: name, Reason: "missing"})
	}
	for _, name := range eff.Nested {
		p.Items = append(p.Items, event.ContextItem{Kind: "instruction", Name: name, Scope: "folder"})
	}
	p.Text = belay.Content{Text: strings.Join(p.Environment, "\n"), Tokens: int64(10 * len(p.Environment))}
	w.add([]core.Fact{{IDs: eff.IDs, Data: p}}, nil)
}

// undone ends the look at what taking back a turn means; "plan" names files.
func (w *world) undone(how string) {
	eff := w.d.Next(w.now).Effects[0].(core.GoBack)
	p := event.HistoryRollbackStarted{Scope: event.ScopeThread, Target: eff.Target, To: eff.To, Turns: []belay.TurnID{eff.Turn}, Count: 1, By: "runtime"}
	if how == "plan" {
		p.Plan, p.Files = &belay.Ref{Digest: belay.DigestOf([]byte("plan")), Size: 4}, 2
	}
	w.add(Rollback(eff.IDs, p), nil)
}

// restored ends the restoring of files: the named ones.
func (w *world) restored(files []string) {
	eff := w.d.Next(w.now).Effects[0].(core.RestoreFiles)
	end := eff.Event
	end.Artifacts, end.Restored = files, len(files)
	w.add([]core.Fact{{IDs: eff.IDs, Data: end}}, nil)
}

// compacted ends the compaction that is announced: "compacted TOKENS" with a window of
// so many, "uncompacted CLASS" without one.
func (w *world) compacted(verb string, f []string) {
	c := w.d.s.Compacting
	if !c.runs() {
		fmt.Fprintln(&w.out, "nothing is shortened")
		return
	}
	used := belay.Usage{Input: 100, Output: 10, Reported: true}
	if verb == "uncompacted" {
		w.add([]core.Fact{{IDs: c.IDs, Data: event.ContextCompactionFailed{Trigger: c.Trigger, Strategy: c.Strategy, Started: c.Started,
			Problem: event.Problem{Class: f[0], Code: strings.ToUpper(f[0]), Message: "it broke"}}}}, nil)
		return
	}
	n, _ := strconv.ParseInt(f[0], 10, 64)
	w.add([]core.Fact{{IDs: c.IDs, Data: event.ContextCompactionCompleted{Trigger: c.Trigger, Strategy: c.Strategy, Started: c.Started, From: c.From, To: c.To, Reads: c.To + 1,
		TokensBefore: c.Tokens, TokensAfter: n, Usage: used, Charge: event.ChargeAnswer}}}, nil)
}

// accept is a check of the turns that are submitted from now on: "KIND WORDS…".
func (w *world) accept(rest string) {
	kind, rest, _ := strings.Cut(rest, " ")
	k := belay.Check{Kind: belay.CheckKind(kind)}
	switch k.Kind {
	case belay.CheckCommand:
		k.Argv = strings.Fields(rest)
	case "unchanged":
		k.Kind, k.Unchanged, k.Paths = belay.CheckFiles, true, strings.Fields(rest)
	case belay.CheckFiles:
		k.Paths = strings.Fields(rest)
	case belay.CheckPerson, belay.CheckAgent:
		k.Prompt = rest
	case belay.CheckSchema:
		k.Schema = json.RawMessage(rest)
	}
	var err error
	if w.checks, err = belay.CheckedAcceptance(append(w.checks, k)); err != nil {
		w.t.Fatal(err)
	}
}

// verified ends the look at a check: "ID STATUS REASON"; running makes its call.
func (w *world) verified(f []string) {
	w.supply()
	for _, e := range w.d.Next(w.now).Effects {
		eff, ok := e.(core.Verify)
		if !ok || eff.Check.ID != f[0] {
			continue
		}
		r := event.CheckResult{ID: f[0], Kind: eff.Check.Kind, Status: f[1], Reason: strings.TrimSpace(f[2])}
		switch r.Status {
		case event.CheckRunning:
			args, _ := json.Marshal(map[string]any{"argv": eff.Check.Argv})
			r.Call = &event.ModelCall{ID: eff.Call, Name: "exec", Args: args, ArgsHash: belay.DigestOf(args)}
		case event.CheckNoted:
			for _, p := range eff.Check.Paths {
				r.Files = append(r.Files, event.FileSeen{Path: p, Digest: "was"})
			}
		}
		w.add([]core.Fact{{IDs: eff.IDs, Data: event.TaskProgress{Phase: event.PhaseVerifying, Check: &r}}}, nil)
		return
	}
	w.t.Fatalf("nothing looks at check %s", f[0])
}
