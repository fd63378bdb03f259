package host

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/providers"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// What every turn begins with, by how it is completed.
var (
	//go:embed required.md
	required string
	//go:embed conversational.md
	conversational string
)

// SystemPrompt is what every turn begins with that is completed so.
func SystemPrompt(c belay.Completion) string {
	if c == belay.CompletionConversational {
		return conversational
	}
	return required
}

// offered are the tools that a turn has under some settings. One that a model's answer
// ends has none to end it.
func offered(p *app.Place, s belay.Settings) []belay.ToolSpec {
	tools := p.Tools.Choose(s.Tools)
	if s.Completion == belay.CompletionConversational && s.Provider != config.Direct {
		tools = slices.DeleteFunc(slices.Clone(tools), func(t belay.ToolSpec) bool { return t.Handled == tool.HandledComplete })
	}
	if s.Agents.OrDefaults().Depth == 0 {
		tools = slices.DeleteFunc(slices.Clone(tools), tool.AboutAgents)
	}
	return tool.Catalog(tools, p.Tools.Specs(), cmp.Or(s.ToolBudget, belay.DefaultToolBudget)<<10)
}

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

// set is the tools where no workspace says otherwise.
func (h *Host) set() (*tool.Set, error) {
	if p := h.Current(); p != nil { // made already; a schema takes its time to read
		return p.Tools, nil
	}
	all, err := h.c.Tools(nil)
	if err != nil {
		return nil, err
	}
	return tool.NewSet(all...)
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
func (h *Host) Reader(st store.Store) *app.Runtime {
	r := app.Local(st, h.c.Principal, h.c.Now)
	r.Workspaces = &Workspaces{host: h}
	if dir, err := h.c.StoreDir(); err == nil { // else there is no store
		r.Tokens = auth.OpenTokens(dir, h.c.Now)
	}
	return r
}

// Runtime wires an engine onto a store. show gets what flows between facts; it may
// be nil.
func (h *Host) Runtime(st store.Store, show func(event.Delta)) (*app.Runtime, error) {
	set, err := h.set()
	if err != nil {
		return nil, err
	}
	key, err := h.argsKey()
	if err != nil {
		return nil, err
	}
	secrets, models := h.c.Models.Secrets, providers.Turns{Providers: h.c.Models, Entered: h.files, In: h.filesOf}
	secrets.Sign(key)
	p, err := effect.New(effect.Config{
		Store: st, Provider: models.Provider, Counts: models.Counts, Tools: set, ToolsIn: h.toolsIn, Secrets: secrets, Cache: h.c.Models.Cache, ArgsKey: key, Now: h.c.Now, Live: show,
		Keeper: h.c.Keeper, TaskPrompt: SystemPrompt(belay.CompletionRequired), Agent: h.childAgent, Team: h.team, Admit: h.admit, Command: h.command, Trees: trees{h}, Surroundings: surroundings{h.c.Git}, Confine: h.c.Confine, Inspect: h.c.Inspect, Check: h.c.Check,
	})
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Config{Store: st, Owner: store.ThisProcess(), Performers: p, Secrets: secrets, Now: h.c.Now, Point: h.c.Point})
	if err == nil {
		p.UseQuotas(e.Decide)
	}
	h.opened, h.perform = st, p
	r := h.Reader(st)
	r.Engine, r.Attachable, r.Workspaces = e, p.Attachable, &Workspaces{host: h, set: set}
	h.Performs(r)
	r.Close = st.Close
	return r, err
}

// Performs makes a runtime the one that performs the commands of models' calls.
func (h *Host) Performs(r *app.Runtime) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runtime = r
}

