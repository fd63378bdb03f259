package host

import (
	"context"
	"encoding/json"
	"errors"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/workspace/git"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Workspaces is what use cases ask of workspaces: settings, rules and tools, read
// from the same files and by the same code as for a terminal. One request at a
// time asks: the files are read anew for each, so that what a person changed
// counts from the next turn on.
type Workspaces struct {
	mu    sync.Mutex
	host  *Host
	set   *tool.Set
	own   string   // the workspace where none is named
	roots []string // folders that sessions may work in

	stamps map[string]belay.Digest // of the agents of workspaces, as they were recorded
}

var _ app.Workspaces = (*Workspaces)(nil)

// WorkIn names the workspace where a caller names none, and the folders that sessions
// may work in.
func (w *Workspaces) WorkIn(own string, roots []string) { w.own, w.roots = own, roots }

// look reads what counts in a workspace now.
func (w *Workspaces) look(ctx context.Context, ws string) (*app.Place, error) {
	p, err := w.host.Again(ctx, ws)
	if err == nil {
		w.host.settle(p)
	}
	return p, err
}

// Workspace is the real path of a folder below one of the roots.
func (w *Workspaces) Workspace(_ context.Context, dir string) (string, error) {
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
	store, err := w.host.c.StoreDir()
	if err != nil {
		return "", err
	}
	return ws, config.Apart(ws, store)
}

// Settings are those of a session, or of a new one, with the choices over them.
func (w *Workspaces) Settings(ctx context.Context, ws string, have *belay.Settings, c app.SettingsInput) (belay.Settings, error) {
	request, err := json.Marshal(c)
	if err != nil {
		return belay.Settings{}, err
	}
	given, err := config.GivenIn(request)
	if err != nil {
		return belay.Settings{}, err
	}
	if w.host.c.Serves && (strings.Contains(c.Provider, ":") || strings.Contains(c.Fallback, config.ScriptedPrefix)) {
		return belay.Settings{}, input.At("settings.provider", belay.Errorf(belay.CodeUsage, "a provider is named, files aren't").WithHint("belay serve with BELAY_SCRIPT set plays a file"))
	}
	if c.Approvals == string(belay.ApprovalsAsk) {
		return belay.Settings{}, input.At("settings.approvals", belay.Errorf(belay.CodeUsage, "questions are asked at a terminal by belay run alone").WithHint("wait, or deny"))
	}
	got, err := w.settings(ctx, ws, have, given)
	if err == nil && have == nil {
		if c.Approvals == "" {
			got.Approvals = belay.ApprovalsWait // there is a way to ask: the owner's token exists
		}
		err = settingError(w.host.Keepable(ctx, ws, got)) // behind the lock: git takes its time
	}
	return got.Settings, err
}

// settings are those of a session, or of a new one, with what was given over them.
func (w *Workspaces) settings(ctx context.Context, ws string, have *belay.Settings, given config.Given) (got config.Settings, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	switch {
	case err != nil:
		return got, err
	case have != nil:
		got, err = w.host.Over(p, *have, given)
	default:
		got, err = w.host.Fresh(p, given)
	}
	return got, settingError(err)
}

// SettingRows lists the settings of a new session in a workspace.
func (w *Workspaces) SettingRows(ctx context.Context, ws string) ([]app.SettingRow, []app.IgnoredRow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return nil, nil, err
	}
	l, err := w.host.Layers(p, nil)
	if err != nil {
		return nil, nil, err
	}
	rows, err := l.CheckedRows()
	if err != nil {
		return nil, nil, err
	}
	for i := range rows {
		rows[i].Value = w.Secrets().String(rows[i].Value)
	}
	var ignored []app.IgnoredRow
	for _, i := range l.Ignored() {
		ignored = append(ignored, app.IgnoredRow{What: i.What, Where: i.Where, Why: i.Why})
	}
	return rows, ignored, nil
}

// KeepRules keeps rules beside the person's other ones.
func (w *Workspaces) KeepRules(ctx context.Context, name string, content []byte, ready func() error) (string, bool, error) {
	return w.host.c.Env.KeepRules(ctx, name, content, ready)
}

// Rules keeps what a turn is decided by.
func (w *Workspaces) Rules(ctx context.Context, by, ws string, s belay.Settings) (belay.Ref, error) {
	return w.rules(ctx, by, ws, config.Settings{Settings: s}, func(*app.Draft) {})
}

