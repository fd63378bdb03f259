package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/store"
)

// order is a command of whoever sent the request.
func (r *request) order(id belay.CommandID, to belay.SessionID, stream belay.StreamID, c belay.Command) belay.Order {
	return belay.Order{ID: id, Principal: r.by.String(), Time: r.now().UTC(), Session: to, Stream: stream, Command: c}
}

// keyed is an id that follows from the request's Idempotency-Key: that of another
// token, and of another command, gives another.
func (r *request) keyed(prefix string) string {
	return belay.DeriveID(prefix, belay.StreamID("key/"+r.by.TokenID+"/"+r.command+"/"+r.key), 0, 0)
}

// send submits a command to its stream and waits for the result. Repeated under
// its Idempotency-Key it gets the same answer.
func (r *request) send(ctx context.Context, session belay.SessionID, stream belay.StreamID, c belay.Command) (*CommandResult, error) {
	id := belay.CommandID(belay.NewID(belay.PrefixCommand))
	if r.key != "" {
		id = belay.CommandID(r.keyed(belay.PrefixCommand))
	}
	ans, err := r.Engine.Submit(ctx, r.order(id, session, stream, c))
	if belay.CodeOf(err) == belay.CodeIDConflict {
		err = problem.At("header Idempotency-Key", err)
	}
	if err != nil {
		return nil, err
	}
	r.drives.enqueue(session, 0)
	t := &CommandResult{Position: ans.Position, Command: id, Status: done, Session: session}
	switch {
	case ans.Pending:
		t.Status = notYet
	case len(ans.Events) == 0 && r.key != "":
		if t.Repeated, err = r.answered(ctx, stream, id); err != nil {
			return nil, err
		}
	}
	return t, r.end(ctx, t)
}

// answered finds the outcome of a repeated command: its refusal is its answer
// again.
func (r *request) answered(ctx context.Context, s belay.StreamID, id belay.CommandID) (bool, error) {
	for ev, err := range r.Store.Read(ctx, s, 0) {
		if err != nil {
			return false, err
		}
		if ev.IDs.Request != id {
			continue
		}
		if m, ok := ev.Data.(event.ChannelMessage); ok && m.Kind == "audit" {
			return true, &belay.Error{Code: belay.Code(m.Code), Message: m.Message, Hint: m.Hint}
		}
		return true, nil
	}
	return false, nil
}

// known is a session that there is.
func (r *request) known(ctx context.Context, id belay.SessionID) (*session.State, error) {
	if err := named("sessionId", string(id)); err != nil {
		return nil, err
	}
	s, err := r.session(ctx, id)
	if err == nil && s.Session == "" || errors.Is(err, store.ErrNotFound) {
		err = noSession(id)
	}
	return s, problem.At("sessionId", err)
}

// threadOf is a thread of a session: the one that is named, else the newest.
func (r *request) threadOf(ctx context.Context, s *session.State, id belay.ThreadID) (*thread.State, error) {
	if id == "" && len(s.Threads) > 0 {
		id = s.Threads[len(s.Threads)-1]
	}
	if id == "" || !slices.Contains(s.Threads, id) {
		return nil, problem.At("threadId", belay.Errorf(belay.CodeNotFound, "the session has no thread %s", id).At(string(s.Session)))
	}
	return r.thread(ctx, id)
}

// end gives an answer that caused no fact the end of the log as its position.
func (r *request) end(ctx context.Context, t *CommandResult) (err error) {
	if t.Position == 0 {
		t.Position, err = r.Store.End(ctx)
	}
	return err
}

// cut shortens a text to so many characters, in one line.
func cut(s string, most int) string {
	s, _, _ = strings.Cut(s, "\n")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