// command performs a command for a call of a model, as the agent whose call it is.
func (h *Host) command(ctx context.Context, call belay.IDs, name string, body []byte) ([]byte, error) {
	h.mu.Lock()
	r := h.runtime
	h.mu.Unlock()
	cmd := app.Find(h.c.Commands, name)
	if cmd == nil || r == nil {
		return nil, belay.Errorf(belay.CodeUnavailable, "this process performs no %s", name)
	}
	c := r.Call(name)
	c.By, c.Key, c.Remote = auth.Agent(call.Thread), "call/"+string(call.Call), true
	out, err := cmd.Do(ctx, c, body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
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

// KeepRules completes a draft and keeps it as content of the runtime's store.
func (h *Host) KeepRules(ctx context.Context, c config.Settings, d app.Draft) (belay.Ref, error) {
	if err := h.priced(d.Place, c); err != nil {
		return belay.Ref{}, err
	}
	if f := d.Rules.AgentFile; f != nil {
		if err := h.takesWork(ctx, d.Rules.Agent, f.Path); err != nil {
			return belay.Ref{}, err
		}
	}
	if d.Under.Raw != nil {
		if _, err := h.opened.Put(ctx, d.Under.Raw, "application/json"); err != nil {
			return belay.Ref{}, err
		}
	}
	if err := h.instruct(ctx, d.Place, d.Rules, c.Instructions != "none"); err != nil {
		return belay.Ref{}, err
	}
	if f := d.Rules.AgentFile; f != nil && len(f.Retry.Fallback) == 0 {
		for _, name := range f.Fallback {
			c.Agent = name
			other, err := h.Draft(ctx, d.Place, h.c.Principal, c)
			if err != nil {
				return belay.Ref{}, belay.Errorf(belay.CodeBadManifest, "agent %s, which tries what this one fails at, can't be used: %v", name, err).At(f.Path).WithHint("belay agents check")
			}
			if other.Rules.AgentFile != nil {
				other.Rules.AgentFile.Fallback = nil
			}
			ref, err := h.KeepRules(ctx, c, other)
			if err != nil {
				return belay.Ref{}, err
			}
			f.Retry.Fallback = append(f.Retry.Fallback, belay.Substitute{Agent: other.Rules.Agent, Rules: ref})
		}
	}
	return h.perform.KeepRules(ctx, d.Rules)
}

// Draft returns what a turn's rules say of tools and allowances, under the rules that
// count in a workspace. by is who gives the allowances. The set is not kept yet.
func (h *Host) Draft(ctx context.Context, p *app.Place, by string, c config.Settings) (app.Draft, error) {
	under, err := h.RulesOf(p.Workspace)
	if err != nil {
		return app.Draft{}, err
	}
	if err := under.Permit(c.Settings, ""); err != nil {
		return app.Draft{}, err
	}
	rules := &thread.Rules{Settings: c.Settings, Tools: offered(p, c.Settings), System: SystemPrompt(c.Completion), Workspace: p.Path(), Output: c.Schema, Boundary: h.c.Boundary(),
		UntrustedWorkspace: under.Untrusted, Home: h.c.Env.Get("HOME"), Shadowed: p.Shadowed(),
		Models: thread.Models{Routes: h.c.Models.Routes(p.Workspace, c.Settings)}, Told: thread.Told{Environment: c.Provider != config.Direct, Cwd: p.Cwd()}}
	rules.Profile.Priced = limitsMoney(c)
	if under.Raw != nil {
		rules.Govern(under.Ref(), under.Set)
	}
	for _, c := range rules.Gate().Reviewers() {
		rules.Reviewers = append(rules.Reviewers, h.c.Models.Candidate(p.Workspace, p.Of(rules.Settings, c.Provider, c.Model)))
	}
	if provider, model, ok := strings.Cut(c.Compact.Model, "/"); ok {
		rules.Reviewers = append(rules.Reviewers, h.c.Models.Candidate(p.Workspace, p.Of(c.Settings, provider, model)))
	}
	rules.AskOutput()
	for _, name := range c.Allow {
		rules.Grants = append(rules.Grants, policy.Grant{Tool: name, Tier: policy.TierUser, Kind: "rule", By: by, Dialect: policy.DialectOf(c.Shell)})
	}
	d := app.Draft{Rules: rules, Under: under, Place: p}
	if c.Agent != "" {
		if err := h.mainAgent(ctx, p, &d, c.Tools); err != nil {
			return d, err
		}
	}
	if slices.ContainsFunc(rules.Tools, func(t belay.ToolSpec) bool { return t.Name == tool.SpawnName }) {
		cat, err := h.agents(ctx, p)
		if err != nil {
			return d, err
		}
		h.tellAgents(rules, cat)
	}
	return d, nil
}

// limitsMoney reports whether what turns under some settings cost is limited.
func limitsMoney(s config.Settings) bool {
	quota := slices.ContainsFunc(s.Quotas, func(q belay.Quota) bool { return q.Kind == belay.BudgetCost && !q.Warn })
	return s.Provider != config.Direct && (quota || s.Budget.MicroUSD > 0 || s.Limits.MicroUSD > 0)
}

// priced refuses settings that limit money where the price of no model is known.
func (h *Host) priced(p *app.Place, s config.Settings) error {
	if !limitsMoney(s) || slices.ContainsFunc(h.c.Models.Routes(p.Workspace, s.Settings), func(c core.Candidate) bool { return c.Prices != nil }) {
		return nil
	}
	limit := "--budget 500ktok, --max-tokens 500ktok"
	if h.c.Serves {
		limit = "settings.budget or settings.maxTokens 500ktok"
	}
	return belay.Errorf(belay.CodeNoPrice, "money is limited, and nothing says what %s costs", strings.TrimSuffix(s.Provider+"/"+s.Model, "/")).
		WithHint("write its prices into models.yaml (docs/models.md), or limit tokens instead: %s", limit)
}