// CompletionRules keeps what a turn is decided by that checks whether a task is done.
func (w *Workspaces) CompletionRules(ctx context.Context, by, ws string, s belay.Settings) (belay.Ref, error) {
	direct := config.Settings{Settings: s}
	direct.Provider, direct.Model, direct.BaseURL, direct.Fallback = config.Direct, "", "", nil
	direct.Completion, direct.Instructions, direct.Agent = belay.CompletionRequired, "none", ""
	return w.rules(ctx, by, ws, direct, func(d *app.Draft) {
		if s.Provider == "" || s.Provider == config.Direct {
			return
		}
		a := thread.Asked{Provider: s.Provider, Model: s.Model, BaseURL: s.BaseURL, Fallback: s.Fallback, Routes: w.host.c.Models.Routes(d.Place.Workspace, s)}
		a.Profile.Priced = limitsMoney(config.Settings{Settings: s})
		d.Rules.Asked = &a
	})
}

func (w *Workspaces) rules(ctx context.Context, by, ws string, c config.Settings, complete func(*app.Draft)) (belay.Ref, error) {
	if err := w.host.Learn(ctx, ws); err != nil { // before the lock: servers take their time
		return belay.Ref{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return belay.Ref{}, err
	}
	if c.Quotas, err = p.Workspace.Quotas(); err != nil {
		return belay.Ref{}, err
	}
	d, err := w.host.Draft(ctx, p, by, c)
	if err != nil {
		return belay.Ref{}, settingError(err)
	}
	complete(&d)
	return w.host.KeepRules(ctx, c, d)
}

// Agents are the agents of a workspace that are kept as files.
func (w *Workspaces) Agents(ctx context.Context, ws string) (*agentfile.Catalog, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return nil, err
	}
	return w.host.AgentFiles(ctx, p)
}

// AgentRecords are what is known of agents besides their files.
func (w *Workspaces) AgentRecords(ctx context.Context) (*config.TrustBook, map[string]view.AgentRuns, error) {
	return w.host.AgentRecords(ctx)
}

// CheckHealth runs the health command of an agent.
func (w *Workspaces) CheckHealth(ctx context.Context, ws string, a *agentfile.Agent) (sick string, err error) {
	return w.host.CheckHealth(ctx, ws, a)
}

// WatchAgents records what has changed of the agents in the workspaces that were used.
func (w *Workspaces) WatchAgents(ctx context.Context) error {
	h := w.host
	h.mu.Lock()
	used := h.places.Keys()
	h.mu.Unlock()
	slices.Sort(used)
	if !slices.Contains(used, w.own) {
		used = append(used, w.own)
	}
	var all error
	for _, ws := range used {
		all = errors.Join(all, w.watch(ctx, ws))
	}
	return all
}

func (w *Workspaces) watch(ctx context.Context, ws string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.host.At(ctx, ws)
	if err != nil {
		return err
	}
	stamp := p.AgentStamp(ctx)
	if w.stamps[ws] == stamp {
		return nil
	}
	if _, err := w.host.agents(ctx, p); err != nil {
		return err
	}
	if w.stamps == nil {
		w.stamps = map[string]belay.Digest{}
	}
	w.stamps[ws] = stamp
	return nil
}

// Skills are those that agents of a workspace can read.
func (w *Workspaces) Skills(ctx context.Context, ws string) (*agentfile.Skills, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return nil, err
	}
	return p.Skills(ctx)
}

// Quotas are those that work in a workspace spends from.
func (w *Workspaces) Quotas(ctx context.Context, ws string) ([]belay.Quota, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.host.At(ctx, ws)
	if err != nil {
		return nil, err
	}
	return p.Workspace.Quotas()
}

// Counts is how the model of the settings counts tokens, as far as it is known.
func (w *Workspaces) Counts(ctx context.Context, ws string, s belay.Settings) tokens.Profile {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.host.At(ctx, ws)
	if err != nil {
		return tokens.Profile{}
	}
	return w.host.Models().Counts(p.Workspace, s)
}

// MayChange reports whether a session may change its workspace, which is made ready.
func (w *Workspaces) MayChange(ctx context.Context, s *session.State, more []policy.Grant) (bool, error) {
	if err := w.host.RestoreWorktree(ctx, s); err != nil { // before the lock: git takes its time
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := config.CheckWorkspace(s.Workspace); err != nil {
		return false, err
	}
	p, err := w.look(ctx, s.Workspace)
	if err != nil {
		return false, err
	}
	c := config.Settings{Settings: s.Settings}
	d, err := w.host.Draft(ctx, p, w.host.c.Principal, c)
	if err != nil && c.Agent != "" { // its file has gone, say: what began goes on, and without it may change no less
		c.Agent = ""
		d, err = w.host.Draft(ctx, p, w.host.c.Principal, c)
	}
	if err != nil {
		return false, err
	}
	return d.Rules.MayChange(more), nil
}

// Tools are the tools of a workspace under the settings.
func (w *Workspaces) Tools(ctx context.Context, ws string, s belay.Settings) ([]belay.ToolSpec, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return nil, err
	}
	return offered(p, s), nil
}

