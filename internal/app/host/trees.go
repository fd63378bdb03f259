package host

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/workspace/git"
)

// trees makes worktrees for sub-agents, as belay run --worktree does for sessions.
type trees struct{ h *Host }

var _ effect.Trees = trees{}

func (t trees) git() git.Git { return git.Git{Environ: t.h.c.Env.Vars} }

func (t trees) Plan(ctx context.Context, workspace, id string) (belay.Worktree, string, error) {
	store, err := t.h.c.StoreDir()
	if err != nil {
		return belay.Worktree{}, "", err
	}
	return t.git().PlanWorktree(ctx, workspace, config.RealAncestor(store), id)
}

func (t trees) Add(ctx context.Context, w belay.Worktree) error { return t.git().AddWorktree(ctx, w) }

func (t trees) Settle(ctx context.Context, w belay.Worktree, keep bool) (belay.Worktree, belay.Diffstat, []string, error) {
	return t.git().SettleWorktree(ctx, w, keep)
}
