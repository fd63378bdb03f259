package term

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/view"
)

// Result is the last line of a run in JSON.
type Result struct {
	Session   belay.SessionID   `json:"session"`
	Thread    belay.ThreadID    `json:"thread"`
	Turn      belay.TurnID      `json:"turn"`
	Outcome   belay.Outcome     `json:"outcome,omitempty"` // absent: it hasn't ended
	Exit      int               `json:"exit"`
	Summary   string            `json:"summary,omitempty"`
	Output    json.RawMessage   `json:"output,omitempty"`
	NextSteps string            `json:"nextSteps,omitempty"`
	Artifacts []string          `json:"artifacts,omitempty"`
	Code      string            `json:"code,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Changed   []block.File      `json:"changed,omitempty"`
	Cost      *Cost             `json:"cost,omitempty"`
	Budget    *Budget           `json:"budget,omitempty"`    // of the session
	Published []view.Artifact   `json:"published,omitempty"` // belay sessions artifacts prints them
	Call      *Called           `json:"call,omitempty"`      // of belay tool call
	Stats     *event.TurnStats  `json:"stats,omitempty"`
	Context   *belay.ContextUse `json:"context,omitempty"` // what was made of what the model was given, if enough was to know
	Waits     []belay.ActionID  `json:"waits,omitempty"`   // for these answers
	Resume    string            `json:"resume,omitempty"`
	First     string            `json:"hint,omitempty"` // what to do before that

	Questions []*block.Preview `json:"-"` // that wait
	Wall      time.Duration    `json:"-"` // from the beginning of the turn to its end
	Said      bool             `json:"-"` // the summary was shown as an answer
	Hint      string           `json:"-"` // of what else may help than resuming
}

// Print prints how the turn ended and what can be done next.
func (r *Result) Print(e *Env) {
	switch {
	case e.JSON:
		e.PrintJSON(struct {
			Result *Result `json:"result"`
		}{r})
	case r.Outcome != "":
		r.printEnd(e)
	case len(r.Waits) > 0:
		for _, q := range r.Questions {
			fmt.Fprintln(e.Err, "waits for a person:")
			e.ShowQuestion(q)
		}
		fmt.Fprintf(e.Err, "then: %s\n", r.Resume)
	case r.Exit == belay.ExitBlocked:
		fmt.Fprintf(e.Err, "it waits: %s\nthen: %s\n", Line(r.Reason), r.Resume)
	default:
		fmt.Fprintf(e.Err, "stopped on request; continue with: %s\n", r.Resume)
	}
}

// printEnd prints the end of a turn.
func (r *Result) printEnd(e *Env) {
	fmt.Fprintln(e.Err, r.numbers(e))
	if r.Context != nil {
		if share, _ := r.Context.Efficiency(); share < belay.LowUse {
			fmt.Fprintln(e.Err, "context: "+useText(*r.Context))
		}
	}
	shown := r.Said && e.IsTerminal != nil && e.IsTerminal(e.Out) && e.IsTerminal(e.Err)
	if r.Summary != "" && !shown && strings.TrimSpace(r.Summary) != strings.TrimSpace(string(r.Output)) {
		fmt.Fprintln(e.Out, Text(r.Summary))
	}
	for _, p := range r.Published {
		fmt.Fprintf(e.Err, "%s: belay sessions artifacts %s %s%s\n", Line(p.Name), r.Session, Line(Quoted(p.Name)), e.StoreFlag)
	}
	if r.NextSteps != "" {
		fmt.Fprintln(e.Out, "next: "+Text(r.NextSteps))
	}
	if r.Output != nil {
		fmt.Fprintln(e.Out, string(safeJSON(r.Output)))
	}
	if r.Outcome != belay.Completed {
		fmt.Fprintf(e.Err, "%s: %s (%s)\n", r.Outcome, Line(r.Reason), r.Code)
		first := ""
		if r.First != "" {
			first = Line(r.First) + "; then "
		}
		fmt.Fprintf(e.Err, "try: %s%s%s, or belay why %s%s\n", first, r.Resume, r.Hint, r.Session, e.StoreFlag)
	}
}

// Cost is what a turn cost, as far as it is known.
type Cost struct {
	State    string `json:"state"`              // known; estimated: some answers had no usage; at_least: some have no price; unknown: none has
	MicroUSD int64  `json:"microUsd,omitempty"` // millionths of a US dollar
}

// Budget is a session's budget, and what no thread has of it.
type Budget struct {
	Limit belay.Amounts `json:"limit"`
	Left  belay.Amounts `json:"left"`
}

// CostOf is the cost of what a turn used; nil when no tokens were reported, and
// nothing was estimated.
func CostOf(s event.TurnStats) *Cost {
	if !s.Usage.Reported && s.Cost.State() == "unknown" {
		return nil
	}
	return &Cost{State: s.Cost.State(), MicroUSD: s.Cost.MicroUSD}
}

// numbers is the last line: what it took.
func (r *Result) numbers(e *Env) string {
	end := block.End{Outcome: r.Outcome, Wall: r.Wall, Stats: *r.Stats, Files: r.Changed}
	if r.Budget != nil {
		end.Left = BudgetText(r.Budget.Left, r.Budget.Limit)
	}
	return end.Took(e.Look(e.Err))
}

// Called is how a single call ended, as JSON.
type Called struct {
	Tool    string `json:"tool"`
	OK      bool   `json:"ok"`
	Outcome string `json:"outcome,omitempty"` // of a call that gave a result: ok, or exit N of its command
	Class   string `json:"class,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Millis  int64  `json:"ms,omitempty"`
}

// String implements fmt.Stringer.
func (c *Called) String() string {
	if c.Outcome != "" {
		return fmt.Sprintf("%s: %s in %s", c.Tool, c.Outcome, time.Duration(c.Millis)*time.Millisecond)
	}
	return fmt.Sprintf("%s: %s (%s)", c.Tool, c.Message, c.Code)
}
