package sessions

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
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
			if after = r.Position; ofType(r.Event, c.Type) {
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
