// Package config reads what people set for the agents of a workspace, in files, in
// the environment and on the command line, into one value: settings with their
// origins, rules, declared tools, providers of models, instructions. It promises
// that a value stays what it was when it was read, that a file of a workspace
// which nobody trusts can narrow and never widen, that what is trusted is a path
// together with a digest and a changed file is as good as a new one, that what
// doesn't count is
// named for its caller to print, and that a part which can't be read fails for
// those who need it and for nobody else.
//
// It prints nothing, opens no store (it is given one), and makes neither a tool nor a
// provider.
//
// setting.go is the table of settings, layer.go lays them over each other,
// parse.go checks them. tool.go has declared tools, provider.go and key.go
// providers and their keys, rule.go the rules, instruction.go the texts for
// models, env.go and path.go the places of all this, source.go how they are read,
// trust.go which files of workspaces a person trusts: saying so, and taking it
// back, are facts.
package config

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
)

// Input is what a workspace is read with.
type Input struct {
	Env
	Workspace string // its real path; empty: there is none
	Origin    string // the workspace that this one, a git worktree, was made of; empty: it is none
	Tools     []belay.ToolSpec
	Agents    []agentfile.Agent // that are built in
	Secrets   *secret.Scrubber  // gets every key that is read, before it is used
	Hosts     *Hosts            // the hosts that keys may be sent to besides those of the descriptions
	Typed     Typed             // a key that counts before those that are kept
	Now       func() time.Time

	// Trust is what a person trusts. It is asked only where a workspace has files
	// that count when they are trusted.
	Trust func(context.Context) (*TrustBook, error)
	// Kept reads content of the store, which may not be there; nil: there is none.
	Kept func(context.Context, belay.Digest) ([]byte, error)
	// Usable reports whether the provider of some settings can be asked: its key is
	// there, its script can be read.
	Usable func(*Workspace, belay.Settings) error

	Interactive bool         // a person can be asked at the terminal
	Shell       *belay.Shell // that runs the command lines of a new session
	Flags       bool         // settings are given as flags, and errors call them so
}

// Workspace is what counts in a workspace. It doesn't change.
type Workspace struct {
	in Input

	served       []belay.ToolSpec // of MCP servers
	commands     []manifest.Command
	ignoredTools []Ignored
	toolsErr     error

	files    []file
	filesErr error

	providers providers

	layers   *rulefile.Layers
	rulesErr error
	compiled func() (*Rules, error)

	instructions []Instruction
	omitted      []Omission

	shadowed   bool
	shadowedAt time.Time
}

// Ignored is something in a file of a workspace that doesn't count.
type Ignored struct {
	Where string // the file, or file:line:column
	What  string // empty: the whole file
	Why   string
}

// Resolve reads a workspace.
func Resolve(ctx context.Context, in Input) *Workspace {
	w := &Workspace{in: in}
	w.commands, w.ignoredTools, w.toolsErr = in.readTools(ctx)
	w.files, w.filesErr = in.readFiles(ctx)
	w.providers = offered(w.files, w.filesErr)
	w.readRest(ctx)
	return w
}

// Again reads the settings, the rules and the instructions again; tools and
// providers stay as they were, so that those of turns that run don't change. A
// configuration file that is being written must not stop a server: as long as it
// can't be used it counts as it was.
func (w *Workspace) Again(ctx context.Context, in Input) *Workspace {
	n := &Workspace{in: in, commands: w.commands, ignoredTools: w.ignoredTools, toolsErr: w.toolsErr, providers: w.providers}
	if w.toolsErr != nil {
		n.commands, n.ignoredTools, n.toolsErr = in.readTools(ctx)
	}
	n.files, n.filesErr = in.readFiles(ctx)
	if belay.CodeOf(n.filesErr) == belay.CodeBadConfig && w.filesErr == nil {
		n.files, n.filesErr = w.files, nil
	}
	if w.providers.broken != nil {
		n.providers = offered(n.files, n.filesErr)
	}
	if now := in.Now(); now.Sub(w.shadowedAt).Abs() <= shadowedFor {
		n.shadowed, n.shadowedAt = w.shadowed, w.shadowedAt
	}
	n.readRest(ctx)
	return n
}

// With is the workspace with the tools of its MCP servers.
func (w *Workspace) With(served []belay.ToolSpec) *Workspace {
	n := *w
	n.served = served
	n.compiled = n.compileOnce()
	return &n
}

func (w *Workspace) readRest(ctx context.Context) {
	w.layers, w.rulesErr = w.in.readRules(ctx, rulefile.Instead{})
	w.compiled = w.compileOnce()
	w.instructions, w.omitted = w.in.readInstructions()
	if w.shadowedAt.IsZero() {
		w.shadowed, w.shadowedAt = shadowed(w.in.Get("PATH"), w.in.Workspace), w.in.Now()
	}
}

// Check returns the first mistake in anything that turns in the workspace are
// decided by: tools, settings, providers, rules.
func (w *Workspace) Check() error {
	if w.toolsErr != nil {
		return w.toolsErr
	}
	if err := w.providers.check(); err != nil {
		return err
	}
	_, err := w.Rules()
	return err
}

// Path is the workspace's real path.
func (w *Workspace) Path() string { return w.in.Workspace }

// Env is what the process was started with.
func (w *Workspace) Env() Env { return w.in.Env }

// Shadowed reports whether programs are looked for in a folder of the workspace,
// or in another one wherever a program runs.
func (w *Workspace) Shadowed() bool { return w.shadowed }

// Groups are the groups of tools as rules may name them.
func (w *Workspace) Groups() []policy.Group { return groupsOf(w.Specs()) }
