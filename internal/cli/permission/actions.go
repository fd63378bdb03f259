package permission

import (
	"cmp"
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/view"
)

// ActionsCmd is the command "belay actions".
type ActionsCmd struct {
	Limit int `default:"100" placeholder:"N" help:"List so many at most: those with the nearest deadlines (default 100)."`
}

// Order implements command.Orderer.
func (c *ActionsCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	if c.Limit < 1 {
		return 0, belay.Errorf(belay.CodeUsage, "%d is no number of questions", c.Limit).At("--limit").WithHint("--limit 100")
	}
	return listActions(ctx, a, r, c.Limit)
}

// mostListed is how many questions are listed when nobody says.
const mostListed = 100

// listActions prints the questions that wait for a person, the oldest first.
func listActions(ctx context.Context, a *command.Program, r *app.Runtime, most int) (int, error) {
	all, waiting, err := r.Questions(ctx, "", most)
	if err != nil {
		return 0, err
	}
	if waiting > most {
		fmt.Fprintf(a.Err, "%d questions wait; --limit N lists more of them than %d\n", waiting, most)
	}
	return term.PrintRows(&a.Env, all, "nothing waits", "ACTION\tKIND\tSESSION\tASKED\tWHAT", func(o app.Action) []any {
		what := o.Shown
		if what == "" {
			what = o.Prompt
		}
		if n := len(o.Alike); n > 0 {
			what = fmt.Sprintf("%d × %s", n+1, what)
		}
		if l := o.Lineage; len(l) > 0 {
			what = cmp.Or(l[len(l)-1].Name, l[len(l)-1].Agent) + ": " + what
		}
		return []any{view.Tail(string(o.ID)), o.Kind, view.Tail(string(o.Session)), term.Ago(a.Now().Sub(o.Asked)) + " ago", term.Short(term.Line(what), 80)}
	})
}

// findAction returns a question by its id, or one that waits by a beginning of its id or
// its last digits.
func findAction(ctx context.Context, r *app.Runtime, id string) (belay.ActionID, belay.ThreadID, error) {
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return "", "", err
	}
	found, err := view.OpenActionsNamed(ctx, r.Store, id)
	if err != nil {
		return "", "", err
	}
	switch {
	case len(found) == 1:
		return found[0].ID, found[0].Thread, nil
	case len(found) > 1:
		return "", "", belay.Errorf(belay.CodeUsage, "%d questions that wait have an id that begins or ends so", len(found)).At(id).WithHint("belay actions lists them")
	}
	at, err := view.ActionByID(ctx, r.Store, id)
	if err == nil && string(at.ID) != id || belay.CodeOf(err) == belay.CodeNotFound {
		err = belay.Errorf(belay.CodeUnknownAction, "nothing in this store waits under this id").At(id).WithHint("belay actions lists what waits")
	}
	return at.ID, at.Thread, err
}
