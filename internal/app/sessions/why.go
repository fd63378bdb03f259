package sessions

import (
	"cmp"
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// why says from the facts why something happened.
func why(ctx context.Context, c *app.Call, _ app.Fresh, q app.Query) (*story.Answer, error) {
	id := q.Values.Get("sessionId")
	if err := input.ID("query sessionId", id); err != nil {
		return nil, err
	}
	events, err := AboutIn(ctx, c.Store, belay.SessionID(id), q.ID)
	if err != nil {
		return nil, err
	}
	answer, err := story.Why(events, q.ID)
	return &answer, err
}

// AboutIn is About where the session is known; empty, it isn't.
func AboutIn(ctx context.Context, st store.Store, session belay.SessionID, id string) ([]event.Envelope, error) {
	if session == "" {
		return About(ctx, st, id)
	}
	return factsOf(ctx, st, map[belay.SessionID]bool{session: true})
}

// About returns the facts, in order, of the sessions that an id, or the beginning of one,
// can be about.
func About(ctx context.Context, st store.Store, id string) ([]event.Envelope, error) {
	sessions := map[belay.SessionID]bool{}
	if s, err := view.SessionByID(ctx, st, id); err == nil && string(s.ID) == id {
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
	return factsOf(ctx, st, sessions)
}

// factsOf are those of sessions, in the order of the log.
func factsOf(ctx context.Context, st store.Store, sessions map[belay.SessionID]bool) ([]event.Envelope, error) {
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
