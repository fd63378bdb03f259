package sessions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/workspace/git"
)

// WorktreeCmd is the command "belay worktree".
type WorktreeCmd struct {
	List   worktreeListCmd   `cmd:"" default:"withargs" help:"List the worktrees that sessions of this workspace have."`
	Remove worktreeRemoveCmd `cmd:"" help:"Remove a session's worktree; its branch stays if something was committed to it."`
}

type worktreeListCmd struct {
	All bool `short:"a" help:"Of all workspaces."`
}

// treeRow is a worktree in a list, as JSON.
type treeRow struct {
	Session belay.SessionID  `json:"session"`
	Agent   belay.SubagentID `json:"subagentId,omitempty"` // whose it is; empty: the session's
	Name    string           `json:"name,omitempty"`       // of the agent
	belay.Worktree
	Status  string `json:"status"`
	Changes int    `json:"changes"` // files that are in no commit; -1 is unknown
}

func (c *worktreeListCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	ws := ""
	if !c.All {
		var err error
		if ws, err = a.WorkspaceDir(); err != nil {
			return 0, err
		}
	}
	if err := view.Catchup(ctx, st); err != nil {
		return 0, err
	}
	all, err := view.In(ctx, st, view.TreesList, 0)
	if err != nil {
		return 0, err
	}
	var rows []treeRow
	for _, s := range all {
		if ws != "" && !s.WorksIn(ws) {
			continue
		}
		if s.Worktree != nil {
			rows = append(rows, treeRow{Session: s.ID, Worktree: *s.Worktree, Status: term.StatusOf(s), Changes: -1})
		}
		for _, t := range s.Trees {
			rows = append(rows, treeRow{Session: s.ID, Agent: t.Agent, Name: t.Name, Worktree: t.Worktree, Status: t.Status, Changes: -1})
		}
	}
	rows = slices.DeleteFunc(rows, func(l treeRow) bool { return l.Removed })
	for i := range rows {
		if files, err := (git.Git{Environ: a.Environ}).Changes(ctx, rows[i].Path); err == nil {
			rows[i].Changes = len(files)
		}
	}
	return term.PrintRows(&a.Env, rows, "", "OF\tSTATUS\tBRANCH\tUNCOMMITTED\tPATH", func(l treeRow) []any {
		uncommitted := "unknown"
		if l.Changes >= 0 {
			uncommitted = term.Plural(l.Changes, "file")
		}
		of := string(l.Session)
		if l.Agent != "" {
			of = string(l.Agent) + " (" + term.Line(l.Name) + ")"
		}
		return []any{of, l.Status, term.Line(l.Branch), uncommitted, term.Line(l.Path)}
	})
}

type worktreeRemoveCmd struct {
	ID    string `arg:"" help:"The session or the agent, or the beginning of its id."`
	Force bool   `help:"Also when it holds changes that are in no commit: they are lost."`
}

func (c *worktreeRemoveCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	row, err := c.find(ctx, r.Store)
	if err != nil {
		return 0, err
	}
	if row.Path == "" || row.Removed {
		return 0, belay.Errorf(belay.CodeBadState, "the session has no worktree").At(string(row.Session)).WithHint("belay worktree list")
	}
	kept, err := removeWorktree(ctx, a, r, &row, c.Force)
	if err != nil {
		return 0, err
	}
	return a.Show(struct {
		Session belay.SessionID  `json:"session"`
		Agent   belay.SubagentID `json:"subagentId,omitempty"`
		belay.Worktree
		BranchKept bool `json:"branchKept"`
	}{row.Session, row.Agent, row.Worktree, kept}, func() {
		fmt.Fprintf(a.Out, "removed %s\n", term.Line(row.Path))
		if kept {
			fmt.Fprintf(a.Out, "branch %s stays in %s\n", term.Line(row.Branch), term.Line(row.Repository))
		}
	})
}

// find is the worktree of a session or of an agent.
func (c *worktreeRemoveCmd) find(ctx context.Context, st store.Store) (treeRow, error) {
	if !strings.HasPrefix(c.ID, belay.PrefixSubagent+"_") {
		s, err := app.FindSession(ctx, st, c.ID)
		if err != nil {
			return treeRow{}, err
		}
		row := treeRow{Session: s.ID}
		if s.Worktree != nil {
			row.Worktree = *s.Worktree
		}
		return row, nil
	}
	if err := view.Catchup(ctx, st); err != nil {
		return treeRow{}, err
	}
	all, err := view.In(ctx, st, view.TreesList, 0)
	if err != nil {
		return treeRow{}, err
	}
	var found []treeRow
	for _, s := range all {
		for _, t := range s.Trees {
			if view.Named(string(t.Agent), c.ID) {
				found = append(found, treeRow{Session: s.ID, Agent: t.Agent, Worktree: t.Worktree})
			}
		}
	}
	if len(found) != 1 {
		return treeRow{}, belay.Errorf(belay.CodeNotFound, "%d agents with a worktree have an id that begins with %s", len(found), c.ID).WithHint("belay worktree list --all")
	}
	return found[0], nil
}

// removeWorktree removes a worktree and records it. A session that is driven keeps its
// own, and those of its agents.
func removeWorktree(ctx context.Context, a *command.Program, r *app.Runtime, row *treeRow, force bool) (kept bool, err error) {
	id := row.Session
	owner, err := r.Store.OwnerOf(ctx, id)
	if err != nil {
		return false, err
	}
	if owner != nil {
		return false, &store.OwnedError{Session: id, Owner: *owner}
	}
	if kept, err = r.Workspaces.RemoveWorktree(ctx, row.Worktree, force); err != nil {
		return false, err
	}
	row.Removed = true
	_, err = r.Engine.Submit(ctx, a.Order(id, id.Stream(), belay.UseWorkspace{Worktree: &row.Worktree, Subagent: row.Agent}))
	return kept, err
}
