package app

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core/budget"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// Fresh waits until the log has come as far as after, and the view of sessions too.
func (r *Runtime) Fresh(ctx context.Context, after store.Position) (Fresh, error) {
	if after < 0 {
		return Fresh{}, input.At("after", belay.Errorf(belay.CodeBadCursor, "%d is no position", after).WithHint("a command's answer has one"))
	}
	f, err := read.WaitFor(ctx, r.Store, after)
	if err != nil {
		return f, err
	}
	return f, r.Reads.Views.Catchup(ctx)
}

// NoSession refuses a session that there isn't.
func NoSession(id belay.SessionID) error {
	return belay.Errorf(belay.CodeNotFound, "there is no session %s", id).WithHint("GET /v1/sessions lists them")
}

// PlaceOf returns the workspace and settings of a session or, without one, those of a
// new session in a folder.
func (r *Runtime) PlaceOf(ctx context.Context, sid belay.SessionID, workspace string) (string, belay.Settings, error) {
	if sid != "" {
		s, err := r.Known(ctx, sid)
		if err != nil {
			return "", belay.Settings{}, err
		}
		return s.Workspace, s.Settings, nil
	}
	ws, err := r.Workspaces.Workspace(ctx, workspace)
	if err != nil {
		return "", belay.Settings{}, input.At("workspace", err)
	}
	settings, err := r.Workspaces.Settings(ctx, ws, nil, SettingsInput{})
	return ws, settings, err
}

// MayWiden refuses settings that would lead to fewer questions, if the caller
// may not answer questions.
func (r *Call) MayWiden(ctx context.Context, c SettingsInput, s *session.State) error {
	if r.By.Role.May(auth.Answer) {
		return nil
	}
	said := func(field, format string, args ...any) error {
		return input.At("settings."+field, belay.Errorf(belay.CodeForbidden, format, args...).WithHint("a token of role owner may"))
	}
	if len(c.Allow) > 0 {
		return said("allow", "a token of role %s may not allow tools beforehand", r.By.Role)
	}
	switch belay.Mode(c.Mode) {
	case "", belay.ModePlan, belay.ModeUntrusted, belay.ModeNever, s.Settings.Mode:
		return nil
	}
	if s.Session == "" {
		ws, err := r.Workspaces.Workspace(ctx, "")
		if err != nil {
			return err
		}
		usual, err := r.Workspaces.Settings(ctx, ws, nil, SettingsInput{})
		if err != nil || belay.Mode(c.Mode) == usual.Mode {
			return err
		}
	}
	return said("mode", "a token of role %s may not choose the mode %q", r.By.Role, input.Shown(c.Mode))
}

// Task is a task of a session that there is.
func (r *Runtime) Task(ctx context.Context, sid belay.SessionID, tid belay.TaskID) (*task.State, error) {
	if err := cmp.Or(input.Named("sessionId", string(sid)), input.Named("taskId", string(tid))); err != nil {
		return nil, err
	}
	d, _, _, err := engine.Load(ctx, r.Store, tid.Stream())
	if err != nil {
		return nil, err
	}
	s := d.(*task.Decider).State()
	if s.Task == "" || s.Session != sid {
		return nil, input.At("taskId", r.noTask(ctx, sid, tid))
	}
	return s, nil
}

// noTask refuses a task that a session hasn't got.
func (r *Runtime) noTask(ctx context.Context, sid belay.SessionID, tid belay.TaskID) error {
	row, err := r.Row(ctx, sid)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range row.Tasks {
		names = append(names, string(t.ID), t.Title)
	}
	return belay.Errorf(belay.CodeNotFound, "the session has no task %s", input.Shown(string(tid))).At(string(sid)).WithHint("%s", match.Hint(string(tid), names, "list_tasks lists them"))
}

// Row is a session as lists show it; empty if they haven't heard of it.
func (r *Runtime) Row(ctx context.Context, id belay.SessionID) (view.Session, error) {
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return view.Session{}, err
	}
	row, err := view.SessionByID(ctx, r.Store, string(id))
	if belay.CodeOf(err) == belay.CodeNotFound {
		return view.Session{ID: id}, nil
	}
	return row, err
}

// Spent is what a session has spent, as far as lists know it.
func (r *Runtime) Spent(ctx context.Context, id belay.SessionID) (belay.Amounts, error) {
	row, err := r.Row(ctx, id)
	return row.Spent(), err
}

// Update is the command that changes a session's settings. A budget that is less than
// what the session has spent is refused.
func (r *Runtime) Update(ctx context.Context, s *session.State, settings belay.Settings) (c belay.UpdateSession, err error) {
	c.Settings = settings
	if settings.Budget == s.Settings.Budget {
		return c, nil
	}
	if s.Budget.Limit == (belay.Amounts{}) {
		if c.Spent, err = r.Spent(ctx, s.Session); err != nil {
			return c, err
		}
	}
	_, _, err = s.Budget.Set(belay.SetBudget{Budget: settings.Budget, Spent: c.Spent})
	return c, err
}

// ParseRaise reads by how much a person raises a budget; an empty text is nothing.
func ParseRaise(text string) (belay.Amounts, error) {
	if text == "" {
		return belay.Amounts{}, nil
	}
	l, err := budget.Parse(text)
	if err == nil && !l.Raise {
		err = belay.Errorf(belay.CodeUsage, "%q is a limit, and the question is about a raise", input.Shown(text)).WithHint("+%s", l)
	}
	return l.Amounts, err
}

// Wake makes a session run soon if it has something to do, as far as its lanes
// tell.
func (r *Runtime) Wake(ctx context.Context, id belay.SessionID, priority int) {
	rows, err := r.Store.Lanes(ctx, id)
	if err == nil && !slices.ContainsFunc(rows, func(row store.LaneRow) bool { return row.Runnable || row.Inbox > 0 }) {
		r.Drives.ApplyLanes(rows)
		return
	}
	r.Drives.Enqueue(id, priority)
}

// Names reports whether a fact carries an id, or one that begins so, with or
// without its prefix, or ends so.
func Names(e event.Envelope, id string) bool {
	ids := e.IDs
	for _, have := range []string{string(e.ID()), string(ids.Session), string(ids.Thread), string(ids.Turn), string(ids.Task), string(ids.Run),
		string(ids.Step), string(ids.Call), string(ids.Action), string(ids.Process), string(ids.Request)} {
		_, rest, _ := strings.Cut(have, "_")
		if strings.HasPrefix(have, id) || rest != "" && view.Named(rest, id) {
			return true
		}
	}
	return false
}
