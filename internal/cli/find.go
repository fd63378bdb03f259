package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model/direct"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// listSessions are the sessions of a store, the one that changed last first:
// also those that were accepted and of which nothing was handled yet.
func listSessions(ctx context.Context, st store.Store, f view.Filter) ([]view.Session, error) {
	if err := view.Catchup(ctx, st); err != nil {
		return nil, err
	}
	limit := f.Limit
	all, err := view.Sessions(ctx, st, f)
	if err != nil {
		return nil, err
	}
	fresh, err := acceptedSessions(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, s := range fresh {
		if (f.Workspace == "" || f.Workspace == s.Workspace) && len(f.Tags) == 0 && (f.Archived == nil || !*f.Archived) {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b view.Session) int { return b.Updated.Compare(a.Updated) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all, nil
}

// allOr are all sessions of a store, or one by its id or the beginning of it.
func allOr(ctx context.Context, st store.Store, id string) ([]view.Session, error) {
	all, err := listSessions(ctx, st, view.Filter{})
	if err != nil || id == "" {
		return all, err
	}
	s, err := view.SessionByID(ctx, st, id)
	return []view.Session{s}, err
}

// acceptedSessions are the sessions of which the log knows nothing yet: a
// process may die right after it accepted the work.
func acceptedSessions(ctx context.Context, st store.Store) ([]view.Session, error) {
	rows, err := st.Lanes(ctx, "")
	if err != nil {
		return nil, err
	}
	var out []view.Session
	for _, row := range rows {
		if row.Inbox == 0 || row.Stream != row.Session.Stream() {
			continue
		}
		if _, err := st.Head(ctx, row.Stream); err == nil {
			continue // the view has it
		}
		orders, err := st.Inbox(ctx, row.Stream)
		if err != nil {
			return nil, err
		}
		if s := accepted(row.Session, orders); !s.Created.IsZero() {
			out = append(out, s)
		}
	}
	return out, nil
}

// accepted is a session as the commands that wait for it say.
func accepted(id belay.SessionID, orders []belay.Order) view.Session {
	s := view.Session{ID: id}
	for _, o := range orders {
		s.Updated = o.Time
		switch c := o.Command.(type) {
		case belay.CreateSession:
			s.Created, s.Workspace, s.Title = o.Time, c.Workspace, c.Title
			s.Mode, s.Provider, s.Model = c.Settings.Mode, c.Settings.Provider, c.Settings.Model
		case belay.SubmitWork:
			s.Threads = append(s.Threads, view.Thread{ID: c.Thread, Queue: []view.Turn{{ID: c.Turn, Status: view.Queued, Submitted: o.Time}}})
		}
	}
	return s
}

// findSession is one session by its id or the beginning of it.
func findSession(ctx context.Context, st store.Store, id string) (view.Session, error) {
	if err := view.Catchup(ctx, st); err != nil {
		return view.Session{}, err
	}
	s, err := view.SessionByID(ctx, st, id)
	if err == nil || belay.CodeOf(err) != belay.CodeNotFound {
		return s, err
	}
	fresh, ferr := acceptedSessions(ctx, st)
	if ferr != nil {
		return s, ferr
	}
	fresh = slices.DeleteFunc(fresh, func(s view.Session) bool { return id == "" || !strings.HasPrefix(string(s.ID), id) })
	if len(fresh) == 1 {
		return fresh[0], nil
	}
	return s, err
}

// threadState folds a thread.
func threadState(ctx context.Context, st store.Store, id belay.ThreadID) (*thread.State, error) {
	d, _, _, err := engine.Load(ctx, st, id.Stream())
	if err != nil {
		return nil, err
	}
	return d.(*thread.Decider).State(), nil
}

// sessionID is a session of the store by its id, the beginning of it, or as
// the last of the workspace.
func (a *app) sessionID(ctx context.Context, st store.Store, id string, last bool) (belay.SessionID, error) {
	if !last {
		s, err := findSession(ctx, st, id)
		return s.ID, err
	}
	ws, err := a.workspace()
	if err != nil {
		return "", err
	}
	all, err := listSessions(ctx, st, view.Filter{Workspace: ws, Archived: new(bool)})
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", belay.Errorf(belay.CodeNotFound, "this workspace has no session").At(ws).WithHint("belay run TEXT, or belay sessions list --all")
	}
	// A call that a person made by hand is a session too, but not what --last means.
	if i := slices.IndexFunc(all, func(s view.Session) bool { return s.Provider != direct.Name }); i > 0 {
		return all[i].ID, nil
	}
	return all[0].ID, nil
}
