package sessions

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
)

// RenameCmd is the command "belay sessions rename".
type RenameCmd struct {
	ID    string   `arg:"" help:"The session, or the beginning of its id."`
	Title []string `arg:"" help:"Its title in lists."`
}

// Run implements command.Command.
func (c *RenameCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	title := strings.TrimSpace(strings.Join(c.Title, " "))
	if title == "" {
		return 0, belay.Errorf(belay.CodeUsage, "the title is empty").WithHint("belay sessions rename %s TEXT", c.ID)
	}
	return label(ctx, a, []string{c.ID}, sessions.LabelSession{Title: title}, "renamed")
}

// TagCmd is the command "belay sessions tag".
type TagCmd struct {
	ID   string   `arg:"" help:"The session, or the beginning of its id."`
	Tags []string `arg:"" help:"The tags: a word each."`
}

// Run implements command.Command.
func (c *TagCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return label(ctx, a, []string{c.ID}, sessions.LabelSession{Tag: c.Tags}, "tagged")
}

// UntagCmd is the command "belay sessions untag".
type UntagCmd struct {
	ID   string   `arg:"" help:"The session, or the beginning of its id."`
	Tags []string `arg:"" help:"The tags."`
}

// Run implements command.Command.
func (c *UntagCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return label(ctx, a, []string{c.ID}, sessions.LabelSession{Untag: c.Tags}, "untagged")
}

// ArchiveCmd is the command "belay sessions archive".
type ArchiveCmd struct {
	ID []string `arg:"" optional:"" help:"The sessions; the last one of this workspace."`
}

// Run implements command.Command.
func (c *ArchiveCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	yes := true
	return label(ctx, a, c.ID, sessions.LabelSession{Archived: &yes}, "archived")
}

// UnarchiveCmd is the command "belay sessions unarchive".
type UnarchiveCmd struct {
	ID []string `arg:"" optional:"" help:"The sessions; the last one of this workspace."`
}

// Run implements command.Command.
func (c *UnarchiveCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return label(ctx, a, c.ID, sessions.LabelSession{Archived: new(bool)}, "unarchived")
}

// label brings sessions a command about their place in lists. All are found
// before the first is changed.
func label(ctx context.Context, a *command.Program, names []string, in sessions.LabelSession, done string) (int, error) {
	return a.Ordering(ctx, func(r *app.Runtime) (int, error) {
		if len(names) == 0 {
			names = []string{""}
		}
		var ids []belay.SessionID
		for _, name := range names {
			id, err := a.SessionID(ctx, r.Store, name)
			if err != nil {
				return 0, err
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			in.Session = id
			res, err := sessions.Label(ctx, r.Call("label_session"), &in)
			if err != nil {
				return 0, err
			}
			out, words := command.Outcome{Session: id, Result: done, Pending: res.Status == app.Accepted}, fmt.Sprintf("%s %s", done, id)
			if out.Pending {
				words = string(id) + ": accepted, not yet handled"
			}
			a.Say(out, "%s", words)
		}
		return belay.ExitOK, nil
	})
}
