package sessions

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// PinCmd is the command "belay pin".
type PinCmd struct {
	Session string   `short:"s" placeholder:"ID" help:"The session; the last one of this workspace."`
	Text    []string `arg:"" help:"What stays in the conversation, word for word."`
}

// Order implements command.Orderer.
func (c *PinCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, err := a.SessionID(ctx, r.Store, c.Session)
	if err != nil {
		return 0, err
	}
	done, err := turns.Pin(ctx, r.Call("pin_context"), &turns.PinContext{Session: id, Text: strings.Join(c.Text, " ")})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, &done.Result, "pinned as "+done.Pin)
}

// UnpinCmd is the command "belay unpin".
type UnpinCmd struct {
	Session string `short:"s" placeholder:"ID" help:"The session; the last one of this workspace."`
	Pin     string `arg:"" help:"The pin, as belay context shows it."`
}

// Order implements command.Orderer.
func (c *UnpinCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, err := a.SessionID(ctx, r.Store, c.Session)
	if err != nil {
		return 0, err
	}
	done, err := turns.Unpin(ctx, r.Call("unpin_context"), &turns.UnpinContext{Session: id, Pin: c.Pin})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, &done.Result, "no longer pinned: "+done.Pin)
}

// ContextCmd is the command "belay context".
type ContextCmd struct {
	ID       string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Step     string `placeholder:"STEP" help:"The request of this step: its id, the beginning of it, or its number in the newest turn."`
	Messages bool   `help:"Print the messages of the request."`
}

// Read implements command.Reader.
func (c *ContextCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	s, err := app.StateOf(ctx, st, id)
	if err != nil {
		return 0, err
	}
	r := a.Reader(st)
	th, err := r.ThreadOf(ctx, s, "")
	if err == nil && !th.Open {
		err = belay.Errorf(belay.CodeBadState, "there is no conversation yet").At(string(id)).WithHint("belay sessions resume %s", id)
	}
	if err != nil {
		return 0, err
	}
	f, err := r.Fresh(ctx, 0)
	if err != nil {
		return 0, err
	}
	x, err := sessions.Context(ctx, r, f, th, sessions.ContextWish{Step: c.Step, Messages: c.Messages})
	if err != nil {
		return 0, err
	}
	return a.Show(x, func() {
		if c.Messages {
			printMessages(a, x.Messages)
			return
		}
		printContext(a, x)
	})
}

func printContext(a *command.Program, x *sessions.ContextUsage) {
	model := strings.Trim(x.Provider+"/"+x.Model, "/")
	if x.Step != "" {
		a.Row("step", "%s", x.Step)
	}
	switch {
	case x.Usable > 0:
		a.Row("used", "%s of %s tokens (%d%%), %s free; %s reads %s", term.Count(x.Used), term.Count(x.Usable), x.Full, term.Count(x.Free), term.Line(model), term.Count(x.Context))
	default:
		a.Row("used", "%s tokens; how many %s reads isn't known", term.Count(x.Used), term.Line(cmp.Or(model, "the model")))
	}
	if u := x.Reported; u.Reported {
		a.Row("reported", "the last answer: %s tokens in its request, %d%% of them cached", term.Count(u.Input), u.Cached*100/max(1, u.Input))
	}
	switch {
	case x.Compacting != "":
		a.Row("compaction", "it is being shortened (%s)", x.Compacting)
	case x.At == 0:
		a.Row("compaction", "off")
	case x.Usable > 0:
		a.Row("compaction", "begins at %d%%", x.At)
	}
	if x.Failed != nil {
		a.Row("failed", "%s (%s)", term.Short(x.Failed.Message, 200), x.Failed.Code)
	}
	fmt.Fprintln(a.Out)
	term.WriteTable(a.Out, x.Kinds, "KIND\tITEMS\tTOKENS\tSHARE", func(k sessions.ContextKind) []any { //nolint:errcheck // nobody is left to tell
		return []any{k.Kind, k.Items, term.Count(k.Tokens), fmt.Sprintf("%d%%", k.Tokens*100/max(1, x.Used))}
	})
	if len(x.Largest) > 0 {
		fmt.Fprintln(a.Out)
		term.WriteTable(a.Out, x.Largest, "LARGEST\tTOKENS\tITEM", func(p sessions.ContextPart) []any { //nolint:errcheck // nobody is left to tell
			return []any{p.Kind, term.Count(p.Tokens), term.Short(p.Name, 80)}
		})
	}
	if len(x.Pins) > 0 {
		fmt.Fprintln(a.Out)
		term.WriteTable(a.Out, x.Pins, "PIN\tTOKENS\tTEXT", func(p sessions.ContextPin) []any { //nolint:errcheck // nobody is left to tell
			return []any{term.Line(p.ID), term.Count(p.Tokens), term.Short(p.Text, 80)}
		})
	}
	if len(x.Boundaries) > 0 {
		fmt.Fprintln(a.Out)
		term.WriteTable(a.Out, x.Boundaries, "SHORTENED\tWHY\tHOW\tBEFORE\tAFTER\tCOST\tAT", func(b sessions.WindowBoundary) []any { //nolint:errcheck // nobody is left to tell
			how, cost := b.Strategy, "-"
			if b.Void {
				how += " (taken back)"
			}
			if b.Cost.MicroUSD > 0 {
				cost = term.Money(b.Cost)
			}
			return []any{fmt.Sprintf("#%d", b.Sequence), b.Trigger, how, term.Count(b.Before), term.Count(b.After), cost, b.Time.Local().Format(time.DateTime)}
		})
	}
	if len(x.Omitted) > 0 {
		fmt.Fprintln(a.Out)
		for _, o := range x.Omitted {
			fmt.Fprintf(a.Out, "left out: %s %s (%s)\n", o.Kind, term.Line(o.Name), o.Reason)
		}
	}
}

// printMessages prints messages as a model was sent them, each part behind its role.
func printMessages(a *command.Program, msgs []belay.Message) {
	for i, m := range msgs {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		for _, p := range m.Flat().Parts {
			switch {
			case p.Call != nil:
				fmt.Fprintf(a.Out, "%s calls %s %s\n", m.Role, term.Line(p.Call.Name), term.Line(string(p.Call.Args)))
			case p.Result != nil:
				fmt.Fprintf(a.Out, "result of %s:\n%s\n", term.Line(p.Result.Name), term.Text(p.Result.Text))
			case p.Image != nil:
				fmt.Fprintf(a.Out, "%s: [%s %s]\n", m.Role, p.Image.Ref.Media, term.Line(p.Image.Name))
			case p.File != nil:
				fmt.Fprintf(a.Out, "%s: [%s %s]\n", m.Role, p.File.Ref.Media, term.Line(p.File.Name))
			case p.Echo != nil:
				fmt.Fprintf(a.Out, "%s: [%d bytes for %s]\n", m.Role, p.Echo.Size(), term.Line(p.Echo.By))
			default:
				fmt.Fprintf(a.Out, "%s: %s\n", m.Role, term.Text(p.Text))
			}
		}
	}
}
