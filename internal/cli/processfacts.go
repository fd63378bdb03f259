package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// processFacts are the facts of a process and the output.expired of its session, in
// the order of the log. Sessions are asked one after the other: those that run
// programs or have run some before others, and the one that changed last first.
func processFacts(ctx context.Context, st store.Store, id string) ([]event.Envelope, error) {
	nowhere := belay.Errorf(belay.CodeNotFound, "no fact of this store is about such a process").At(id).WithHint("belay process list")
	if !strings.HasPrefix(id, belay.PrefixProcess+"_") {
		return nil, nowhere
	}
	sessions, err := sessions.List(ctx, st, view.Filter{})
	if err != nil {
		return nil, err
	}
	for _, ran := range []bool{true, false} {
		for _, s := range sessions {
			if ranSome(&s) != ran {
				continue
			}
			if facts, err := processFactsOf(ctx, st, s.ID, id); err != nil || len(facts) > 0 {
				return facts, err
			}
		}
	}
	return nil, nowhere
}

// ranSome reports whether a session has run programs, or may be running one.
func ranSome(s *view.Session) bool {
	return s.Programs.Ended > 0 || slices.ContainsFunc(s.Threads, func(t view.Thread) bool { return t.Turn != nil && t.Turn.Status != view.Ended })
}

// processFactsOf are those that a session has.
func processFactsOf(ctx context.Context, st store.Store, session belay.SessionID, id string) (facts []event.Envelope, err error) {
	for r, err := range st.Window(ctx, store.Window{Session: session}) {
		if err != nil {
			return nil, err
		}
		_, let := r.Event.Data.(event.OutputExpired)
		if string(r.Event.IDs.Process) == id || let && len(facts) > 0 {
			facts = append(facts, r.Event)
		}
	}
	return facts, nil
}
