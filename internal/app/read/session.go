package read

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/snapshot"
)

// Sessions is a list of sessions, the one that changed last first.
type Sessions struct {
	Fresh
	Sessions []SessionListed `json:"sessions"`
	Total    int             `json:"total"`          // that the query means, also before and behind these
	More     bool            `json:"more"`           // there are others behind these
	Next     string          `json:"next,omitempty"` // before=NEXT are those
	Folders  []string        `json:"folders"`        // that sessions of the store have, those of the most sessions first; at most 50
	Tags     []string        `json:"tags"`           // likewise
}

// SessionListed is a session in a list.
type SessionListed struct {
	view.Session
	Driven bool `json:"driven,omitempty"` // a process drives it now; else what looks as if it ran is at rest
}

// mostSessions is how many sessions a list may have.
const mostSessions = 500

// sessions lists: status, outcome, workspace, q, tag (more than once: all of them),
// archived, before, limit.
func (v *Reads) sessions(ctx context.Context, q Query) (*Sessions, error) {
	f := view.Filter{Workspace: q.Values.Get("workspace"), Status: q.Values.Get("status"), Text: q.Values.Get("q"), Outcome: belay.Outcome(q.Values.Get("outcome")), Tags: q.Values["tag"]}
	if s := q.Values.Get("archived"); s != "" {
		f.Archived = new(s == "true")
	}
	limit, err := number(q, "limit", 100, 1, mostSessions)
	if err == nil {
		f.Before, err = placeIn(q.Values.Get("before"))
	}
	if err != nil {
		return nil, err
	}
	if len(f.Text) > maxQuestion {
		return nil, input.At("query q", belay.Errorf(belay.CodeTooLarge, "the text has %d bytes; at most %d are taken", len(f.Text), maxQuestion).WithHint("look for fewer words"))
	}
	fresh, err := v.folded(ctx, q)
	if err == nil && f.Text != "" {
		if f.Found, err = v.found(ctx, f.Text); belay.CodeOf(err) == belay.CodeUsage {
			err = nil // it has no word: names may have it anyway
		}
	}
	if err != nil {
		return nil, err
	}
	f.Limit = int(limit) + 1
	page, err := view.PageOf(ctx, v.Store, f)
	if err != nil {
		return nil, err
	}
	all := page.Sessions
	out := &Sessions{Fresh: fresh, Sessions: []SessionListed{}, Total: page.Total, Folders: page.Folders, Tags: page.Tags, More: len(all) > int(limit)}
	for _, s := range all[:min(len(all), int(limit))] {
		l := SessionListed{Session: s}
		if t := s.Turn(); t != nil && t.Status != view.Ended {
			owner, err := v.Store.OwnerOf(ctx, s.ID)
			if err != nil {
				return nil, err
			}
			l.Driven = owner != nil
		}
		out.Sessions = append(out.Sessions, l)
	}
	if out.More {
		last := out.Sessions[len(out.Sessions)-1]
		out.Next = strconv.FormatInt(last.Updated.UnixNano(), 10) + "." + string(last.ID)
	}
	return out, nil
}

// placeIn is the place in a list that a cursor names; nil: none.
func placeIn(cursor string) (*view.Session, error) {
	if cursor == "" {
		return nil, nil
	}
	at, id, ok := strings.Cut(cursor, ".")
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || belay.CheckID("the id", id) != nil {
		return nil, input.At("query before", belay.Errorf(belay.CodeBadCursor, "%q is no place in a list of sessions", input.Shown(cursor)).WithHint("the answer before has it as next"))
	}
	return &view.Session{ID: belay.SessionID(id), Updated: time.Unix(0, ns)}, nil
}

// folded is fresh, and the view of sessions has come as far.
func (v *Reads) folded(ctx context.Context, q Query) (Fresh, error) {
	f, err := v.fresh(ctx, q)
	if err == nil {
		err = v.Views.Catchup(ctx)
	}
	return f, err
}

// Session is a session's shell: everything but its history.
type Session struct {
	Fresh
	Session view.Session `json:"session"`
	Driven  bool         `json:"driven"` // a process drives it now; else what looks as if it ran is at rest
}

func (v *Reads) session(ctx context.Context, q Query) (*Session, error) {
	id, err := pathID(q)
	if err != nil {
		return nil, err
	}
	f, err := v.folded(ctx, q)
	if err != nil {
		return nil, err
	}
	row, err := v.row(ctx, belay.SessionID(id))
	if err != nil {
		return nil, err
	}
	owner, err := v.Store.OwnerOf(ctx, row.ID)
	return &Session{f, row, owner != nil}, err
}

// row is a session's row, by its whole id.
func (v *Reads) row(ctx context.Context, id belay.SessionID) (view.Session, error) {
	row, err := view.SessionByID(ctx, v.Store, string(id))
	if code := belay.CodeOf(err); err != nil && (code == belay.CodeNotFound || code == belay.CodeUsage) || err == nil && row.ID != id {
		err = unknown("session", string(id))
	}
	return row, err
}

// Thread is a thread of a session.
type Thread struct {
	Fresh
	Session belay.SessionID `json:"sessionId"`
	Thread  view.Thread     `json:"thread"`
	Actions []view.Action   `json:"actions"` // its open questions, the oldest first
	Driven  bool            `json:"driven"`
}

func (v *Reads) thread(ctx context.Context, q Query) (*Thread, error) {
	scope, err := v.ofThread(ctx, q)
	if err != nil {
		return nil, err
	}
	s, err := v.session(ctx, Query{ID: string(scope.Session), Values: q.Values})
	if err != nil {
		return nil, err
	}
	id := belay.ThreadID(scope.Stream.ID())
	out := &Thread{Fresh: s.Fresh, Session: s.Session.ID, Thread: view.Thread{ID: id}, Actions: []view.Action{}, Driven: s.Driven}
	if i := slices.IndexFunc(s.Session.Threads, func(t view.Thread) bool { return t.ID == id }); i >= 0 { // a row keeps the newest
		out.Thread = s.Session.Threads[i]
	}
	for _, a := range s.Session.Actions {
		if a.Thread == id {
			out.Actions = append(out.Actions, a)
		}
	}
	return out, nil
}

// Tasks are the tasks of a session, the newest last.
type Tasks struct {
	Fresh
	Session belay.SessionID `json:"sessionId"`
	Tasks   []view.Task     `json:"tasks"`
	Total   int             `json:"total"` // older ones are only counted
}

func (v *Reads) tasks(ctx context.Context, q Query) (*Tasks, error) {
	s, err := v.session(ctx, q)
	if err != nil {
		return nil, err
	}
	return &Tasks{s.Fresh, s.Session.ID, append([]view.Task{}, s.Session.Tasks...), s.Session.Counts.Tasks}, nil
}

// snapshot is the standard's snapshot of a session, and nothing besides.
func (v *Reads) snapshot(ctx context.Context, q Query) (*snapshot.Session, error) {
	s, err := v.SessionSnapshot(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.Snapshot, nil
}
