package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// What must hold before a turn counts as done is found out when its completion tool is
// called: the call waits until each check has a result, which is a fact. A check that
// runs a program is a call beside it, judged and run as any other. Agents judge only what
// passes these: that costs requests. People are asked last, and only if all else passes.

// codeChecksFailed is the failure of a completion whose checks don't pass.
const codeChecksFailed = "CHECKS_FAILED"

// Bounds of what is kept of a check's output.
const (
	lastBytes = 1 << 10
	lastCount = 15 // lines
)

// required is a check that the turn, or one that is part of it, must pass.
type required struct {
	belay.Check
	of *Queued
}

// verdict is what is known of a check in the running round.
type verdict struct {
	Task   belay.TaskID `json:"task"`
	ID     string       `json:"id"`
	Status string       `json:"status"`
	Reason string       `json:"reason,omitempty"`
	Output string       `json:"output,omitempty"`
	Call   belay.CallID `json:"call,omitempty"`
}

// callEnd is how a call ended that finds out a check.
type callEnd struct {
	Exit    int            `json:"exit,omitempty"`
	Output  string         `json:"output,omitempty"`
	Problem *event.Problem `json:"problem,omitempty"`
}

// noted is how files were before the first attempt of a task.
type noted struct {
	Task  belay.TaskID     `json:"task"`
	ID    string           `json:"id"`
	Files []event.FileSeen `json:"files"`
}

// maxNoted bounds what is noted: that of the tasks that came last.
const maxNoted = 2 * belay.MaxChecks

// required are the checks of the turn and of those that are part of it.
func (t *Turn) required() (all []required) {
	add := func(q *Queued) {
		for _, k := range q.Checks {
			all = append(all, required{k, q})
		}
	}
	add(&t.Queued)
	for i := range t.Joined {
		add(&t.Joined[i])
	}
	return all
}

// required are the checks of the turn, those that its agent's file has among them.
func (d *decision) required() []required {
	all := d.Turn.required()
	for _, k := range d.rules.Gates {
		if !slices.ContainsFunc(all, func(r required) bool { return r.ID == k.ID && r.of == &d.Turn.Queued }) {
			all = append(all, required{k, &d.Turn.Queued})
		}
	}
	return all
}

func (t *Turn) verdictOf(r required) *verdict {
	return find(t.Verified, func(v *verdict) bool { return v.Task == r.of.Task && v.ID == r.ID })
}

func (f *fileState) noted(r required) *noted {
	return find(f.Noted, func(n *noted) bool { return n.Task == r.of.Task && n.ID == r.ID })
}

// applyCheck folds a result.
func (s *State) applyCheck(e event.Envelope, p event.CheckResult) {
	t := s.Turn
	if p.Status == event.CheckNoted {
		s.Noted = keep(append(s.Noted, noted{e.IDs.Task, p.ID, p.Files}), maxNoted)
		return
	}
	if p.Status == event.CheckFailed || p.Status == event.CheckUnknown {
		t.Reds++
	}
	v := verdict{Task: e.IDs.Task, ID: p.ID, Status: p.Status, Reason: p.Reason, Output: p.Output}
	if m := p.Call; m != nil && t.Step != nil {
		v.Call = m.ID
		t.Step.Calls = append(t.Step.Calls, &Call{ID: m.ID, Name: m.Name, Args: m.Args, ArgsRef: m.ArgsRef, ArgsHash: m.ArgsHash, Links: m.Links, Problem: m.Problem, Check: p.ID})
	}
	if c := t.call(e.IDs.Call); c != nil && p.Kind == belay.CheckPerson { // the next one is asked anew
		c.Ask = nil
	}
	t.Verified = append(slices.DeleteFunc(t.Verified, func(o verdict) bool { return o.Task == v.Task && o.ID == v.ID }), v)
}

// note finds out how files are that must stay unchanged, before the first step of the
// first attempt: a later one is held against that too.
func note(d *decision) (waits bool) {
	if st := d.Turn.Step; st != nil && !st.settled() {
		return false
	}
	for _, r := range d.required() {
		if r.Kind == belay.CheckFiles && r.Unchanged && d.noted(r) == nil {
			ids := d.turnIDs()
			ids.Task, ids.Run = r.of.Task, r.of.Run
			d.want(core.Verify{IDs: ids, Check: r.Check, Note: true, Rules: d.Turn.Rules})
			waits = true
		}
	}
	return waits
}

