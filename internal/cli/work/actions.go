package work

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// action is a question as its fact says.
type action struct {
	ID      belay.ActionID
	Session belay.SessionID
	Thread  belay.ThreadID
	Time    time.Time
	Fact    event.ActionRequired
}

// openActions returns the unanswered questions of a thread.
func openActions(ctx context.Context, st store.Store, thread belay.ThreadID) ([]action, error) {
	var open []action
	for ev, err := range st.Read(ctx, thread.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		switch p := ev.Data.(type) {
		case event.ActionRequired:
			open = append(open, action{ev.IDs.Action, ev.IDs.Session, ev.IDs.Thread, ev.Time, p})
		case event.ActionResolved:
			for i := range open {
				if open[i].ID == ev.IDs.Action {
					open = append(open[:i], open[i+1:]...)
					break
				}
			}
		}
	}
	return open, nil
}
