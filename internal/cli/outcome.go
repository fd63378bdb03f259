package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/cli/term"
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

	questions []*Question // that wait
	hint      string      // of what else may help than resuming
}

// print prints how the turn ended and what can be done next.
func (r *result) print(e *term.Env) {
	switch {
	case e.JSON:
		e.PrintJSON(struct {
			Result *result `json:"result"`
		}{r})
	case r.Outcome != "":
		r.printEnd(e)
	case len(r.Waits) > 0:
		for _, q := range r.questions {
			fmt.Fprintf(e.Err, "waits for a person: %s\n", q.asks())
			for _, l := range q.ways(e) {
				fmt.Fprintf(e.Err, "  %s\n", l)
			}
		}
		fmt.Fprintf(e.Err, "then: %s\n", r.Resume)
	default:
		fmt.Fprintf(e.Err, "stopped on request; continue with: %s\n", r.Resume)
	}
}

// printEnd prints the end of a turn.
func (r *result) printEnd(e *term.Env) {
	fmt.Fprintln(e.Err, r.numbers())
	if r.Summary != "" && strings.TrimSpace(r.Summary) != strings.TrimSpace(string(r.Output)) {
		fmt.Fprintln(e.Out, term.Text(r.Summary))
	}
	for _, p := range r.Published {
		fmt.Fprintf(e.Err, "published %s, version %s: belay sessions artifacts %s %s%s\n", term.Line(p.Name), term.Line(p.Version), r.Session, term.Line(term.Quoted(p.Name)), e.StoreFlag)
	}
	if r.NextSteps != "" {
		fmt.Fprintln(e.Out, "next: "+term.Text(r.NextSteps))
	}
	if r.Output != nil {
		fmt.Fprintln(e.Out, string(term.SafeJSON(r.Output)))
	}
	if r.Outcome != belay.Completed {
		fmt.Fprintf(e.Err, "%s: %s (%s)\n", r.Outcome, term.Line(r.Reason), r.Code)
		fmt.Fprintf(e.Err, "try: %s%s, or belay why %s%s\n", r.Resume, r.hint, r.Session, e.StoreFlag)
	}
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
func (r *result) numbers() string {
	s := fmt.Sprintf("%s in %s: %s, %s", r.Outcome, term.Millis(r.Stats.ActiveMS), term.Plural(r.Stats.Steps, "step"), term.Plural(r.Stats.Calls, "call"))
	if n := r.Stats.Denied; n > 0 {
		s += fmt.Sprintf(", %d denied", n)
	}
	if u := r.Stats.Usage; u.Reported {
		s += fmt.Sprintf(", %s tokens read, %s written, cost %s", term.Count(u.Input), term.Count(u.Output), term.Money(r.Stats.Cost))
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
