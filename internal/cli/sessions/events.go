package sessions

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/story"
)

// EventsCmd is the command "belay events".
type EventsCmd struct {
	Session string `arg:"" optional:"" help:"Only of this session; without it, of the whole store."`
	Follow  bool   `short:"f" help:"Go on with what comes."`
	After   string `placeholder:"POSITION" help:"Only what comes after a position, as printed in front of each line."`
	Type    string `placeholder:"NAME" help:"Only facts of this type, or of a family: tool, model, permission.evaluated …"`
	Agent   string `placeholder:"AGENT" help:"Only those about an agent that the session started, by its id or name."`
}

// Read implements command.Reader.
func (c *EventsCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	after, err := position(c.After)
	if err != nil {
		return 0, err
	}
	if err := knownType(c.Type); err != nil {
		return 0, err
	}
	var session belay.SessionID
	if c.Session == string(belay.SystemSession) {
		session = belay.SystemSession // no list has it: its facts belong to no session of a person
	} else if c.Session != "" {
		if session, err = a.SessionID(ctx, st, c.Session); err != nil {
			return 0, err
		}
	}
	about := func(event.Envelope) bool { return true }
	if c.Agent != "" {
		if about, err = c.aboutAgent(ctx, a, st, session); err != nil {
			return 0, err
		}
	}
	for {
		changed := st.Changed(ctx)
		facts := st.Scan(ctx, after)
		if session != "" {
			facts = st.Window(ctx, store.Window{Session: session, After: after})
		}
		for r, err := range facts {
			if err != nil {
				return 0, err
			}
			if after = r.Position; ofType(r.Event, c.Type) && about(r.Event) {
				printFact(&a.Env, r)
			}
		}
		if !c.Follow {
			return belay.ExitOK, nil
		}
		select {
		case <-changed:
		case sig := <-a.Signals:
			if sig == syscall.SIGTERM {
				return belay.ExitCancelled, nil
			}
			return belay.ExitOK, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// aboutAgent reports of facts whether they are about an agent: of its thread, of its task,
// and those of others that name it.
func (c *EventsCmd) aboutAgent(ctx context.Context, a *command.Program, st store.Store, id belay.SessionID) (func(event.Envelope) bool, error) {
	if id == "" {
		return nil, belay.Errorf(belay.CodeUsage, "an agent is one of a session").At("--agent").WithHint("belay events SESSION --agent %s", c.Agent)
	}
	all, err := subagents(ctx, app.Local(st, a.Principal(), a.Now), id)
	if err != nil {
		return nil, err
	}
	agent, err := findAgent(all, c.Agent)
	if err != nil {
		return nil, err
	}
	shown := all[slices.IndexFunc(all, func(s sessions.SubagentShown) bool { return s.Subagent == agent })]
	return func(ev event.Envelope) bool {
		return ev.Stream == shown.Thread.Stream() || ev.Stream == shown.Task.Stream() || ev.IDs.Subagent == agent
	}, nil
}

func position(s string) (store.Position, error) {
	if s == "" {
		return 0, nil
	}
	var p store.Position
	if n, err := fmt.Sscanf(s, "%d", &p); err != nil || n != 1 || p < 0 || fmt.Sprint(p) != s {
		return 0, belay.Errorf(belay.CodeUsage, "%q is not a position", s).At("--after").WithHint("--after 0 is the beginning")
	}
	return p, nil
}

func ofType(ev event.Envelope, name string) bool { return inFamily(ev.Type(), name) }

// inFamily reports whether a type is the one that is named, or of its family.
func inFamily(t, name string) bool {
	return name == "" || t == name || len(t) > len(name) && t[:len(name)] == name && t[len(name)] == '.'
}

// knownType refuses a type that no fact has: a listing of it would be empty, and
// to follow it would be to wait for ever.
func knownType(name string) error {
	if slices.ContainsFunc(event.Types(), func(t event.Type) bool { return inFamily(t.Name, name) }) {
		return nil
	}
	return belay.Errorf(belay.CodeUsage, "no fact is of type %q, or of such a family", name).At("--type").WithHint("--type tool; docs/events.md lists them")
}

// printFact prints one fact: the standard's envelope, or a line for people.
func printFact(e *term.Env, r store.Record) {
	e.Say(r.Event, "%6d  %s", r.Position, story.Line(r.Event))
}
