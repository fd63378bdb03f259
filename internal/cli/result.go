package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/view"
)

// result is the last line of a run in JSON.
type result struct {
	Session   belay.SessionID  `json:"session"`
	Thread    belay.ThreadID   `json:"thread"`
	Turn      belay.TurnID     `json:"turn"`
	Outcome   belay.Outcome    `json:"outcome,omitempty"` // absent: it hasn't ended
	Exit      int              `json:"exit"`
	Summary   string           `json:"summary,omitempty"`
	Output    json.RawMessage  `json:"output,omitempty"`
	NextSteps string           `json:"nextSteps,omitempty"`
	Artifacts []string         `json:"artifacts,omitempty"`
	Code      string           `json:"code,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Changed   []changedFile    `json:"changed,omitempty"`
	Cost      *cost            `json:"cost,omitempty"`
	Published []view.Artifact  `json:"published,omitempty"` // belay sessions artifacts prints them
	Call      *called          `json:"call,omitempty"`      // of belay tool call
	Stats     *event.TurnStats `json:"stats,omitempty"`
	Waits     []belay.ActionID `json:"waits,omitempty"` // for these answers
	Resume    string           `json:"resume,omitempty"`
}

// conclude prints how the turn ended and what can be done next, and returns the
// exit code.
func (w *turnRun) conclude(ctx context.Context, err error) (int, error) {
	ctx = context.WithoutCancel(ctx)
	left := errors.Is(err, errTerminated)
	if err != nil && !left && !errors.Is(err, errNobody) {
		if !w.a.JSON {
			fmt.Fprintf(w.a.Err, "nothing that was recorded is lost; continue with: %s\n", w.resumeCommand())
		}
		return 0, err
	}
	e := w.watch.end
	r := result{Session: w.session, Thread: w.thread, Turn: w.turn}
	switch {
	case e.over:
		return w.over(ctx, r, e)
	case left:
		r.Exit, r.Reason = belay.ExitCancelled, "the process was asked to end"
	default:
		return w.waits(ctx, r)
	}
	r.Resume = w.resumeCommand()
	if w.a.JSON {
		w.printResult(r)
	} else {
		fmt.Fprintf(w.a.Err, "stopped on request; continue with: %s\n", r.Resume)
	}
	return r.Exit, nil
}

// over prints the end of a turn.
func (w *turnRun) over(ctx context.Context, r result, e turnEnd) (int, error) {
	r.Outcome, r.Exit, r.Code, r.Reason, r.NextSteps = e.outcome, e.outcome.ExitCode(), e.code, e.reason, e.next
	r.Artifacts, r.Published, r.Stats = e.artifacts, e.published, &e.stats
	if w.strict && e.outcome == belay.Completed && e.stats.Denied > 0 {
		r.Exit = belay.ExitDenied
	}
	r.Changed = w.counted(ctx, e.files)
	r.Cost = costOf(e.stats)
	if w.single && e.outcome == belay.Completed {
		r.Call, r.Exit = e.call, e.call.exit()
	}
	r.Summary = w.whole(ctx, e.summary, "summary")
	if e.output != nil {
		r.Output = json.RawMessage(w.whole(ctx, *e.output, "output"))
		if !json.Valid(r.Output) {
			r.Output = nil
		}
	}
	if e.outcome != belay.Completed {
		r.Resume = w.resumeCommand()
	}
	if w.a.JSON {
		w.printResult(r)
		return r.Exit, nil
	}
	fmt.Fprintln(w.a.Err, numbers(e, r))
	if r.Summary != "" && strings.TrimSpace(r.Summary) != strings.TrimSpace(string(r.Output)) {
		fmt.Fprintln(w.a.Out, term.Text(r.Summary))
	}
	for _, p := range r.Published {
		fmt.Fprintf(w.a.Err, "published %s, version %s: belay sessions artifacts %s %s%s\n", term.Line(p.Name), term.Line(p.Version), w.session, term.Line(term.Quoted(p.Name)), w.a.storeFlag())
	}
	if r.NextSteps != "" {
		fmt.Fprintln(w.a.Out, "next: "+term.Text(r.NextSteps))
	}
	if r.Output != nil {
		fmt.Fprintln(w.a.Out, string(term.SafeJSON(r.Output)))
	}
	if e.outcome != belay.Completed {
		fmt.Fprintf(w.a.Err, "%s: %s (%s)\n", e.outcome, term.Line(e.reason), e.code)
		more := ""
		if e.code == effect.CodeContextExceeded { // the same request would end the same way
			more = fmt.Sprintf(" --model NAME that reads more, belay fork %s --turn N", w.session)
		}
		fmt.Fprintf(w.a.Err, "try: %s%s, or belay why %s%s\n", r.Resume, more, w.session, w.a.storeFlag())
	}
	return r.Exit, nil
}

// cost is what a turn cost, as far as it is known.
type cost struct {
	State    string `json:"state"`              // known; at_least: some answers have no price; unknown: none has
	MicroUSD int64  `json:"microUsd,omitempty"` // millionths of a US dollar
}

// costOf is the cost of what a turn used; nil when no tokens were reported.
func costOf(s event.TurnStats) *cost {
	if !s.Usage.Reported {
		return nil
	}
	return &cost{State: s.Cost.State(), MicroUSD: s.Cost.MicroUSD}
}

// numbers is the last line: what it took.
func numbers(e turnEnd, r result) string {
	s := fmt.Sprintf("%s in %s: %s, %s", e.outcome, term.Millis(e.stats.ActiveMS), term.Plural(e.stats.Steps, "step"), term.Plural(e.stats.Calls, "call"))
	if n := e.stats.Denied; n > 0 {
		s += fmt.Sprintf(", %d denied", n)
	}
	if u := e.stats.Usage; u.Reported {
		s += fmt.Sprintf(", %s tokens read, %s written, cost %s", term.Count(u.Input), term.Count(u.Output), term.Money(e.stats.Cost))
	}
	var changed []string
	for _, f := range r.Changed {
		changed = append(changed, f.said())
	}
	if len(changed) > 0 {
		s += "; changed " + strings.Join(changed, ", ")
	}
	return s
}

// waits prints what a process leaves behind that waits for a person.
func (w *turnRun) waits(ctx context.Context, r result) (int, error) {
	open, err := openActions(ctx, w.Store, w.thread)
	if err != nil {
		return 0, err
	}
	if len(open) == 0 && w.watch.told != nil {
		return 0, w.watch.told
	}
	if len(open) == 0 {
		return 0, belay.Errorf(belay.CodeInternal, "the turn rests and hasn't ended").At(string(w.session)).WithHint("%s", w.resumeCommand())
	}
	r.Exit, r.Resume = belay.ExitBlocked, w.resumeCommand()
	for _, o := range open {
		r.Waits = append(r.Waits, o.ID)
	}
	if w.a.JSON {
		w.printResult(r)
		return r.Exit, nil
	}
	for _, o := range open {
		seen, err := requestOf(ctx, w.Store, w.thread.Stream(), o.ID)
		if err != nil {
			return 0, err
		}
		if seen == nil { // it was answered meanwhile
			continue
		}
		fmt.Fprintf(w.a.Err, "waits for a person: %s\n", seen.asks(o.Fact.Prompt.Text))
		for _, g := range seen.gives() {
			fmt.Fprintf(w.a.Err, "  %s\n", g)
		}
		for _, c := range seen.howToAnswer() {
			fmt.Fprintf(w.a.Err, "  %s%s\n", c, w.a.storeFlag())
		}
	}
	fmt.Fprintf(w.a.Err, "then: %s\n", r.Resume)
	return r.Exit, nil
}

func (w *turnRun) printResult(r result) {
	w.a.PrintJSON(struct {
		Result result `json:"result"`
	}{r})
}

// whole is the full text of a content. What a fact cuts is in the arguments of
// the completion, under the field's name.
func (w *turnRun) whole(ctx context.Context, c belay.Content, field string) string {
	if c.Ref == nil {
		return c.Text
	}
	b, err := w.Store.Get(ctx, c.Ref.Digest)
	if err != nil {
		return c.Text
	}
	if c.Ref.Media != "application/json" {
		return string(b)
	}
	var args map[string]json.RawMessage
	var s string
	switch {
	case json.Unmarshal(b, &args) != nil || args[field] == nil:
		return c.Text
	case json.Unmarshal(args[field], &s) == nil && field == "summary":
		return s
	}
	return string(args[field])
}
