package app

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// ListSessions returns the sessions of a store, the one that changed last first:
// also those that were accepted and of which nothing was handled yet.
func ListSessions(ctx context.Context, st store.Store, f view.Filter) ([]view.Session, error) {
	if err := view.Catchup(ctx, st); err != nil {
		return nil, err
	}
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
	if f.Limit > 0 && len(all) > f.Limit {
		all = all[:f.Limit]
	}
	return all, nil
}

// acceptedSessions are the sessions of which the log knows nothing yet: a
// process may die right after it accepted the work.
func acceptedSessions(ctx context.Context, st store.Store) ([]view.Session, error) {
	rows, err := st.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	var out []view.Session
	for _, row := range rows {
		if row.Stream != row.Session.Stream() {
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

// FindSession returns a session by its id or the beginning of it, also one that was accepted
// and of which nothing was handled yet.
func FindSession(ctx context.Context, st store.Store, id string) (view.Session, error) {
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
	fresh = slices.DeleteFunc(fresh, func(s view.Session) bool { return id == "" || !view.Named(string(s.ID), id) })
	if len(fresh) == 1 {
		return fresh[0], nil
	}
	return s, err
}

// PastOf is the history of a session's newest thread.
func PastOf(ctx context.Context, st store.Store, id belay.SessionID, threads []belay.ThreadID) (*history.Past, error) {
	none := belay.Errorf(belay.CodeBadState, "it has no turn yet").At(string(id)).WithHint("belay sessions resume %s", id)
	if len(threads) == 0 {
		return nil, none
	}
	p, err := history.ReadPast(ctx, st, threads[len(threads)-1])
	if err == nil && p.Seq == 0 {
		return nil, none
	}
	return p, err
}
