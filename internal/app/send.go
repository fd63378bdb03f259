package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/store"
)

// Order is a command of whoever sent the request.
func (r *Call) Order(id belay.CommandID, to belay.SessionID, stream belay.StreamID, c belay.Command) belay.Order {
	return belay.Order{ID: id, Principal: r.By.String(), Time: r.Now().UTC(), Session: to, Stream: stream, Command: c}
}

// Keyed is an id that follows from the request's Idempotency-Key: that of another
// token, and of another command, gives another.
func (r *Call) Keyed(prefix string) string {
	return belay.DeriveID(prefix, belay.StreamID("key/"+r.By.TokenID+"/"+r.Command+"/"+r.Key), 0, 0)
}

// Send submits a command to its stream and waits for the result. Repeated under
// its Idempotency-Key it gets the same answer.
func (r *Call) Send(ctx context.Context, session belay.SessionID, stream belay.StreamID, c belay.Command) (*Result, error) {
	id := belay.CommandID(belay.NewID(belay.PrefixCommand))
	if r.Key != "" {
		id = belay.CommandID(r.Keyed(belay.PrefixCommand))
	}
	ans, err := r.Engine.Submit(ctx, r.Order(id, session, stream, c))
	if belay.CodeOf(err) == belay.CodeIDConflict {
		err = input.At("header Idempotency-Key", err)
	}
	if err != nil {
		return nil, err
	}
	r.Drives.Enqueue(session, 0)
	t := &Result{Position: ans.Position, Command: id, Status: Done, Session: session}
	switch {
	case ans.Pending:
		t.Status = Accepted
	case len(ans.Events) == 0 && r.Key != "":
		if t.Repeated, err = r.answered(ctx, stream, id); err != nil {
			return nil, err
		}
	}
	return t, r.End(ctx, t)
}

// Refuse has a session record that a command was refused before it could be sent, and
// returns why. said is the command with the refusal. The caller's key isn't used up by it.
func (r *Call) Refuse(ctx context.Context, id belay.SessionID, err error, said func(*belay.Error) belay.Command) error {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok {
		return err
	}
	c := said(&belay.Error{Code: e.Code, Message: event.CutText(err.Error(), MaxReason), Hint: event.CutText(e.Hint, MaxReason)})
	if _, failed := r.Engine.Submit(ctx, r.Order(belay.CommandID(belay.NewID(belay.PrefixCommand)), id, id.Stream(), c)); failed != nil && belay.CodeOf(failed) != e.Code {
		return failed
	}
	return err
}

// ToSubagent sends a sub-agent a text. turn is the id of its new turn; empty: one is made.
func (r *Call) ToSubagent(ctx context.Context, s *session.State, id belay.SubagentID, turn belay.TurnID, text belay.Content, interrupt bool) (*Result, error) {
	child := s.Family.Find(id)
	if child == nil {
		return nil, input.At("subagentId", NoAgent(s, id))
	}
	if child.Outcome != "" { // what it is told is new work
		book, _, err := r.Workspaces.AgentRecords(ctx)
		if err == nil {
			err = book.AgentControl(child.Agent).Refuses(child.Agent, "")
		}
		if err != nil {
			return nil, input.At("subagentId", err)
		}
	}
	if turn == "" {
		turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
		if r.Key != "" {
			turn = belay.TurnID(r.Keyed(belay.PrefixTurn))
		}
	}
	told, err := r.Send(ctx, s.Session, s.Session.Stream(), belay.SendSubagentInput{Subagent: id, Turn: turn, Text: text, Interrupt: interrupt})
	if err == nil {
		told.Task = child.Task
	}
	return With(told, err, child.Thread, turn)
}

// answered finds the outcome of a repeated command: its refusal is its answer
// again.
func (r *Call) answered(ctx context.Context, s belay.StreamID, id belay.CommandID) (bool, error) {
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

// Known is a session that there is, if only accepted.
func (r *Runtime) Known(ctx context.Context, id belay.SessionID) (*session.State, error) {
	if err := input.Named("sessionId", string(id)); err != nil {
		return nil, err
	}
	s, err := StateOf(ctx, r.Store, id)
	if err == nil && s.Session == "" || errors.Is(err, store.ErrNotFound) {
		err = NoSession(id)
	}
	return s, input.At("sessionId", err)
}

// ThreadOf is a thread of a session: the one that is named, else the newest.
func (r *Runtime) ThreadOf(ctx context.Context, s *session.State, id belay.ThreadID) (*thread.State, error) {
	if id == "" && len(s.Threads) > 0 {
		id = s.Threads[len(s.Threads)-1]
	}
	if id == "" || !slices.Contains(s.All(), id) {
		return nil, input.At("threadId", belay.Errorf(belay.CodeNotFound, "the session has no thread %s", id).At(string(s.Session)))
	}
	return r.Thread(ctx, id)
}

// End gives an answer that caused no fact the end of the log as its position.
func (r *Runtime) End(ctx context.Context, t *Result) (err error) {
	if t.Position == 0 {
		t.Position, err = r.Store.End(ctx)
	}
	return err
}

// Cut shortens a text to so many characters, in one line.
func Cut(s string, most int) string {
	s, _, _ = strings.Cut(s, "\n")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// With adds the thread and the turn to the result of a command, unless it failed.
func With(r *Result, err error, th belay.ThreadID, turn belay.TurnID) (*Result, error) {
	if err != nil {
		return nil, err
	}
	r.Thread, r.Turn = th, turn
	return r, nil
}

// Hinted returns an error with a hint for callers that know routes, in place of the
// hint for a person at a terminal. For one at the terminal it stays as it is.
func (c *Call) Hinted(err error, hint string) error {
	if !c.Remote {
		return err
	}
	return WithHint(err, hint)
}

// WithHint returns an error with another hint, if it has a code; where codes are named,
// one of them.
func WithHint(err error, hint string, codes ...belay.Code) error {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok || len(codes) > 0 && !slices.Contains(codes, e.Code) {
		return err
	}
	said := *e
	return said.WithHint("%s", hint)
}
