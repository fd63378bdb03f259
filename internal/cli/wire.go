package cli

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strconv"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	usecase "github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/hook"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/read"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/plan"
	"github.com/belay-run/belay/internal/tool/search"
	"github.com/belay-run/belay/internal/view"
)

//go:embed system.md
var systemPrompt string

// builtin lists the tools of an agent. The list is the documentation.
func (a *app) builtin() []tool.Tool {
	return slices.Concat(file.Tools(), search.Tools(), exec.Tools(exec.Config{Environ: a.Environ}), []tool.Tool{file.Publish()}, plan.Tools(), a.extra)
}

// checkers asks what judges calls besides the rules. Who wrote a checker into the
// rules may name a server of this machine.
func (a *app) checkers() *hook.Runner {
	env := []string{}
	for _, name := range []string{"HOME", "LANG", "TMPDIR"} {
		if v := a.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return &hook.Runner{Env: env, Client: netdial.Client(netdial.Rules{Loopback: true, Private: true})}
}

// secrets removes secret values from everything that leaves: the environment's
// secrets from the start, keys as they are loaded.
func (a *app) secrets() *secret.Scrubber {
	a.hiding.Do(func() { a.hidden = secret.FromEnviron(a.Environ) })
	return a.hidden
}

// open opens the store; make reports whether it may be made. One that need not be made
// is opened to be read where it can't be written: each write is refused then.
func (a *app) open(ctx context.Context, make bool) (store.Store, error) {
	dir, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	if !make && !hasStore(dir) {
		return nil, belay.Errorf(belay.CodeNotFound, "there is no store yet").At(dir).WithHint("belay run TEXT makes it; --store DIR names another")
	}
	st, err := sqlite.Open(ctx, dir, sqlite.Options{Now: a.Now, OrRead: !make})
	if err != nil {
		return nil, err
	}
	a.opened = st
	if a.wrapStore != nil {
		a.opened = a.wrapStore(st)
	}
	return a.opened, nil
}

// runtime is what drives sessions in this process.
type runtime struct {
	usecase.Runtime
	a       *app
	perform *effect.Performers
	tools   *tool.Set // where no workspace says otherwise
	scrub   func([]byte) []byte
}

// call is a use case that the person at this terminal asks for.
func (r *runtime) call(name string) *usecase.Call {
	return &usecase.Call{Runtime: &r.Runtime, By: auth.Person(r.a.principal()), Command: name}
}

// set is the tools where no workspace says otherwise.
func (a *app) set() (*tool.Set, error) {
	if p := a.workspaces().current(); p != nil { // made already; a schema takes its time to read
		return p.set, nil
	}
	return tool.NewSet(a.workspaces().builtin...)
}

// argsKey is the key of the store's folder for digests of secrets in arguments.
func (a *app) argsKey() ([]byte, error) {
	dir, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	key, err := secret.StoreKey(dir)
	if err != nil {
		return nil, belay.Errorf(belay.CodeStoreDamaged, "the store's key for secrets in arguments can't be had: %v", err).WithHint("remove the file, if nothing else is wrong with the store")
	}
	return key, nil
}

// reads is a runtime without an engine: use cases that change nothing take it.
func (a *app) reads(st store.Store) *runtime {
	r := &runtime{a: a, Runtime: usecase.Runtime{Store: st, Reads: &read.Reads{Store: st, Views: view.NewFollower(st)}, Drives: usecase.Local{}, Recorder: usecase.Local{}, Now: a.Now}}
	r.Workspaces = &wiring{a: a, r: r}
	return r
}

// runtime wires an engine onto a store. show gets what flows between facts.
func (a *app) runtime(st store.Store, show func(event.Delta)) (*runtime, error) {
	return a.runtimeTelling(st, show, nil)
}

// runtimeTelling is runtime with a callback for what the engine records.
func (a *app) runtimeTelling(st store.Store, show func(event.Delta), recorded engine.Recorded) (*runtime, error) {
	set, err := a.set()
	if err != nil {
		return nil, err
	}
	secrets := a.secrets()
	key, err := a.argsKey()
	if err != nil {
		return nil, err
	}
	p, err := effect.New(effect.Config{
		Store: st, Provider: a.served, Tools: set, ToolsIn: a.workspaces().toolsIn, Secrets: secrets, ArgsKey: key, Now: a.Now, Live: show,
		Keeper: a.keeper(), Confine: a.confine, Inspect: a.inspect, Check: a.checkers().Ask, Price: a.providers().price, Counts: a.providers().counts,
	})
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Config{Store: st, Owner: store.ThisProcess(), Performers: p, Secrets: secrets, Now: a.Now, Recorded: recorded, Point: a.Point})
	r := a.reads(st)
	r.perform, r.tools, r.scrub = p, set, secrets.Bytes
	r.Engine = e
	return r, err
}

// close gives everything back.
func (r *runtime) close() error { return errors.Join(r.perform.Close(), r.Store.Close()) }

// rules are what a turn is decided by, kept as content.
func (r *runtime) rules(ctx context.Context, a *app, c config.Settings, ws string) (belay.Ref, error) {
	p, err := a.workspaces().get(ctx, ws)
	if err != nil {
		return belay.Ref{}, err
	}
	d, err := r.draft(a, p, a.principal(), c)
	if err != nil {
		return belay.Ref{}, err
	}
	return r.keepRules(ctx, c, d)
}

// keepRules completes a draft and keeps it as content.
func (r *runtime) keepRules(ctx context.Context, c config.Settings, d drafted) (belay.Ref, error) {
	if d.under.Raw != nil {
		if _, err := r.Store.Put(ctx, d.under.Raw, "application/json"); err != nil {
			return belay.Ref{}, err
		}
	}
	if c.Instructions != "none" {
		if err := r.instruct(ctx, d.place, d.rules); err != nil {
			return belay.Ref{}, err
		}
	}
	return r.perform.KeepRules(ctx, d.rules)
}

// principal is the person at this terminal.
func (a *app) principal() string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if v := a.Getenv(name); v != "" && len(v) <= 64 && belay.CheckID("user", v) == nil {
			return "user:" + v
		}
	}
	return "user:" + strconv.Itoa(syscall.Getuid())
}

// order is a command of the person at this terminal.
func (a *app) order(session belay.SessionID, to belay.StreamID, c belay.Command) belay.Order {
	return belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: a.principal(), Time: a.Now().UTC(),
		Session: session, Stream: to, Command: c}
}
