package work

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// openActions returns the facts of the unanswered questions of a thread.
func openActions(ctx context.Context, st store.Store, thread belay.ThreadID) (open []event.Envelope, err error) {
	for ev, err := range st.Read(ctx, thread.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		switch ev.Data.(type) {
		case event.ActionRequired:
			open = append(open, ev)
		case event.ActionResolved:
			open = slices.DeleteFunc(open, func(o event.Envelope) bool { return o.IDs.Action == ev.IDs.Action })
		}
	}
	return open, nil
}
