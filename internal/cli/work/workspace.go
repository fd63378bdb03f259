package work

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/workspace/git"
)

// claim settles how the session uses its workspace, before anything of it runs:
// this process becomes its owner, and the session the workspace's writer if its
// rules allow changes and no other session is one. The thread, if there
// is one, has the allowances that were given by answers. The draft is what it went by.
func (w *turnRun) claim(ctx context.Context, c config.Settings, t *app.ThreadState) (use belay.WorkspaceUse, d app.Draft, err error) {
	epoch, release, err := w.Engine.Own(ctx, w.session)
	if err != nil {
		return use, d, err
	}
	p, err := w.a.Again(ctx, w.workspace) // it may have waited for another process
	if err == nil {
		d, err = w.a.Draft(ctx, p, w.a.Principal(), c)
	}
	if err != nil {
		return use, d, errors.Join(err, release())
	}
	w.release = release
	if t == nil {
		t = new(app.ThreadState)
	}
	if !d.Rules.MayChange(t.Grants) {
		return use, d, nil
	}
	use, other, err := w.ClaimWriter(ctx, w.session, epoch, w.workspace, c.Share)
	if other != nil {
		w.sayReadsOnly(other)
	}
	return use, d, err
}

// mayChange is the use of a session that is the workspace's writer, or one of them.
func mayChange(c config.Settings) belay.WorkspaceUse {
	if c.Share {
		return belay.WorkspaceUse{Use: belay.UseShared}
	}
	return belay.WorkspaceUse{Use: belay.UseWriter}
}

// sayReadsOnly prints why a session only reads, and the alternatives.
func (w *turnRun) sayReadsOnly(other *store.Writer) {
	w.say("reads only: session %s (process %d on %s) writes in %s", other.Session, other.Owner.PID, other.Owner.Host, other.Path)
	w.say("to write: belay run --worktree, or --share; or belay run --session %s TEXT%s when that one has ended", w.session, w.a.StoreFlag)
}

// say keeps a line for the beginning of what is shown.
func (w *turnRun) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// reclaim is claim for a session that exists. Its threads know the use before
// one of them is driven.
func (w *turnRun) reclaim(ctx context.Context, s *app.SessionState, c config.Settings) error {
	t, err := w.state(ctx)
	if err != nil {
		return err
	}
	use, _, err := w.claim(ctx, c, t)
	if err != nil {
		return err
	}
	if use != s.Use || w.join != nil { // another process may have settled it since
		if err := w.Store.Enqueue(ctx, w.a.Order(w.session, w.session.Stream(), belay.UseWorkspace{Use: &use})); err != nil {
			return err
		}
	}
	return w.Engine.Settle(ctx, w.session)
}

// inWorktree makes a session in a worktree of its own: first the session, whose
// facts name the worktree, then that.
func (w *turnRun) inWorktree(ctx context.Context, ws string, create belay.CreateSession) error {
	trees := git.Git{Environ: w.a.Environ}
	store, err := w.a.StoreDir()
	if err != nil {
		return err
	}
	t, inside, err := trees.PlanWorktree(ctx, ws, config.RealAncestor(store), string(w.session))
	if err != nil {
		return err
	}
	create.Workspace = inside
	if changed, err := trees.Changes(ctx, t.Repository); err == nil && len(changed) > 0 {
		w.say("%s of %s that are in no commit are not in the worktree", term.Plural(len(changed), "change"), t.Repository)
	}
	for _, c := range []belay.Command{create, belay.UseWorkspace{Worktree: &t}} {
		if _, err := w.Engine.Submit(ctx, w.a.Order(w.session, w.session.Stream(), c)); err != nil {
			return err
		}
	}
	if err := trees.AddWorktree(ctx, t); err != nil {
		t.Removed = true
		_, told := w.Engine.Submit(ctx, w.a.Order(w.session, w.session.Stream(), belay.UseWorkspace{Worktree: &t}))
		return errors.Join(err, told)
	}
	w.say("in a worktree of %s, on branch %s", t.Repository, t.Branch)
	w.workspace = create.Workspace
	w.a.TrustAsOrigin(w.workspace, ws)
	_, err = w.a.At(ctx, w.workspace)
	return err
}
