package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/workspace/git"
)

// claim settles how the session uses its workspace, before anything of it runs:
// this process becomes its owner, and the session the workspace's writer if its
// rules allow changes and no other session is one. more are allowances that
// were given by answers. The draft is what it went by.
func (w *turnRun) claim(ctx context.Context, c config.Settings, more []policy.Grant) (use belay.WorkspaceUse, d drafted, err error) {
	epoch, release, err := w.Engine.Own(ctx, w.session)
	if err != nil {
		return use, d, err
	}
	p, err := w.a.workspaces().again(ctx, w.workspace) // it may have waited for another process
	if err == nil {
		d, err = w.draft(w.a, p, w.a.principal(), c)
	}
	if err != nil {
		return use, d, errors.Join(err, release())
	}
	w.release = release
	if !d.rules.MayChange(more) {
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
func (w *turnRun) reclaim(ctx context.Context, s *session.State, c config.Settings) error {
	var more []policy.Grant
	if t, err := w.state(ctx); err != nil {
		return err
	} else if t != nil {
		more = t.Grants
	}
	use, _, err := w.claim(ctx, c, more)
	if err != nil {
		return err
	}
	if use != s.Use || w.join != nil { // another process may have settled it since
		if err := w.Store.Enqueue(ctx, w.a.order(w.session, w.session.Stream(), belay.UseWorkspace{Use: &use})); err != nil {
			return err
		}
	}
	return w.Engine.Settle(ctx, w.session)
}

// inWorktree makes a session in a worktree of its own: first the session, whose
// facts name the worktree, then that.
func (w *turnRun) inWorktree(ctx context.Context, ws string, create belay.CreateSession) error {
	trees := git.NewWorktrees(w.a.Environ)
	root, base, err := trees.Base(ctx, ws)
	if err != nil {
		return err
	}
	store, err := w.a.storeDir()
	if err != nil {
		return err
	}
	id := string(w.session)
	t := belay.Worktree{Repository: root, Path: filepath.Join(config.RealAncestor(store)+"-worktrees", id), Branch: "belay/" + id[len(id)-12:], Base: base}
	inside, err := filepath.Rel(root, ws)
	if err != nil {
		return err
	}
	create.Workspace = filepath.Join(t.Path, inside)
	if changed, err := trees.Changes(ctx, root); err == nil && len(changed) > 0 {
		w.say("%s of %s that are in no commit are not in the worktree", term.Plural(len(changed), "change"), root)
	}
	for _, c := range []belay.Command{create, belay.UseWorkspace{Worktree: &t}} {
		if _, err := w.Engine.Submit(ctx, w.a.order(w.session, w.session.Stream(), c)); err != nil {
			return err
		}
	}
	if err := trees.Add(ctx, t); err != nil {
		t.Removed = true
		_, told := w.Engine.Submit(ctx, w.a.order(w.session, w.session.Stream(), belay.UseWorkspace{Worktree: &t}))
		return errors.Join(err, told)
	}
	w.say("in a worktree of %s, on branch %s", root, t.Branch)
	w.workspace = create.Workspace
	w.a.workspaces().setOrigin(w.workspace, ws)
	_, err = w.a.workspaces().get(ctx, w.workspace)
	return err
}

// thereAgain makes a session's worktree again when its folder has gone; one
// that was removed stays so.
func (w *turnRun) thereAgain(ctx context.Context, s *session.State) error {
	t := s.Worktree
	if t == nil {
		return nil
	}
	if t.Removed {
		return belay.Errorf(belay.CodeWorkspace, "the session's worktree was removed").At(t.Path).WithHint("belay run in %s; what was committed is on branch %s", t.Repository, t.Branch)
	}
	if _, err := os.Lstat(t.Path); err == nil {
		return nil
	}
	return git.NewWorktrees(w.a.Environ).Add(ctx, *t)
}

// drafted is a draft and what it was made under.
type drafted struct {
	rules *thread.Rules
	under *config.Rules
	place *place
}

// draft is what a turn's rules say of tools and allowances, under the rules that
// count in a workspace. by is who gives the allowances. The set is not kept yet.
func (r *runtime) draft(a *app, p *place, by string, c config.Settings) (drafted, error) {
	under, err := a.rulesOf(p.Workspace)
	if err != nil {
		return drafted{}, err
	}
	if err := under.Permit(c.Settings, ""); err != nil {
		return drafted{}, err
	}
	rules := &thread.Rules{Settings: c.Settings, Tools: p.set.Choose(c.Tools), System: systemPrompt, Workspace: p.Path(), Output: c.Schema, Boundary: a.boundary(),
		UntrustedWorkspace: under.Untrusted, Home: a.Getenv("HOME"), Shadowed: p.Shadowed(), Routes: a.providers().routes(p, c.Settings)}
	if under.Raw != nil {
		rules.Govern(under.Ref(), under.Set)
	}
	askOutput(rules)
	for _, name := range c.Allow {
		rules.Grants = append(rules.Grants, policy.Grant{Tool: name, Tier: policy.TierUser, Kind: "rule", By: by, Dialect: policy.DialectOf(c.Shell)})
	}
	return drafted{rules, under, p}, nil
}

// askOutput tells the model of the output that the turn asks for: not every
// provider can hold it to a schema.
func askOutput(r *thread.Rules) {
	if r.Output == nil {
		return
	}
	where := "Put it into the field output of complete_task."
	if r.Answer() != nil {
		where = "The answer that ends your work must be this value and nothing else."
	}
	r.System += "\n# Output\nThis task asks for an output: one value of JSON that fits the schema below. " + where + "\n" + string(r.Output) + "\n"
}
