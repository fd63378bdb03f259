package builtin

import (
	"context"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/app/providers"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/hook"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/search"
	"github.com/belay-run/belay/internal/tool/web"
	"github.com/belay-run/belay/internal/workspace/git"
	"slices"
	"time"
)

// Options are what a program says of its process.
type Options struct {
	Env         config.Env
	Now         func() time.Time
	Secrets     *secret.Scrubber
	Principal   string
	Serves      bool   // it is a tenant of a server
	Tenant      string // empty is the default one
	Interactive bool
	StoreDir    func() (string, error)
	Say         func([]config.Ignored)
	Point       func(kind string)
	Tools       []tool.Tool // besides those of this build

	WrapStore func(store.Store) store.Store // stands between the program and its store; nil is nothing
}

// Tools are the tools of an agent in a workspace; of none, all that an agent can have.
// The list is the documentation.
func Tools(env config.Env, w *config.Workspace) ([]tool.Tool, error) {
	c, err := webConfig(w)
	return slices.Concat(file.Tools(), search.Tools(), exec.Tools(exec.Config{Environ: env.Vars}), web.Tools(c), []tool.Tool{file.Publish(), tool.SkillTool(w.ReadSkill)}, tool.TurnTools(), tool.AgentTools(), tool.TaskTools(), tool.SessionTools()), err
}

// webConfig is what a person has set for the web tools in a workspace.
func webConfig(w *config.Workspace) (web.Config, error) {
	if w == nil {
		return web.Config{Search: web.Search{Engine: web.Searxng}}, nil
	}
	s, err := w.Web()
	return web.Config{Reach: s.Reach, Robots: s.Robots, Search: web.Search{Engine: s.Engine, Base: s.Base(), Key: s.Key}}, err
}

// NewHost makes a process's side of a store of what this build has.
func NewHost(o Options) *host.Host {
	kept := git.Git{Environ: o.Env.Vars}
	confine := Confinement{Env: o.Env, StoreDir: o.StoreDir, Tracked: &git.Tracked{Git: kept}}
	left := &leftovers{env: o.Env, storeDir: o.StoreDir}
	return host.New(host.Config{
		Env: o.Env, Now: o.Now, Principal: o.Principal, Serves: o.Serves, Interactive: o.Interactive,
		Tools: func(w *config.Workspace) ([]tool.Tool, error) {
			own, err := Tools(o.Env, w)
			return append(own, o.Tools...), err
		},
		Commands: Commands(),
		Models:   &providers.Providers{Env: o.Env, Now: o.Now, Secrets: o.Secrets, Cache: lru.New(belay.DefaultCacheMB << 20)}, Shell: exec.OfSession, StoreDir: o.StoreDir, HasStore: HasStore,
		OpenStore: func(ctx context.Context, dir string, make bool) (store.Store, error) {
			st, err := sqlite.Open(ctx, dir, sqlite.Options{Now: o.Now, Tenant: o.Tenant, OrRead: !make})
			if err != nil {
				return nil, err
			}
			if o.WrapStore != nil {
				return o.WrapStore(st), nil
			}
			return st, nil
		},
		Say: o.Say, Boundary: confine.Boundary, Memory: sandbox.Memory, Confine: confine.Confine, Inspect: left.inspect, Check: checkers(o.Env).Ask, Keeper: kept, Git: kept, Keepable: kept.Check,
		Point: o.Point,
	})
}

// HasStore reports whether a folder holds a store, or can't be read.
func HasStore(dir string) bool {
	return sqlite.Exists(dir)
}

// checkers asks what judges calls besides the rules.
func checkers(env config.Env) *hook.Runner {
	vars := []string{}
	for _, name := range []string{"HOME", "LANG", "TMPDIR"} {
		if v := env.Get(name); v != "" {
			vars = append(vars, name+"="+v)
		}
	}
	return hook.New(vars)
}
