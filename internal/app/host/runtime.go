package host

import (
	"context"
	_ "embed"
	"errors"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/providers"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// SystemPrompt is what every turn begins with.
//
//go:embed system.md
var SystemPrompt string

// Open opens the store; make reports whether it may be made. One that need not be made
// is opened to be read where it can't be written: each write is refused then.
func (h *Host) Open(ctx context.Context, make bool) (store.Store, error) {
	dir, err := h.c.StoreDir()
	if err != nil {
		return nil, err
	}
	if !make && !h.c.Serves && !h.c.HasStore(dir) {
		return nil, belay.Errorf(belay.CodeNotFound, "there is no store yet").At(dir).WithHint("belay run TEXT makes it; --store DIR names another")
	}
	st, err := h.c.OpenStore(ctx, dir, make)
	if err == nil {
		h.opened = st
	}
	return st, err
}

// Runtime is what drives sessions in this process.
type Runtime struct {
	app.Runtime
	Perform *effect.Performers
	Scrub   func([]byte) []byte
	host    *Host
}

// Call is a use case that the person at this terminal asks for.
func (r *Runtime) Call(name string) *app.Call {
	return r.CallOf(r.host.c.Principal, name)
}

// set is the tools where no workspace says otherwise.
func (h *Host) set() (*tool.Set, error) {
	if p := h.Current(); p != nil { // made already; a schema takes its time to read
		return p.Tools, nil
	}
	return tool.NewSet(h.c.Tools...)
}

// argsKey is the key of the store's folder for digests of secrets in arguments.
func (h *Host) argsKey() ([]byte, error) {
	dir, err := h.c.StoreDir()
	if err != nil {
		return nil, err
	}
	key, err := secret.StoreKey(dir)
	if err != nil {
		return nil, belay.Errorf(belay.CodeStoreDamaged, "the store's key for secrets in arguments can't be had: %v", err).WithHint("remove the file, if nothing else is wrong with the store")
	}
	return key, nil
}

// Reader is a runtime without an engine: use cases that change nothing take it.
func (h *Host) Reader(st store.Store) *Runtime {
	r := &Runtime{host: h, Runtime: app.Local(st, h.c.Now)}
	r.Workspaces = &Workspaces{runtime: r}
	return r
}

// Runtime wires an engine onto a store. show gets what flows between facts; it may
// be nil.
func (h *Host) Runtime(st store.Store, show func(event.Delta)) (*Runtime, error) {
	set, err := h.set()
	if err != nil {
		return nil, err
	}
	key, err := h.argsKey()
	if err != nil {
		return nil, err
	}
	secrets, models := h.c.Models.Secrets, providers.Turns{Providers: h.c.Models, Entered: h.files, In: h.filesOf}
	p, err := effect.New(effect.Config{
		Store: st, Provider: models.Provider, Price: models.Price, Counts: models.Counts, Tools: set, ToolsIn: h.toolsIn, Secrets: secrets, ArgsKey: key, Now: h.c.Now, Live: show,
		Keeper: h.c.Keeper, Confine: h.c.Confine, Inspect: h.c.Inspect, Check: h.c.Check,
	})
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Config{Store: st, Owner: store.ThisProcess(), Performers: p, Secrets: secrets, Now: h.c.Now, Point: h.c.Point})
	r := h.Reader(st)
	r.Perform, r.Scrub = p, secrets.Bytes
	r.Engine, r.Workspaces = e, &Workspaces{runtime: r, set: set}
	return r, err
}

// filesOf are the settings of a turn's workspace. A process that runs one command has
// entered its own.
func (h *Host) filesOf(ctx context.Context, ws string) (*config.Workspace, error) {
	if at := h.files(); at != nil && !h.c.Serves {
		return at, nil
	}
	p, err := h.At(ctx, ws)
	if err != nil {
		return nil, err
	}
	return p.Workspace, nil
}

// files are the settings of the workspace that was entered last; nil: none was.
func (h *Host) files() *config.Workspace {
	if p := h.Current(); p != nil {
		return p.Workspace
	}
	return nil
}

// Close gives everything back.
func (r *Runtime) Close() error { return errors.Join(r.Perform.Close(), r.Store.Close()) }

// Rules are what a turn is decided by, kept as content.
func (r *Runtime) Rules(ctx context.Context, c config.Settings, ws string) (belay.Ref, error) {
	p, err := r.host.At(ctx, ws)
	if err != nil {
		return belay.Ref{}, err
	}
	d, err := r.Draft(p, r.host.c.Principal, c)
	if err != nil {
		return belay.Ref{}, err
	}
	return r.KeepRules(ctx, c, d)
}

// KeepRules completes a draft and keeps it as content.
func (r *Runtime) KeepRules(ctx context.Context, c config.Settings, d Draft) (belay.Ref, error) {
	if d.under.Raw != nil {
		if _, err := r.Store.Put(ctx, d.under.Raw, "application/json"); err != nil {
			return belay.Ref{}, err
		}
	}
	if c.Instructions != "none" {
		if err := r.instruct(ctx, d.place, d.Rules); err != nil {
			return belay.Ref{}, err
		}
	}
	return r.Perform.KeepRules(ctx, d.Rules)
}

// Draft is what a turn is to be decided by, and what it was made under.
type Draft struct {
	Rules *thread.Rules
	under *config.Rules
	place *Place
}

// Draft returns what a turn's rules say of tools and allowances, under the rules that
// count in a workspace. by is who gives the allowances. The set is not kept yet.
func (r *Runtime) Draft(p *Place, by string, c config.Settings) (Draft, error) {
	under, err := r.host.RulesOf(p.Workspace)
	if err != nil {
		return Draft{}, err
	}
	if err := under.Permit(c.Settings, ""); err != nil {
		return Draft{}, err
	}
	rules := &thread.Rules{Settings: c.Settings, Tools: p.Tools.Choose(c.Tools), System: SystemPrompt, Workspace: p.Path(), Output: c.Schema, Boundary: r.host.c.Boundary(),
		UntrustedWorkspace: under.Untrusted, Home: r.host.c.Env.Get("HOME"), Shadowed: p.Shadowed(), Routes: r.host.c.Models.Routes(p.Workspace, c.Settings)}
	if under.Raw != nil {
		rules.Govern(under.Ref(), under.Set)
	}
	askOutput(rules)
	for _, name := range c.Allow {
		rules.Grants = append(rules.Grants, policy.Grant{Tool: name, Tier: policy.TierUser, Kind: "rule", By: by, Dialect: policy.DialectOf(c.Shell)})
	}
	return Draft{rules, under, p}, nil
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

// CodeContextExceeded is the code of a turn whose messages are more than its model reads.
const CodeContextExceeded = effect.CodeContextExceeded
