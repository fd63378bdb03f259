package builtin

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/workspace/git"
)

// leftovers looks after what programs leave in a workspace that git or another
// program obeys. What is moved aside lies in the store's folder.
type leftovers struct {
	env      config.Env
	storeDir func() (string, error)

	mu      sync.Mutex
	watches map[string]*git.Watch // by workspace
}

func (l *leftovers) inspect(ctx context.Context, workspace string, at effect.Moment, may core.May) (all []effect.Leftover) {
	w := l.watch(workspace)
	if w == nil {
		return nil
	}
	p := git.Program{Leave: may.Leave, History: may.History, Held: may.Held}
	var moved []git.Moved
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

var _ effect.Inspect = (*leftovers)(nil).inspect

// watch is this process's look at a workspace; nil where there is no store.
func (l *leftovers) watch(workspace string) *git.Watch {
	dir, err := l.storeDir()
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watches == nil {
		l.watches = map[string]*git.Watch{}
	}
	w := l.watches[workspace]
	if w == nil {
		w = git.Git{Environ: l.env.Vars}.NewWatch(workspace, filepath.Join(config.RealAncestor(dir), "aside"))
		l.watches[workspace] = w
	}
	return w
}
