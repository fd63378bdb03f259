package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
)

type renameCmd struct {
	ID    string   `arg:"" help:"The session, or the beginning of its id."`
	Title []string `arg:"" help:"What lists call it."`
}

func (c *renameCmd) run(ctx context.Context, a *program) (int, error) {
	title := strings.TrimSpace(strings.Join(c.Title, " "))
	if title == "" {
		return 0, belay.Errorf(belay.CodeUsage, "the title is empty").WithHint("belay sessions rename %s TEXT", c.ID)
	}
	return label(ctx, a, []string{c.ID}, sessions.LabelSession{Title: title}, "renamed")
}

type tagCmd struct {
	ID   string   `arg:"" help:"The session, or the beginning of its id."`
	Tags []string `arg:"" help:"The tags: a word each."`
}

func (c *tagCmd) run(ctx context.Context, a *program) (int, error) {
	return label(ctx, a, []string{c.ID}, sessions.LabelSession{Tag: c.Tags}, "tagged")
}

type untagCmd struct {
	ID   string   `arg:"" help:"The session, or the beginning of its id."`
	Tags []string `arg:"" help:"The tags."`
}

func (c *untagCmd) run(ctx context.Context, a *program) (int, error) {
	return label(ctx, a, []string{c.ID}, sessions.LabelSession{Untag: c.Tags}, "untagged")
}

type archiveCmd struct {
	ID []string `arg:"" help:"The sessions, or the beginnings of their ids."`
}

func (c *archiveCmd) run(ctx context.Context, a *program) (int, error) {
	yes := true
	return label(ctx, a, c.ID, sessions.LabelSession{Archived: &yes}, "archived")
}

type unarchiveCmd struct {
	ID []string `arg:"" help:"The sessions, or the beginnings of their ids."`
}

func (c *unarchiveCmd) run(ctx context.Context, a *program) (int, error) {
	return label(ctx, a, c.ID, sessions.LabelSession{Archived: new(bool)}, "unarchived")
}

// label brings sessions a command about their place in lists. All are found
// before the first is changed.
func label(ctx context.Context, a *program, names []string, in sessions.LabelSession, done string) (int, error) {
	return a.ordering(ctx, func(r *runtime) (int, error) {
		var ids []belay.SessionID
		for _, name := range names {
			s, err := app.FindSession(ctx, r.Store, name)
			if err != nil {
				return 0, err
			}
			ids = append(ids, s.ID)
		}
		for _, id := range ids {
			in.Session = id
			res, err := sessions.Label(ctx, r.Call("label_session"), &in)
			switch {
			case err != nil:
				return 0, err
			case a.JSON:
				a.PrintJSON(told{Session: id, Result: done, Pending: res.Status == app.Accepted})
			case res.Status == app.Accepted:
				fmt.Fprintf(a.Out, "%s: accepted, not yet handled\n", id)
			default:
				fmt.Fprintf(a.Out, "%s %s\n", done, id)
			}
		}
		return belay.ExitOK, nil
	})
}