// Ground is what calls in a workspace are judged on now.
func (w *Workspaces) Ground(ctx context.Context, ws string) (*app.Ground, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.look(ctx, ws)
	if err != nil {
		return nil, err
	}
	return w.host.Ground(p), nil
}

// Root is the workspace's repository, or itself.
func (w *Workspaces) Root(ws string) string { return config.RepositoryOf(ws) }

// ReadAgain reads what is there for the workspaces that were used so far, and returns
// what makes it count. Turns that run keep what they began with.
func (w *Workspaces) ReadAgain(ctx context.Context) (use func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.host
	if _, err := h.c.Env.Catalog(); err != nil {
		return nil, err
	}
	h.forgetTrust()
	h.mu.Lock()
	used := h.places.Keys()
	h.mu.Unlock()
	slices.Reverse(used) // the one used last is put last
	read := newPlaces()
	for _, ws := range used {
		c := config.Resolve(ctx, h.Input(ws))
		if err := c.Check(); err != nil {
			return nil, err
		}
		p, err := h.furnish(ctx, c)
		if err != nil {
			return nil, err
		}
		read.Put(ws, p, 1)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		h.mu.Lock()
		if h.places = read; h.here != nil {
			h.here, _ = read.Get(h.here.Path())
		}
		h.mu.Unlock()
		h.c.Models.Forget()
	}, nil
}

// RestoreWorktree makes a session's worktree again when its folder has gone; one
// that was removed stays so. What is trusted in its repository is trusted there.
func (h *Host) RestoreWorktree(ctx context.Context, s *session.State) error {
	t := s.Worktree
	if t == nil {
		return nil
	}
	if t.Removed {
		return belay.Errorf(belay.CodeWorkspace, "the session's worktree was removed").At(t.Path).WithHint("belay run in %s; what was committed is on branch %s", t.Repository, t.Branch)
	}
	if inside, err := filepath.Rel(t.Path, s.Workspace); err == nil {
		h.TrustAsOrigin(s.Workspace, filepath.Join(t.Repository, inside))
	}
	if _, err := os.Lstat(t.Path); err == nil {
		return nil
	}
	return git.Git{Environ: h.c.Env.Vars}.AddWorktree(ctx, *t)
}

// Keepable refuses a workspace that a session's settings want kept and that can't be.
func (h *Host) Keepable(ctx context.Context, workspace string, c config.Settings) error {
	if c.Snapshot != "git" {
		return nil
	}
	return h.c.Keepable(ctx, workspace)
}

// Planner is what a rollback of a workspace's files is planned with.
func (w *Workspaces) Planner(ws string) (history.Planner, error) {
	root, err := files.OpenRoot(ws)
	if err != nil {
		return history.Planner{}, belay.Errorf(belay.CodeWorkspace, "it can't be opened: %s", files.Reason(err)).At(ws).WithHint("the workspace must be there to take back what was done to it")
	}
	h := w.host
	return history.Planner{Root: root, Dir: ws, Keeper: h.c.Keeper, Secrets: h.c.Models.Secrets}, nil
}

// PrepareChild implements app.Workspaces.
func (w *Workspaces) PrepareChild(ctx context.Context, parent belay.Ref, in tool.SpawnArgs, left belay.Limits, depth int, c *belay.SpawnSubagent) error {
	problem, err := w.host.perform.PrepareChild(ctx, parent, in, left, depth, c)
	if problem != nil {
		return problem.Refusal()
	}
	return err
}

// RemoveWorktree takes a session's worktree away.
func (w *Workspaces) RemoveWorktree(ctx context.Context, t belay.Worktree, force bool) (branchKept bool, err error) {
	return git.Git{Environ: w.host.c.Env.Vars}.RemoveWorktree(ctx, t, force)
}

// Ground is what calls in a workspace are judged on. It says which rules don't count.
func (h *Host) Ground(p *app.Place) *app.Ground {
	return &app.Ground{Workspace: p.Path(), Home: h.c.Env.Get("HOME"), Tools: p.Tools, Shadowed: p.Shadowed(), Level: h.c.Boundary().Level,
		Rules: p.RulesWith(h.c.Say)}
}

// Secrets are the registered secrets.
func (w *Workspaces) Secrets() *secret.Scrubber { return w.host.c.Models.Secrets }
