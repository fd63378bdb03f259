package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	usecase "github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/workspace/git"
)

// wiring is what a server asks about one tenant: settings, rules and tools, read
// from the same files and by the same code as for a terminal. One request at a
// time asks: the files are read anew for each, so that what a person changed
// counts from the next turn on. Requests that ask the same in the same moment
// are one: the files are read after all of them came.
type wiring struct {
	mu    sync.Mutex
	fresh together[belay.Settings] // of new sessions
	kept  together[belay.Ref]      // rules
	a     *app
	r     *runtime
	own   string   // the server's workspace
	roots []string // folders that sessions may work in
	dir   string   // of the store
}

var _ usecase.Workspaces = (*wiring)(nil)

// look reads what counts in a workspace now.
func (w *wiring) look(ctx context.Context, ws string) (*place, error) {
	p, err := w.a.workspaces().again(ctx, ws)
	if err == nil {
		w.a.workspaces().settle(p)
	}
	return p, err
}

// Workspace is the real path of a folder below one of the roots.
func (w *wiring) Workspace(_ context.Context, dir string) (string, error) {
	if dir == "" {
		return w.own, nil
	}
	if !filepath.IsAbs(dir) {
		return "", belay.Errorf(belay.CodeWorkspace, "the path isn't absolute").At(dir).WithHint("name the folder from the root on, such as /home/ann/project")
	}
	outside := belay.Errorf(belay.CodeForbidden, "the server's sessions may not work there").At(dir).WithHint("belay serve --root DIR names folders they may work in")
	if !slices.ContainsFunc(w.roots, func(root string) bool { return config.Within(root, config.RealAncestor(filepath.Clean(dir))) }) {
		return "", outside
	}
	ws, err := config.CheckWorkspace(dir)
	if e, ok := errors.AsType[*belay.Error](err); ok { // requests over HTTP have no flags
		return "", belay.Errorf(e.Code, "%s", e.Message).At(dir).WithHint("name a folder that is there, and that the server can read")
	}
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(w.roots, func(root string) bool { return config.Within(root, ws) }) {
		return "", outside
	}
	return ws, config.Apart(ws, w.dir)
}

// Settings are those of a session, or of a new one, with the choices over them.
func (w *wiring) Settings(ctx context.Context, ws string, have *belay.Settings, c usecase.SettingsInput) (belay.Settings, error) {
	request, err := json.Marshal(c)
	if err != nil {
		return belay.Settings{}, err
	}
	given, err := config.GivenIn(request)
	if err != nil {
		return belay.Settings{}, err
	}
	if strings.Contains(c.Provider, ":") || strings.Contains(c.Fallback, config.ScriptedPrefix) {
		return belay.Settings{}, input.At("settings.provider", belay.Errorf(belay.CodeUsage, "a provider is named, files aren't").WithHint("belay serve with BELAY_SCRIPT set plays a file"))
	}
	if have != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		p, err := w.look(ctx, ws)
		if err != nil {
			return belay.Settings{}, err
		}
		got, err := p.Over(*have, given)
		return got.Settings, settingError(err)
	}
	return w.fresh.ask(&w.mu, ws+"\x00"+string(request), func() (belay.Settings, error) {
		return w.newSession(context.WithoutCancel(ctx), ws, given) // others wait for it
	})
}

// newSession is Settings of a new session, under the lock.
func (w *wiring) newSession(ctx context.Context, ws string, given config.Given) (belay.Settings, error) {
	p, err := w.look(ctx, ws)
	if err != nil {
		return belay.Settings{}, err
	}
	got, err := w.a.fresh(p, given)
	if err == nil {
		got.Approvals = belay.ApprovalsWait // there is a way to ask: the owner's token exists
		err = w.a.keepable(ctx, ws, got)
	}
	return got.Settings, settingError(err)
}

// Rules keeps what a turn is decided by.
func (w *wiring) Rules(ctx context.Context, by, ws string, s belay.Settings) (belay.Ref, error) {
	key, err := json.Marshal(s)
	if err != nil {
		return belay.Ref{}, err
	}
	return w.kept.ask(&w.mu, by+"\x00"+ws+"\x00"+string(key), func() (belay.Ref, error) {
		return w.rules(context.WithoutCancel(ctx), by, ws, s) // others wait for it
	})
}

// rules is Rules under the lock.
func (w *wiring) rules(ctx context.Context, by, ws string, s belay.Settings) (belay.Ref, error) {
	p, err := w.look(ctx, ws)
	if err != nil {
		return belay.Ref{}, err
	}
	c := config.Settings{Settings: s}
	d, err := w.r.draft(w.a, p, by, c)
	if err != nil {
		return belay.Ref{}, settingError(err)
	}
	return w.r.keepRules(ctx, c, d)
}

// MayChange reports whether a session may change its workspace, which is made ready.
func (w *wiring) MayChange(ctx context.Context, s *session.State, more []policy.Grant) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.a.workspaces().inRepository(s)
	if err := (&turnRun{a: w.a}).thereAgain(ctx, s); err != nil {
		return false, err
	}
	if _, err := config.CheckWorkspace(s.Workspace); err != nil {
		return false, err
	}
	p, err := w.look(ctx, s.Workspace)
	if err != nil {
		return false, err
	}
	d, err := w.r.draft(w.a, p, w.a.principal(), config.Settings{Settings: s.Settings})
	if err != nil {
		return false, err
	}
	return d.rules.MayChange(more), nil
}

// Tools are the tools of a workspace under the settings.
func (w *wiring) Tools(ctx context.Context, ws string, s belay.Settings) ([]belay.ToolSpec, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return nil, err
	}
	return p.set.Choose(s.Tools), nil
}

// Ground is what calls in a workspace are judged on now.
func (w *wiring) Ground(ctx context.Context, ws string) (*usecase.Ground, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return nil, err
	}
	return w.a.ground(p), nil
}

// Root is the workspace's repository, or itself.
func (w *wiring) Root(ws string) string { return config.RepositoryOf(ws) }

// Planner is what a rollback of a workspace's files is planned with.
func (w *wiring) Planner(ws string) (history.Planner, error) {
	root, err := os.OpenRoot(ws)
	if err != nil {
		return history.Planner{}, belay.Errorf(belay.CodeWorkspace, "it can't be opened: %s", readfile.Reason(err)).At(ws).WithHint("the workspace must be there to take back what was done to it")
	}
	return history.Planner{Root: root, Dir: ws, Keeper: w.a.keeper(), Secrets: w.a.secrets()}, nil
}

// RemoveWorktree takes a session's worktree away.
func (w *wiring) RemoveWorktree(ctx context.Context, t belay.Worktree, force bool) (branchKept bool, err error) {
	return git.NewWorktrees(w.a.Environ).Remove(ctx, t, force)
}

// Secrets are the registered secrets.
func (w *wiring) Secrets() *secret.Scrubber { return w.a.secrets() }

// Clean takes registered secrets out of a text.
func (w *wiring) Clean(text string) string { return w.a.secrets().String(text) }