// verified reports whether all checks pass. Until then the completion waits; it fails
// when one doesn't.
func (d *decision) verified(c *Call) bool {
	all := d.required()
	if len(all) == 0 {
		return true
	}
	if c.Attempt == 0 {
		d.startsHandled(c)
		return false
	}
	var agents, people []required
	open, red := false, false
	for _, r := range all {
		switch v := d.Turn.verdictOf(r); {
		case v == nil && r.Kind == belay.CheckPerson:
			people = append(people, r)
		case v == nil && r.Kind == belay.CheckAgent:
			agents = append(agents, r)
		case v == nil:
			open = true
			d.want(d.verify(c, r))
		case v.Status == event.CheckRunning:
			open = true
			if run := d.Turn.call(v.Call); run != nil && run.Phase == CallOver {
				d.result(c, r, d.found(r, run))
			}
		default:
			red = red || v.Status != event.CheckPassed
		}
	}
	switch {
	case open:
		return false
	case red:
		d.refuseCompletion(c, all)
		return false
	case len(agents) > 0:
		for _, r := range agents {
			d.want(d.verify(c, r))
		}
		return false
	case len(people) > 0:
		d.asksWhetherDone(c, people[0])
		return false
	}
	return true
}

func (d *decision) verify(c *Call, r required) core.Verify {
	e := core.Verify{IDs: d.checkIDs(c, r), Check: r.Check, Args: c.Args, ArgsRef: c.ArgsRef, Rules: d.Turn.Rules,
		Call: belay.CallID(belay.DeriveID(belay.PrefixCall, belay.StreamID(string(c.ID)+"/"+string(r.of.Task)+"/"+r.ID), 0, 0))}
	if n := d.noted(r); n != nil {
		e.Files = n.Files
	}
	return e
}

func (d *decision) checkIDs(c *Call, r required) belay.IDs {
	ids := d.callIDs(c)
	ids.Task, ids.Run = r.of.Task, r.of.Run
	return ids
}

// result records what became of a check, and how many pass.
func (d *decision) result(c *Call, r required, k event.CheckResult) {
	k.ID, k.Kind = r.ID, r.Kind
	p := event.TaskProgress{Phase: event.PhaseVerifying, Check: &k, Total: len(d.required())}
	for _, v := range d.Turn.Verified {
		if v.Status == event.CheckPassed {
			p.Done++
		}
	}
	if k.Status == event.CheckPassed {
		p.Done++
	}
	d.record(core.Fact{IDs: d.checkIDs(c, r), Data: p})
}

// found is what the end of its call says of a check.
func (d *decision) found(r required, run *Call) event.CheckResult {
	k := d.childOf(run.ID)
	if r.Kind != belay.CheckAgent || k == nil || run.Ended.Problem != nil {
		return run.Ended.result()
	}
	return judged(r.Check, k.End)
}

// result is what an exit code says of a check.
func (e *callEnd) result() event.CheckResult {
	k := event.CheckResult{Status: event.CheckPassed, Output: e.Output}
	switch {
	case e.Problem != nil:
		k.Status, k.Reason = event.CheckUnknown, event.CutText(e.Problem.Code+": "+e.Problem.Message+before("; ", e.Problem.Hint), maxTarget)
	case e.Exit != 0:
		k.Status, k.Reason = event.CheckFailed, fmt.Sprintf("exit %d", e.Exit)
	default:
		k.Output = ""
	}
	return k
}

// asksWhetherDone asks a person about one check.
func (d *decision) asksWhetherDone(c *Call, r required) {
	switch a := c.Ask; {
	case a == nil && d.rules.headless():
		d.result(c, r, event.CheckResult{Status: event.CheckUnknown, Reason: "no person can be asked"})
	case a == nil:
		d.askPerson(c, "", event.ActionRequired{Kind: askAcceptance, Prompt: belay.Content{Text: event.CutText(r.Prompt, maxSaid)}})
	case a.Open:
	case a.Decision == "allow":
		d.result(c, r, event.CheckResult{Status: event.CheckPassed})
	default:
		d.result(c, r, event.CheckResult{Status: event.CheckFailed, Reason: "the answer was no" + before(": ", event.CutText(a.Message, maxTarget))})
	}
}

