package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
)

// conclude prints how the turn ended and what can be done next, and returns the
// exit code.
func (w *turnRun) conclude(ctx context.Context, err error) (int, error) {
	ctx = context.WithoutCancel(ctx)
	left := errors.Is(err, errTerminated)
	if err != nil && !left && !errors.Is(err, term.ErrNobody) {
		if !w.a.JSON {
			fmt.Fprintf(w.a.Err, "nothing that was recorded is lost; continue with: %s\n", w.resumeCommand())
		}
		return 0, err
	}
	if t, err := w.state(ctx); err == nil && t != nil && t.Turn == nil && t.Prev != nil && !w.watch.End.Over && w.watch.Told == nil && !left {
		// The turn had ended, and only what follows from that was left to do.
		if err := w.ended(ctx, t.Prev.Turn); err != nil {
			return 0, err
		}
	}
	r := &term.Result{Session: w.session, Thread: w.thread, Turn: w.turn, Resume: w.resumeCommand()}
	switch {
	case w.watch.End.Over:
		w.over(ctx, r)
	case left:
		r.Exit, r.Reason = belay.ExitCancelled, "the process was asked to end"
	default:
		if err := w.waits(ctx, r); err != nil {
			return 0, err
		}
	}
	r.Print(&w.a.Env)
	return r.Exit, nil
}

// maxUseRead is how many facts are read at most to tell what was made of what the model
// was given; belay stats reads more.
const maxUseRead = 20_000

// over completes the result of a turn that has ended.
func (w *turnRun) over(ctx context.Context, r *term.Result) {
	e := w.watch.End
	r.Outcome, r.Exit, r.Code, r.Reason, r.NextSteps = e.Outcome, e.Outcome.ExitCode(), e.Code, e.Reason, e.Next
	r.Artifacts, r.Published, r.Stats = e.Artifacts, e.Published, &e.Stats
	if w.strict && e.Outcome == belay.Completed && e.Stats.Denied > 0 {
		r.Exit = belay.ExitDenied
	}
	r.Changed, r.Wall, r.Said = e.Files, e.Wall, e.Said
	r.Cost = term.CostOf(e.Stats)
	if e.To < maxUseRead {
		if u, err := app.UseOfTurn(ctx, w.Store, w.thread, r.Turn); err == nil && u.Given >= belay.LeastGiven {
			r.Context = &u
		}
	}
	if s, err := app.StateOf(ctx, w.Store, w.session); err == nil && s.Budget.Limit != (belay.Amounts{}) {
		r.Budget = &term.Budget{Limit: s.Budget.Limit, Left: s.Budget.Own()}
	}
	if w.single && e.Outcome == belay.Completed {
		r.Call, r.Exit = e.Call, exitOf(e.Call)
	}
	r.Summary = w.whole(ctx, e.Summary, "summary")
	if e.Output != nil {
		r.Output = json.RawMessage(w.whole(ctx, *e.Output, "output"))
		if !json.Valid(r.Output) {
			r.Output = nil
		}
	}
	if e.Outcome == belay.Completed {
		r.Resume = ""
	}
	if e.Outcome == belay.OverBudget {
		r.Hint = " with a higher --max-cost or --max-tokens"
		if r.Budget != nil {
			r.Hint = fmt.Sprintf(" after belay budget set %s +AMOUNT", w.session)
		}
	}
	switch e.Code { // the same request would end the same way
	case "CONTEXT_FULL":
		r.First = fmt.Sprintf("belay context %s shows what fills it, belay compact %s shortens it", w.session, w.session)
		r.Hint = " --model NAME that reads more"
	case "CONTEXT_TOO_SMALL":
		r.Hint = " --model NAME that reads more"
	case "MODEL_FAILED", "RETRY_BUDGET", "TIME_LIMIT":
		r.First = e.Hint
	}
}

// waits completes the result of a turn that a process leaves behind, and that waits
// for a person.
func (w *turnRun) waits(ctx context.Context, r *term.Result) error {
	open, _, err := w.Runtime.Questions(ctx, w.session, 0)
	if err != nil {
		return err
	}
	if len(open) == 0 && w.watch.Told != nil {
		return w.watch.Told
	}
	if t, err := w.state(ctx); err == nil && t != nil && t.Pause != nil && len(open) == 0 {
		r.Exit, r.Reason = belay.ExitBlocked, "its task is paused; belay tasks resume lets it go on"
		return nil
	}
	if t, err := w.state(ctx); err == nil && t != nil && t.Paused() != nil && len(open) == 0 { // its agent
		r.Exit, r.Reason = belay.ExitBlocked, cmp.Or(t.Turn.Why, "its agent is paused; belay agents resume lets it go on")
		return nil
	}
	if len(open) == 0 {
		return belay.Errorf(belay.CodeInternal, "the turn rests and hasn't ended").At(string(w.session)).WithHint("%s", w.resumeCommand())
	}
	r.Exit = belay.ExitBlocked
	for _, o := range open {
		r.Waits = append(append(r.Waits, o.ID), o.Alike...)
		if w.a.JSON {
			continue
		}
		q, err := w.Question(ctx, o.Thread, o.ID)
		if err != nil {
			return err
		}
		if q == nil { // it was answered meanwhile
			continue
		}
		r.Questions = append(r.Questions, q)
	}
	return nil
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
