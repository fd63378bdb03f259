package sessions

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// WhyCmd is the command "belay why".
type WhyCmd struct {
	ID       string `arg:"" optional:"" help:"A turn, step, call, action, task, run, session or event, or the beginning of its id; without it, what happened last here."`
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
	sessions := map[belay.SessionID]bool{}
	if id == "" {
		last, err := a.SessionID(ctx, st, "")
		if err != nil {
			return nil, err
		}
		sessions[last] = true
	} else if s, err := view.SessionByID(ctx, st, id); err == nil && string(s.ID) == id {
		sessions[s.ID] = true
	} else {
		for r, err := range st.Scan(ctx, 0) {
			if err != nil {
				return nil, err
			}
			if s := r.Event.IDs.Session; !sessions[s] && app.Names(r.Event, id) {
				sessions[s] = true
			}
		}
	}
	if len(sessions) == 0 {
		return nil, belay.Errorf(belay.CodeNotFound, "no fact in this store is about it").At(id).WithHint("belay why explains what happened last here; belay events lists ids")
	}
	var records []store.Record
	for s := range sessions {
		for r, err := range st.Window(ctx, store.Window{Session: s}) {
			if err != nil {
				return nil, err
			}
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b store.Record) int { return cmp.Compare(a.Position, b.Position) })
	events := make([]event.Envelope, len(records))
	for i := range records {
		events[i] = records[i].Event
	}
	return events, nil
}
