package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/retention"
	"github.com/belay-run/belay/internal/view"
)

// OutputsCmd is the command "belay outputs".
type OutputsCmd struct {
	List   outputsListCmd   `cmd:"" use:"list_outputs" default:"withargs" help:"List what programs and tools printed that is kept beside the log."`
	Expire outputsExpireCmd `cmd:"" help:"Let outputs go: what the model was shown of them stays."`
}

type outputsListCmd struct {
	ID  string `arg:"" optional:"" help:"Only of this session."`
	All bool   `help:"Those that have expired too."`
}

func (c *outputsListCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	in := &storage.ListOutputs{All: c.All}
	if c.ID != "" {
		s, err := app.FindSession(ctx, st, c.ID)
		if err != nil {
			return 0, err
		}
		in.Session = s.ID
	}
	all, err := storage.Outputs(ctx, a.Reader(st).Call("list_outputs"), in)
	if err != nil {
		return 0, err
	}
	if a.JSON {
		for _, o := range all {
			a.PrintJSON(o)
		}
		return belay.ExitOK, nil
	}
	type named struct {
		out retention.Output
		by  retention.Naming
	}
	var rows []named
	for _, o := range all {
		for _, n := range o.Named {
			rows = append(rows, named{o, n})
		}
	}
	return term.PrintRows(&a.Env, rows, "no outputs are kept", "OUTPUT\tBYTES\tRECORDED\tSESSION\tFROM\tSTATE", func(n named) []any {
		return []any{n.out.Digest.Short(), n.out.Bytes, n.by.Recorded.Local().Format("2006-01-02 15:04"), n.by.Session, printer(n.by), expiredText(n.by.Expired)}
	})
}

// printer is what printed an output, as another command takes it.
func printer(n retention.Naming) string {
	return cmp.Or(string(n.Process), strings.TrimSpace(n.Tool+" "+string(n.Call)))
}

func expiredText(e *retention.Expired) string {
	if e == nil {
		return "kept"
	}
	text := "expired " + e.When.Local().Format("2006-01-02 15:04") + ": " + cmp.Or(e.Why, e.Reason)
	if e.By != "" {
		text += ", by " + e.By
	}
	return term.Line(text)
}

type outputsExpireCmd struct {
	Which     []string `arg:"" optional:"" help:"Outputs by the beginning of their digest, or by the process or the call that printed them."`
	OlderThan string   `placeholder:"AGE" help:"Those that were recorded longer ago: 30d, 2w."`
	MaxSize   string   `placeholder:"SIZE" help:"The oldest, when all take more: 2GB."`
	Message   string   `short:"m" placeholder:"TEXT" help:"Why."`
	DryRun    bool     `help:"Only list what would be removed."`
}

func (c *outputsExpireCmd) Keep(ctx context.Context, a *command.Program, db store.Admin) (int, error) {
	p, err := outputPolicy(c.OlderThan, c.MaxSize)
	if err != nil {
		return 0, err
	}
	if len(c.Which) == 0 && p == (retention.Outputs{}) {
		return 0, belay.Errorf(belay.CodeUsage, "nothing says which outputs").WithHint("name some, or use --older-than or --max-size; belay outputs list")
	}
	all, err := retention.List(ctx, db, "")
	if err != nil {
		return 0, err
	}
	chosen, err := c.choose(p.Due(a.Now(), all), all)
	if err != nil {
		return 0, err
	}
	done, err := storage.ExpireOutputs(ctx, db, a.Principal(), chosen, c.DryRun)
	if err != nil {
		return 0, err
	}
	printExpiry(&a.Env, done)
	return belay.ExitOK, view.Catchup(ctx, db)
}

// choose adds the outputs that are named to those that are due.
func (c *outputsExpireCmd) choose(chosen []retention.OutputChoice, all []retention.Output) ([]retention.OutputChoice, error) {
	for _, name := range c.Which {
		found := retention.Find(all, name)
		if len(found) == 0 {
			return nil, belay.Errorf(belay.CodeNotFound, "no output has this name").At(name).WithHint("belay outputs list --all")
		}
		for _, o := range found {
			if o.Gone() {
				return nil, belay.Errorf(belay.CodeExpired, "the output is not kept any more: %s", expiredText(o.Named[0].Expired)).At(name).WithHint("belay outputs list --all")
			}
			if !slices.ContainsFunc(chosen, func(c retention.OutputChoice) bool { return c.Digest == o.Digest }) {
				chosen = append(chosen, retention.OutputChoice{Output: o, Why: c.Message})
			}
		}
	}
	return chosen, nil
}

func outputPolicy(olderThan, maxSize string) (p retention.Outputs, err error) {
	if olderThan != "" {
		var age time.Duration
		if age, err = retention.ParseAge(olderThan); err != nil {
			return p, err
		}
		p.Age = belay.Duration(age)
	}
	if maxSize != "" {
		p.Bytes, err = retention.ParseSize(maxSize)
	}
	return p, err
}

func printExpiry(e *term.Env, done *storage.Expiry) {
	e.Show(done, func() {
		printLetGo(e, done)
		if !done.DryRun {
			fmt.Fprintf(e.Out, "removed %s of outputs, %s\n", term.Plural(done.Contents, "content"), retention.Size(done.Bytes))
		}
	})
}

func printLetGo(e *term.Env, done *storage.Expiry) {
	verb := "expired"
	if done.DryRun {
		verb = "would expire"
	}
	for _, o := range done.Outputs {
		if o.Kept != "" {
			fmt.Fprintf(e.Out, "kept %s: %s\n", o.Digest.Short(), term.Line(o.Kept))
			continue
		}
		fmt.Fprintf(e.Out, "%s %s, %s: %s\n", verb, o.Digest.Short(), retention.Size(o.Bytes), term.Line(o.Why))
	}
	term.Some(e.Out, done.Left, "content", "of expired outputs to be removed later: new, and sessions run")
}