// askAcceptance is the kind of a question whether a task is done.
const askAcceptance = "acceptance"

func before(sep, text string) string {
	if text == "" {
		return ""
	}
	return sep + text
}

// refuseCompletion fails the completion with what is known of the checks that don't pass,
// and ends the turn after the last round.
func (d *decision) refuseCompletion(c *Call, all []required) {
	var names []string
	var told strings.Builder
	passed := 0
	for _, r := range all {
		v := d.Turn.verdictOf(r)
		switch {
		case v == nil:
			continue
		case v.Status == event.CheckPassed:
			passed++
			continue
		}
		names = append(names, r.ID+" "+v.Status)
		fmt.Fprintf(&told, "%s (%s): %s%s%s\n", r.ID, r.subject(), v.Status, before(", ", v.Reason), before("\n", strings.TrimRight(v.Output, "\n")))
	}
	rounds := d.Turn.Rounds
	if rounds <= 0 {
		rounds = belay.DefaultRounds
	}
	left := rounds - d.Turn.Red - 1
	p := event.Problem{Class: "conflict", Code: codeChecksFailed, Message: event.CutText(fmt.Sprintf("%d of %d checks pass (%s)", passed, len(all), strings.Join(names, ", ")), maxSaid),
		Hint: fmt.Sprintf("mend what is wrong and call %s again; the checks may fail %s more", c.Name, times(left))}
	if left <= 0 {
		p.Hint = ""
	}
	f := d.failed(c, p)
	failed := f.Data.(event.ToolFailed)
	failed.Output = belay.Content{Text: event.CutText(told.String(), 2*maxSaid)}
	f.Data = failed
	d.record(f)
	if left <= 0 {
		d.fail(belay.Failed, "CHECKS_FAILED", p.Message)
	}
}

// givenNote is what came with the turn for its first request.
func (d *decision) givenNote() string {
	if d.Turn.Step != nil {
		return ""
	}
	return d.Turn.Note
}

// acceptanceNote tells the model, with the first request of a turn, what must hold before
// it counts as done.
func (d *decision) acceptanceNote() string {
	if d.Turn.Step != nil {
		return ""
	}
	var b strings.Builder
	for _, r := range d.required() {
		what := r.subject()
		switch {
		case r.Kind == belay.CheckCommand:
			what += " ends with exit code 0"
		case r.Kind == belay.CheckSchema:
			what += " fits the JSON Schema " + event.CutText(string(r.Schema), maxSaid/2)
		case r.Kind == belay.CheckAgent:
			what = "another agent, which sees what you were told, what you say and what you changed, says: " + what
		case r.Kind == belay.CheckConfidence:
			what += fmt.Sprintf(", your own, is at least %v", r.Min)
		case r.Unchanged:
			what = "unchanged: " + what
		case r.Kind == belay.CheckFiles:
			what = "these exist: " + what
		default:
			what = "a person says yes to: " + what
		}
		b.WriteString("\n- " + what)
	}
	if b.Len() == 0 {
		return ""
	}
	return "This is done only when the following holds. It is checked when you call " + d.rules.completionTool() + ":" + event.CutText(b.String(), 2*maxSaid)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// subject says what a check is about.
func (r required) subject() string {
	what := strings.Join(r.Argv, " ")
	switch r.Kind {
	case belay.CheckFiles:
		what = strings.Join(r.Paths, ", ")
	case belay.CheckSchema:
		what = "the output"
		if r.Path != "" {
			what = r.Path
		}
	case belay.CheckPerson:
		what = r.Prompt
	case belay.CheckAgent:
		what = cmp.Or(r.Prompt, "the objective is met")
	case belay.CheckConfidence:
		what = "output." + r.Field
	}
	return event.CutText(what, maxWord)
}

// lastLines is the end of an output.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > lastCount {
		lines = lines[len(lines)-lastCount:]
	}
	text = strings.Join(lines, "\n")
	for event.TextLen(text) > lastBytes {
		_, rest, more := strings.Cut(text, "\n")
		if !more {
			return event.CutText(text, lastBytes)
		}
		text = rest
	}
	return text
}
