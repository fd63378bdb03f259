package permission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/transfer/bundle"
)

// recordedCalls selects the recorded calls of a command.
type recordedCalls struct {
	Of  string `arg:"" optional:"" name:"session" help:"A session, the beginning of its id, or a bundle that belay export wrote; without it, the sessions of this workspace."`
	All bool   `short:"a" help:"Every session of the store."`

	Last int `placeholder:"N" help:"Only the newest so many decisions."`
}

type policyReplayCmd struct {
	recordedCalls
	ruleFiles
	Counts bool `short:"c" help:"Only how many verdicts change, not each."`
}

// replayed is a changed verdict, as JSON.
type replayed struct {
	Session belay.SessionID `json:"session"`
	Call    belay.CallID    `json:"call"`
	Event   belay.EventID   `json:"event"`
	policies.Row
	Cause string `json:"cause"` // rules, or build
	What  string `json:"what"`  // the call in a few words
}

// replaySum is what came of all, as JSON.
type replaySum struct {
	policies.Tally
	Rows []policies.Counted `json:"rows"`
}

func (c *policyReplayCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	r, err := newReplay(ctx, a, c.recordedCalls, c.ruleFiles)
	if err != nil {
		return 0, err
	}
	defer r.close()
	t, err := policies.Replay(ctx, r.decisions, r.gates, func(ch *policies.Change) {
		if !c.Counts {
			printChange(&a.Env, ch)
		}
	})
	if err != nil {
		return 0, err
	}
	return printReplay(&a.Env, t)
}

// replay is recorded decisions, and the rules that they are held against.
type replay struct {
	decisions policies.Decisions
	gates     *policies.Gates
	close     func() error // what they are read from was only read
}

// newReplay opens what calls are read from. Rules that can't be read are said before
// anything else is done.
func newReplay(ctx context.Context, a *command.Program, of recordedCalls, files ruleFiles) (*replay, error) {
	if of.Of != "" && of.All {
		return nil, belay.Errorf(belay.CodeUsage, "--all takes every session, and one is named").At(term.Line(of.Of)).WithHint("leave one of them out")
	}
	if of.Last < 0 {
		return nil, belay.Errorf(belay.CodeUsage, "%d isn't a number of decisions", of.Last).At("--last").WithHint("--last 200")
	}
	instead, err := files.read(a)
	if err != nil {
		return nil, err
	}
	without := a.Reader(nil).Call("replay_policy")
	if _, err := policies.NewGates(without, instead).Of(ctx, ""); err != nil {
		return nil, err
	}
	if of.Of != "" {
		if info, err := os.Stat(a.Environment().Abs(of.Of)); err == nil && info.Mode().IsRegular() {
			return replayBundle(ctx, a, of.Of, policies.NewGates(without, instead))
		}
	}
	st, err := a.Open(ctx, false)
	if err != nil {
		return nil, err
	}
	r := &replay{close: st.Close}
	call := a.Reader(st).Call("replay_policy")
	r.gates = policies.NewGates(call, instead)
	if r.decisions, err = decisionsOf(ctx, a, call, of); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return r, nil
}

func replayBundle(ctx context.Context, a *command.Program, name string, gates *policies.Gates) (*replay, error) {
	file, err := command.OpenFile(a, name)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Open(ctx, file.File, file.Size, a.Secrets())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &replay{policies.DecisionsIn(b.Manifest.Runtime, b.Manifest.Session, b.Facts(ctx), b.Get), gates, file.Close}, nil
}

// decisionsOf are those of the sessions that are named.
func decisionsOf(ctx context.Context, a *command.Program, c *app.Call, of recordedCalls) (policies.Decisions, error) {
	if of.Of != "" {
		id, err := a.SessionID(ctx, c.Store, of.Of)
		if err != nil {
			return nil, err
		}
		return policies.DecisionsOf(ctx, c, policies.Range{Session: id, Last: of.Last})
	}
	if of.All {
		return policies.DecisionsOf(ctx, c, policies.Range{Last: of.Last})
	}
	ws, err := a.WorkspaceDir()
	if err != nil {
		return nil, err
	}
	return policies.DecisionsOf(ctx, c, policies.Range{Workspace: ws, Last: of.Last})
}

func printChange(e *term.Env, ch *policies.Change) {
	k := ch.Case
	what := policies.About(k)
	because := ""
	if ch.Cause == "build" {
		because = "  (this build reads the call otherwise; the rules of its day say so too)"
	}
	e.Say(replayed{Session: k.IDs.Session, Call: k.IDs.Call, Event: k.Event, Row: ch.Row, Cause: ch.Cause, What: what},
		"%s → %s  %s %s  %s%s", ch.Old, ch.New, term.Line(ch.Tool), term.Line(what), term.Line(string(k.IDs.Call)), because)
}

func printReplay(e *term.Env, t *policies.Tally) (int, error) {
	return e.Show(replaySum{*t, t.Rows()}, func() {
		rows := t.Rows()
		if len(rows) > 0 {
			fmt.Fprintf(e.Out, "\n%6s  %s\n", "COUNT", "TOOL: OLD (RULE) → NEW (RULE)")
		}
		for _, r := range rows {
			fmt.Fprintf(e.Out, "%6d  %s: %s (%s) → %s (%s)\n", r.Count, term.Line(r.Tool), r.Old, term.Line(r.OldRule), r.New, term.Line(r.NewRule))
		}
		if t.Others > 0 {
			fmt.Fprintf(e.Out, "%6d  in other rows\n", t.Others)
		}
		fmt.Fprintf(e.Out, "%s: %d changed, %d the same, %d the same by another rule, %d not judged again\n", term.Plural(t.Decisions, "decision"), t.Changed, t.Same, t.OtherRule, t.Unjudged())
		for _, why := range slices.Sorted(maps.Keys(t.Lost)) {
			fmt.Fprintf(e.Out, "  %d not judged again: %s\n", t.Lost[why], policies.WhyLost(why))
		}
	})
}
