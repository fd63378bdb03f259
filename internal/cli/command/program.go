package command

import (
	"context"
	"errors"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// Sys is what the program gets from the operating system.
type Sys struct {
	term.Env
	Dir     string            // the working directory
	Point   func(kind string) // passed to the engine; for crash tests
	Formats []eval.Format     // of scenarios, besides our own
	More    []app.Command     // commands of the table besides the built-in ones
}

// Flags are what every command takes.
type Flags struct {
	Location
	Agents string `placeholder:"DIR" help:"A folder of agents, which go before all others. [$$BELAY_AGENTS]"`
	JSON   bool   `name:"json" help:"Print JSON, one object in a line."`
	Look
}

// Look is how things are shown.
type Look struct {
	Plain        bool   `help:"Print a line for each thing that happens; draw over nothing."`
	ScreenReader bool   `help:"For a screen reader: say states in sentences, draw no signs, redraw nothing."`
	Color        string `enum:"auto,always,never" default:"auto" help:"Use colours: ${enum}."`
	Verbose      bool   `help:"Show more: what the runtime tells the model by itself, the story beside a printed answer, what clients of a server do wrong."`
}

// Location is where to work; every command takes it.
type Location struct {
	Store     string `placeholder:"DIR" help:"Where sessions are kept. [$$BELAY_STORE]"`
	Workspace string `placeholder:"DIR" help:"What to work on; the root of the git repository, else the current directory. [$$BELAY_WORKSPACE]"`
}

// Build is what this build of the program has.
type Build struct {
	Commands []app.Command
	Reads    []app.Read
	HasStore func(dir string) bool
	NewHost  func(*Program) Host
	Confined func(*Program) Confinement
	Findings func(context.Context, *Program) []app.Finding // what the machine gives
}

// Confinement is how this process confines the programs that it runs.
type Confinement interface {
	Off() string            // why it doesn't; empty: it does
	Tries() bool            // macOS's sandbox is tried, which claims no level
	Boundary() app.Boundary // what this machine can confine a turn's programs with
}

// Program is one run of the program.
type Program struct {
	Sys
	Location
	Host  // made when the command line is known
	Build Build
	Kong  *kong.Kong // the grammar

	said   []string // of what doesn't count
	Serves bool     // it is a tenant of a server
	Tenant string

	hiding sync.Once
	hidden *secret.Scrubber // use secrets()

	Extra        []tool.Tool                         // tools besides the built-in ones; an evaluation adds them
	WrapProvider func(model.Provider) model.Provider // stands between the engine and a provider; nil is nothing
	WrapStore    func(store.Store) store.Store       // stands between the program and its store; nil is nothing
}

// Explained makes every error one with a code and a next command, without secrets.
func (a *Program) Explained(err error) *belay.Error { return a.Explain(err, a.Secrets().String) }

// TakeAgents lets the agents of a folder go before all others; without one it is that of
// the environment. Whoever makes a catalogue in this process has it from there.
func (a *Program) TakeAgents(dir string) {
	if dir != "" {
		a.Environ = append(slices.Clone(a.Environ), config.AgentsVariable+"="+a.Environment().Abs(dir))
	}
	a.Host = a.Build.NewHost(a) // the one before had the environment as it was
}

// TakePlace takes over what the command line and the environment say about the store,
// the workspace and the output.
func (a *Program) TakePlace(g *Flags) {
	a.Location, a.JSON = g.Location, g.JSON
	a.Plain, a.ScreenReader, a.Colour, a.Verbose = g.Plain, g.ScreenReader, g.Color, g.Verbose
	a.placeFromEnv()
	a.TakeAgents(g.Agents)
	if a.Store != "" && a.Store != a.Getenv("BELAY_STORE") {
		a.StoreFlag = " --store " + a.Environment().Abs(a.Store)
	}
}

// Doctor says what the machine gives and what is missing, without secrets.
func (a *Program) Doctor(ctx context.Context) []app.Finding {
	all := a.Build.Findings(ctx, a)
	for i := range all {
		all[i].What = a.Secrets().String(all[i].What)
	}
	return all
}

// Principal is the person at this terminal.
func (a *Program) Principal() string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if v := a.Getenv(name); v != "" && len(v) <= 64 && belay.CheckID("user", v) == nil {
			return "user:" + v
		}
	}
	uid := strconv.Itoa(syscall.Getuid())
	if u, err := user.LookupId(uid); err == nil && len(u.Username) <= 64 && belay.CheckID("user", u.Username) == nil {
		return "user:" + u.Username
	}
	return "user:" + uid
}

// Order is a command of the person at this terminal.
func (a *Program) Order(session belay.SessionID, to belay.StreamID, c belay.Command) belay.Order {
	return belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: a.Principal(), Time: a.Now().UTC(),
		Session: session, Stream: to, Command: c}
}

// Secrets removes secret values from everything that leaves: the environment's
// secrets and values in known forms from the start, keys as they are loaded.
func (a *Program) Secrets() *secret.Scrubber {
	a.hiding.Do(func() {
		a.hidden = secret.FromEnviron(a.Environ)
		a.hidden.Look(secret.Known{})
	})
	return a.hidden
}

// Keeping opens the store that is there for as long as f looks after it.
func (a *Program) Keeping(ctx context.Context, f func(store.Admin) (int, error)) (int, error) {
	return a.Reading(ctx, func(st store.Store) (int, error) {
		if db, ok := st.(store.Admin); ok {
			return f(db)
		}
		return 0, NoFile()
	})
}

// NoFile is the error for a store that is in no file.
func NoFile() error { return belay.Errorf(belay.CodeUsage, "this store has no file") }

// Flagged names the flag of a refusal that names a field of a request.
func Flagged(err error) error {
	f, isField := errors.AsType[*input.FieldError](err)
	e, ok := errors.AsType[*belay.Error](err)
	if isField && ok && e.Where == "" {
		return e.At("--" + strings.TrimPrefix(f.Field, "settings."))
	}
	return err
}
