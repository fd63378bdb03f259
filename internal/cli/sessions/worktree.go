package sessions

import (
	"context"
	"fmt"

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
	Session belay.SessionID `json:"session"`
	belay.Worktree
	Status  string `json:"status"`
	Changes int    `json:"changes"` // files that are in no commit; -1 is unknown
}

func (c *worktreeListCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	var f view.Filter
	if !c.All {
		ws, err := a.WorkspaceDir()
		if err != nil {
			return 0, err
		}
		f.Workspace = ws
	}
	if err := view.Catchup(ctx, st); err != nil {
		return 0, err
	}
	all, err := view.Sessions(ctx, st, f)
	if err != nil {
		return 0, err
	}
	var rows []treeRow
	for _, s := range all {
		if s.Worktree == nil || s.Worktree.Removed {
			continue
		}
		l := treeRow{Session: s.ID, Worktree: *s.Worktree, Status: term.StatusOf(s), Changes: -1}
		if files, err := (git.Git{Environ: a.Environ}).Changes(ctx, l.Path); err == nil {
			l.Changes = len(files)
		}
		rows = append(rows, l)
	}
	return term.PrintRows(&a.Env, rows, "", "SESSION\tSTATUS\tBRANCH\tUNCOMMITTED\tPATH", func(l treeRow) []any {
		uncommitted := "unknown"
		if l.Changes >= 0 {
			uncommitted = term.Plural(l.Changes, "file")
		}
		return []any{l.Session, l.Status, term.Line(l.Branch), uncommitted, term.Line(l.Path)}
	})
}

type worktreeRemoveCmd struct {
	ID    string `arg:"" help:"The session, or the beginning of its id."`
	Force bool   `help:"Also when it holds changes that are in no commit: they are lost."`
}

func (c *worktreeRemoveCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	s, err := app.FindSession(ctx, r.Store, c.ID)
	if err != nil {
		return 0, err
	}
	id := s.ID
	t, kept, err := removeWorktree(ctx, a, r, id, c.Force)
	if err != nil {
		return 0, err
	}
	return a.Show(struct {
		Session belay.SessionID `json:"session"`
		belay.Worktree
		BranchKept bool `json:"branchKept"`
	}{id, t, kept}, func() {
		fmt.Fprintf(a.Out, "removed %s\n", term.Line(t.Path))
		if kept {
			fmt.Fprintf(a.Out, "branch %s stays in %s\n", term.Line(t.Branch), term.Line(t.Repository))
		}
	})
}

// removeWorktree removes a session's worktree and records it. A session that is
// driven keeps its worktree.
func removeWorktree(ctx context.Context, a *command.Program, r *app.Runtime, id belay.SessionID, force bool) (t belay.Worktree, kept bool, err error) {
	s, err := app.StateOf(ctx, r.Store, id)
	if err != nil {
		return t, false, err
	}
	if s.Worktree == nil || s.Worktree.Removed {
		return t, false, belay.Errorf(belay.CodeBadState, "the session has no worktree").At(string(id)).WithHint("belay worktree list")
	}
	owner, err := r.Store.OwnerOf(ctx, id)
	if err != nil {
		return t, false, err
	}
	if owner != nil {
		return t, false, &store.OwnedError{Session: id, Owner: *owner}
	}
	t = *s.Worktree
	if kept, err = r.Workspaces.RemoveWorktree(ctx, t, force); err != nil {
		return t, false, err
	}
	t.Removed = true
	_, err = r.Engine.Submit(ctx, a.Order(id, id.Stream(), belay.UseWorkspace{Worktree: &t}))
	return t, kept, err
}
