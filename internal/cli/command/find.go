package command

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// SessionID is a session of the store by its id, the beginning of it, or its last six
// digits or more; empty is the last one of this workspace.
func (a *Program) SessionID(ctx context.Context, st store.Store, id string) (belay.SessionID, error) {
	if id != "" {
		s, err := app.FindSession(ctx, st, id)
		return s.ID, err
	}
	ws, err := a.WorkspaceDir()
	if err != nil {
		return "", err
	}
	f := view.Filter{Workspace: ws, Archived: new(bool), Limit: 16}
	for first := belay.SessionID(""); ; f.Limit *= 4 {
		all, err := app.ListSessions(ctx, st, f)
		if err != nil {
			return "", err
		}
		if len(all) == 0 {
			return "", belay.Errorf(belay.CodeNotFound, "this workspace has no session").At(ws).WithHint("belay run TEXT, or belay sessions list --all")
		}
		// A call that a person made by hand is a session too, but not what --last means.
		first = all[0].ID
		if i := slices.IndexFunc(all, func(s view.Session) bool { return s.Provider != scripted.DirectName }); i >= 0 {
			return all[i].ID, nil
		}
		if len(all) < f.Limit {
			return first, nil
		}
	}
}
