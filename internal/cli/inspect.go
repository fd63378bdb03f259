package cli

import (
	"context"
	"path/filepath"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/workspace/gitsafe"
)

// inspect looks after what programs leave in a workspace that git or another
// program obeys. What is moved aside lies in the store's folder.
func (a *app) inspect(ctx context.Context, workspace string, at effect.Moment, may core.May) (all []effect.Leftover) {
	w := a.watch(workspace)
	if w == nil {
		return nil
	}
	p := gitsafe.Program(may)
	var moved []gitsafe.Moved
	switch at {
	case effect.ProgramBegins:
		moved = w.Begin(ctx, p)
	case effect.FilesWritten:
		w.Wrote(may.Leave...)
	default:
		moved = w.Look(ctx, p, at == effect.ProgramEnded)
	}
	for _, m := range moved {
		all = append(all, effect.Leftover(m))
	}
	return all
}

var _ effect.Inspect = (*app)(nil).inspect

// watch is this process's look at a workspace; nil where there is no store.
func (a *app) watch(workspace string) *gitsafe.Watch {
	dir, err := a.storeDir()
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watches == nil {
		a.watches = map[string]*gitsafe.Watch{}
	}
	w := a.watches[workspace]
	if w == nil {
		w = gitsafe.Git{Environ: a.Environ}.NewWatch(workspace, filepath.Join(config.RealAncestor(dir), "aside"))
		a.watches[workspace] = w
	}
	return w
}
