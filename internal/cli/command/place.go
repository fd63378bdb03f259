package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
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
func (a *Program) EnterHere(ctx context.Context) (*host.Place, error) {
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

// Place is a workspace as this process works in it.
type Place = host.Place

// Runtime is what drives sessions in this process.
type Runtime = host.Runtime

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
func (a *Program) PlaceHere(ctx context.Context) (*Place, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		return nil, err
	}
	return a.Enter(ctx, ws)
}

// EnterChecked enters the workspace, apart from the store.
func (a *Program) EnterChecked(ctx context.Context) (ws string, p *Place, err error) {
	if ws, err = a.CheckedWorkspace(); err == nil {
		p, err = a.Enter(ctx, ws)
	}
	return ws, p, err
}
