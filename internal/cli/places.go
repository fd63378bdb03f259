package cli

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/tool"
	commands "github.com/belay-run/belay/internal/tool/command"
)

// place is a workspace as this process works in it: what counts there, and the
// tools that are made of it.
type place struct {
	*config.Workspace
	set *tool.Set
}

// places are the workspaces that a process has read, each once: a run is decided by
// what was there. They may be asked at the same time.
type places struct {
	input   func(ws string) config.Input               // what one is read with
	builtin []tool.Tool                                // the tools of every one
	book    func(context.Context) (*trust.Book, error) // reads what is trusted

	mu     sync.Mutex
	all    map[string]*place
	here   *place            // the one that was entered last
	origin map[string]string // of worktrees: the workspace they were made of

	bookMu  sync.Mutex
	trusted *trust.Book // as it was read
}

// get is a workspace.
func (ps *places) get(ctx context.Context, ws string) (*place, error) {
	if p := ps.known(ws); p != nil {
		return p, nil
	}
	p, err := ps.furnish(config.Resolve(ctx, ps.input(ws)))
	if err == nil {
		ps.keep(ws, p)
	}
	return p, err
}

// again is a workspace whose settings and rules, and what of them is trusted, are
// read again. Its tools and providers stay what they were.
func (ps *places) again(ctx context.Context, ws string) (*place, error) {
	ps.forgetTrust()
	p := ps.known(ws)
	if p == nil {
		return ps.get(ctx, ws)
	}
	p = &place{p.Again(ctx, ps.input(ws)), p.set}
	ps.keep(ws, p)
	return p, nil
}

// reload reads everything of every workspace anew, and returns what makes it count;
// the first mistake in any is an error.
func (ps *places) reload(ctx context.Context) (use func(), err error) {
	ps.forgetTrust()
	ps.mu.Lock()
	known := slices.Sorted(maps.Keys(ps.all))
	ps.mu.Unlock()
	all := map[string]*place{}
	for _, ws := range known {
		w := config.Resolve(ctx, ps.input(ws))
		if err := w.Check(); err != nil {
			return nil, err
		}
		if all[ws], err = ps.furnish(w); err != nil {
			return nil, err
		}
	}
	return func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		if ps.all = all; ps.here != nil {
			ps.here = all[ps.here.Path()]
		}
	}, nil
}

// furnish makes the tools of a workspace.
func (ps *places) furnish(w *config.Workspace) (*place, error) {
	declared, err := w.Commands()
	if err != nil {
		return nil, err
	}
	set, err := tool.NewSet(slices.Concat(ps.builtin, commands.Tools(declared, w.Env().Vars))...)
	return &place{w, set}, err
}

func (ps *places) known(ws string) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.all[ws]
}

func (ps *places) keep(ws string, p *place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.all == nil {
		ps.all = map[string]*place{}
	}
	ps.all[ws] = p
}

// settle makes a workspace the one that was entered last.
func (ps *places) settle(p *place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.here = p
}

// current is the workspace that was entered last; nil: none was.
func (ps *places) current() *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.here
}

// toolsIn is the engine's look at the workspaces that were read.
func (ps *places) toolsIn(ws string) *tool.Set {
	if p := ps.known(ws); p != nil {
		return p.set
	}
	return nil
}

// setOrigin records that a workspace is a worktree of another: what is trusted
// there is trusted here, as long as its content is the same.
func (ps *places) setOrigin(worktree, ws string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.origin == nil {
		ps.origin = map[string]string{}
	}
	ps.origin[worktree] = ws
}

func (ps *places) originOf(ws string) string {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.origin[ws]
}

// inRepository is setOrigin for a session that exists.
func (ps *places) inRepository(s *session.State) {
	if t := s.Worktree; t != nil {
		if inside, err := filepath.Rel(t.Path, s.Workspace); err == nil {
			ps.setOrigin(s.Workspace, filepath.Join(t.Repository, inside))
		}
	}
}

// trust is what is trusted, read once.
func (ps *places) trust(ctx context.Context) (*trust.Book, error) {
	ps.bookMu.Lock()
	defer ps.bookMu.Unlock()
	if ps.trusted != nil {
		return ps.trusted, nil
	}
	var err error
	ps.trusted, err = ps.book(ctx)
	return ps.trusted, err
}

func (ps *places) forgetTrust() {
	ps.bookMu.Lock()
	defer ps.bookMu.Unlock()
	ps.trusted = nil
}
