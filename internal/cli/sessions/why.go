package sessions

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/story"
)

// WhyCmd is the command "belay why".
type WhyCmd struct {
	ID       string `arg:"" optional:"" help:"A turn, step, call, action, task, run, session or event, or the beginning or end of its id; without it, what happened last here."`
	Timeline bool   `short:"t" help:"Show what happened in order instead."`
}

// Read implements command.Reader.
func (c *WhyCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	events, err := about(ctx, a, st, c.ID)
	if err != nil {
		return 0, err
	}
	if c.Timeline {
		for _, r := range story.Timeline(events) {
			a.Say(r, "%s", r)
		}
		return belay.ExitOK, nil
	}
	answer, err := story.Why(events, c.ID)
	if err != nil {
		return 0, err
	}
	return a.Say(answer, "%s", strings.TrimRight(answer.String(), "\n"))
}

// about are the facts of the sessions that an id can be about; without an id,
// those of the last session of this workspace.
func about(ctx context.Context, a *command.Program, st store.Store, id string) ([]event.Envelope, error) {
	if id == "" {
		last, err := a.SessionID(ctx, st, "")
		if err != nil {
			return nil, err
		}
		id = string(last)
	}
	return sessions.About(ctx, st, id)
}
