package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/providers"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/config/template"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

func (a *Program) placeFromEnv() {
	if a.Store == "" {
		a.Store = a.Getenv("BELAY_STORE")
	}
	if a.Workspace == "" {
		a.Workspace = a.Getenv("BELAY_WORKSPACE")
	}
}

// StoreDir is the store's directory, which need not exist. All commands choose
// it the same way.
func (a *Program) StoreDir() (string, error) { return a.Environment().StoreDir(a.Store) }

// WorkspaceDir is the real path of what to work on.
func (a *Program) WorkspaceDir() (string, error) { return a.Environment().FindWorkspace(a.Workspace) }

// Environment is what this process was started with.
func (a *Program) Environment() config.Env { return config.Env{Vars: a.Environ, Dir: a.Dir} }

// EnterHere enters the workspace of this command, or none where there is none: a
// command that needs one reports it.
func (a *Program) EnterHere(ctx context.Context) (*app.Place, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		ws = ""
	}
	return a.Enter(ctx, ws)
}

// SayIgnored says, once per process, what doesn't count in files of a workspace.
func (a *Program) SayIgnored(all []config.Ignored) {
	for _, i := range all {
		text := fmt.Sprintf("%s: %s is ignored: %s", term.Line(i.Where), term.Line(i.What), i.Why)
		if i.What == "" {
			text = fmt.Sprintf("%s is ignored: %s; belay trust %s%s", term.Line(i.Where), i.Why, term.Quoted(i.Where), a.StoreFlag)
		}
		if a.JSON || slices.Contains(a.said, text) {
			continue
		}
		a.said = append(a.said, text)
		fmt.Fprintln(a.Err, text)
	}
}

// CheckedWorkspace is the workspace, apart from the store.
func (a *Program) CheckedWorkspace() (string, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		return "", err
	}
	dir, err := a.StoreDir()
	if err != nil {
		return "", err
	}
	return ws, config.Apart(ws, dir)
}

// PlaceHere enters this workspace.
func (a *Program) PlaceHere(ctx context.Context) (*app.Place, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		return nil, err
	}
	return a.Enter(ctx, ws)
}

// EnterChecked enters the workspace, apart from the store.
func (a *Program) EnterChecked(ctx context.Context) (ws string, p *app.Place, err error) {
	if ws, err = a.CheckedWorkspace(); err == nil {
		p, err = a.Enter(ctx, ws)
	}
	return ws, p, err
}

// Host is this process's side of the store: what drives its sessions, and the
// workspaces that it works in.
type Host interface {
	// Performs makes a runtime the one that performs the commands of models' calls.
	Performs(r *app.Runtime)
	Workspaces
	Settings
	Rules
	Agents
	Servers
	// Open opens the store; make reports whether it may be made.
	Open(ctx context.Context, make bool) (store.Store, error)
	// Reader is a runtime without an engine: use cases that change nothing take it.
	Reader(st store.Store) *app.Runtime
	// Runtime wires an engine onto a store. show gets what flows between facts; it
	// may be nil.
	Runtime(st store.Store, show func(event.Delta)) (*app.Runtime, error)
	// Models are the providers of models, and the catalogue.
	Models() *providers.Providers
}

// Workspaces are those that this process works in.
type Workspaces interface {
	// At reads a workspace, once per process: a run is decided by what was there.
	At(ctx context.Context, workspace string) (*app.Place, error)
	// Again reads a workspace's settings and rules again, and what is trusted.
	Again(ctx context.Context, workspace string) (*app.Place, error)
	// Enter makes a workspace the one that this process works in.
	Enter(ctx context.Context, workspace string) (*app.Place, error)
	// Input is what a workspace is read with.
	Input(workspace string) config.Input
	// Keepable refuses a workspace that a session's settings want kept and that can't
	// be.
	Keepable(ctx context.Context, workspace string, c config.Settings) error
	// TrustAsOrigin records that a workspace is a worktree of another: what is trusted
	// there is trusted here, as long as its content is the same.
	TrustAsOrigin(worktree, workspace string)
	// RestoreWorktree makes a session's worktree again when its folder has gone; one
	// that was removed stays so. What is trusted in its repository is trusted there.
	RestoreWorktree(ctx context.Context, s *app.SessionState) error
}

// Settings are those of sessions.
type Settings interface {
	// Layers lays the settings of a new session over each other.
	Layers(p *app.Place, g config.Given) (*config.Layers, error)
	// Fresh are the settings of a new session.
	Fresh(p *app.Place, g config.Given) (config.Settings, error)
	// Over are the settings of a session that there is, with those given laid over them.
	Over(p *app.Place, have belay.Settings, g config.Given) (config.Settings, error)
}

// Agents are those that are kept as files.
type Agents interface {
	// AgentFiles are the agents of a place that are kept as files, with what they need and
	// isn't here.
	AgentFiles(ctx context.Context, p *app.Place) (*agentfile.Catalog, error)
	// AgentRecords are what is known of agents besides their files: what people made of
	// them, and their runs.
	AgentRecords(ctx context.Context) (*config.TrustBook, map[string]view.AgentRuns, error)
	// AgentWork are the turns of an agent that haven't ended, and its life, as facts tell of
	// it.
	AgentWork(ctx context.Context, called, path string, ends []view.AgentEnd) ([]app.AgentWork, *story.AgentLife, error)
}

// Rules are what calls are decided by.
type Rules interface {
	// RulesOf are the rules that count in a workspace.
	RulesOf(w *config.Workspace) (*config.Rules, error)
	// Ground is what calls in a workspace are judged on.
	Ground(p *app.Place) *app.Ground
	// Draft returns what a turn is decided by, under the rules that count in a
	// workspace. by is the person who gives the allowances.
	Draft(ctx context.Context, p *app.Place, by string, c config.Settings) (app.Draft, error)
	// KeepRules completes a draft and keeps it as content of the runtime's store.
	KeepRules(ctx context.Context, c config.Settings, d app.Draft) (belay.Ref, error)
}

// Servers are those of the Model Context Protocol.
type Servers interface {
	// Learn looks at the MCP servers of a workspace that were never seen.
	Learn(ctx context.Context, workspace string) error
	// Mentioned sends along the resources of MCP servers that a text names.
	Mentioned(ctx context.Context, workspace string, g *app.Given) error
	// Prompts are the prompts of a workspace's MCP servers, as templates.
	Prompts(ctx context.Context, workspace string) ([]*template.Template, error)
	// Prompt has an MCP server fill one of its prompts.
	Prompt(ctx context.Context, workspace string, t *template.Template, values map[string]string) (app.Given, error)
}
