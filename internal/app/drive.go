package app

import (
	"context"
	"errors"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
)

// Drive runs a session until it rests: it claims it, settles how it uses its
// workspace, and gives it back.
func (r *Runtime) Drive(ctx context.Context, id belay.SessionID) (err error) {
	epoch, release, err := r.Engine.Own(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := r.Engine.Settle(ctx, id); err != nil {
		return err
	}
	s, err := r.Session(ctx, id)
	if err != nil {
		return err
	}
	if s.Session == "" { // refused commands of a session that never was
		return nil
	}
	if busy, err := r.settleUse(ctx, s, epoch); err != nil || !busy {
		return err
	}
	return r.Engine.Session(ctx, id, func([]store.LaneRow) bool { return r.ProgramsGoOn(context.WithoutCancel(ctx), s.Session) })
}

// ProgramsGoOn reports whether a session that rests is driven on for its programs in the
// background, which end with the drive: a turn waits for an answer, or a person has the
// conversation open. It costs a place to run.
func (r *Runtime) ProgramsGoOn(ctx context.Context, id belay.SessionID) bool {
	s, err := r.Session(ctx, id)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(s.All(), func(id belay.ThreadID) bool {
		th, err := r.Thread(ctx, id)
		return err == nil && (th.Turn != nil && slices.ContainsFunc(th.Procs, func(p thread.Proc) bool { return p.Left && !p.Over }) || r.Open && th.Background() != "")
	})
}

// settleUse makes the session its workspace's writer, if its rules allow changes; its
// threads know before they are driven. A session that isn't busy has nothing to do and
// claims nothing: it would keep another from writing that begins in the same moment. One
// with a lane that is runnable is busy, whatever it is for: else who runs it would begin
// it again and again.
func (r *Runtime) settleUse(ctx context.Context, s *session.State, epoch int64) (busy bool, err error) {
	rows, err := r.Store.Lanes(ctx, s.Session)
	if err != nil {
		return false, err
	}
	var more []policy.Grant
	busy = len(s.Budget.Slices) > 0 || slices.ContainsFunc(rows, func(row store.LaneRow) bool { return row.Runnable }) // slices of quotas are to be returned
	for _, th := range s.All() {
		state, err := r.Thread(ctx, th)
		if err != nil {
			return false, err
		}
		more = append(more, state.Grants...)
		busy = busy || state.Busy()
	}
	if !busy {
		return false, nil
	}
	changes, err := r.Workspaces.MayChange(ctx, s, more)
	if err != nil {
		return true, err
	}
	var use belay.WorkspaceUse
	if changes {
		if use, _, err = r.ClaimWriter(ctx, s.Session, epoch, s.Workspace, s.Settings.Share); err != nil {
			return true, err
		}
	}
	if use == s.Use {
		return true, nil
	}
	order := belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: "runtime", Time: r.Now().UTC(),
		Session: s.Session, Stream: s.Session.Stream(), Command: belay.UseWorkspace{Use: &use}}
	if err := r.Store.Enqueue(ctx, order); err != nil {
		return true, err
	}
	return true, r.Engine.Settle(ctx, s.Session)
}

// ClaimWriter makes a session that this process owns the writer of its workspace, or
// one of its writers if share is set. When another session is the writer, this one
// only reads, and the other is returned.
func (r *Runtime) ClaimWriter(ctx context.Context, id belay.SessionID, epoch int64, workspace string, share bool) (belay.WorkspaceUse, *store.Writer, error) {
	err := r.Store.ClaimWriter(ctx, id, epoch, r.Workspaces.Root(workspace), share)
	other, taken := errors.AsType[*store.WriterError](err)
	switch {
	case taken:
		return belay.WorkspaceUse{Use: belay.UseReader, Writer: other.Writer.Session, Path: other.Writer.Path}, &other.Writer, nil
	case share:
		return belay.WorkspaceUse{Use: belay.UseShared}, nil, err
	}
	return belay.WorkspaceUse{Use: belay.UseWriter}, nil, err
}

// ThreadOfProcess returns the thread that a program of a session runs in or, if none
// says that it runs, ran in; empty if there is no such program.
func (r *Runtime) ThreadOfProcess(ctx context.Context, s *session.State, id belay.ProcessID) (belay.ThreadID, error) {
	for _, th := range s.All() {
		state, err := r.Thread(ctx, th)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(state.Procs, func(p thread.Proc) bool { return p.IDs.Process == id }) {
			return th, nil
		}
	}
	for _, th := range s.All() {
		if ran, err := r.ranIn(ctx, th, id); ran || err != nil {
			return th, err
		}
	}
	return "", nil
}

// ranIn reports whether a program ran in a thread.
func (r *Runtime) ranIn(ctx context.Context, th belay.ThreadID, id belay.ProcessID) (bool, error) {
	for ev, err := range r.Store.Read(ctx, th.Stream(), 0) {
		if err != nil {
			return false, err
		}
		if _, ok := ev.Data.(event.ProcessStarted); ok && ev.IDs.Process == id {
			return true, nil
		}
	}
	return false, nil
}
