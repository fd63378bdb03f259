package cli

import (
	"context"
	"fmt"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/secret"
	"slices"
	"strconv"
	"syscall"
)

// environment is what this process was started with.
func (a *program) environment() config.Env { return config.Env{Vars: a.Environ, Dir: a.Dir} }

// enterHere enters the workspace of this command, or none where there is none: a
// command that needs one reports it.
func (a *program) enterHere(ctx context.Context) (*host.Place, error) {
	ws, err := a.workspace()
	if err != nil {
		ws = ""
	}
	return a.Enter(ctx, ws)
}

// sayIgnored says, once per process, what doesn't count in files of a workspace.
func (a *program) sayIgnored(all []config.Ignored) {
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

// principal is the person at this terminal.
func (a *program) principal() string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if v := a.Getenv(name); v != "" && len(v) <= 64 && belay.CheckID("user", v) == nil {
			return "user:" + v
		}
	}
	return "user:" + strconv.Itoa(syscall.Getuid())
}

// order is a command of the person at this terminal.
func (a *program) order(session belay.SessionID, to belay.StreamID, c belay.Command) belay.Order {
	return belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: a.principal(), Time: a.Now().UTC(),
		Session: session, Stream: to, Command: c}
}

// place is a workspace as this process works in it.
type place = host.Place

// runtime is what drives sessions in this process.
type runtime = host.Runtime

// newHost makes this process's side of the store that the command line names.
func (a *program) newHost() *host.Host {
	return builtin.NewHost(builtin.Options{Env: a.environment(), Now: a.Now, Secrets: a.secrets(), Principal: a.principal(), Serves: a.serves, Tenant: a.tenant, Interactive: a.Interactive(),
		StoreDir: a.storeDir, Say: a.sayIgnored, Point: a.Point, Tools: a.extra, WrapStore: a.wrapStore,
		WrapProvider: func(p model.Provider) model.Provider {
			if a.wrapProvider == nil {
				return p
			}
			return a.wrapProvider(p)
		}})
}

// secrets removes secret values from everything that leaves: the environment's
// secrets from the start, keys as they are loaded.
func (a *program) secrets() *secret.Scrubber {
	a.hiding.Do(func() { a.hidden = secret.FromEnviron(a.Environ) })
	return a.hidden
}
