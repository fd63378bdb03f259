package app

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
)

// What surfaces read of sessions and threads as their facts say.
type (
	SessionState = session.State
	ThreadState  = thread.State
	Boundary     = thread.Boundary
	OpenQuestion = thread.Open
	PastTurn     = history.PastTurn
	Begun        = engine.Begun
)

// Lease is how long a claim of a session holds without being renewed.
const Lease = engine.Lease

// OpObeyed is the operation of a call that was stopped because it left something that
// another program runs or obeys.
const OpObeyed = policy.OpObeyed

// ModeLeast is the level of a boundary that a mode wants.
func ModeLeast(m belay.Mode) belay.Level { return policy.ModeLeast(m) }

// PlainOnly says what holds where nothing confines programs.
const PlainOnly = policy.PlainOnly

// LoadThread folds a thread; nil if no fact is in the stream, or it isn't a thread's.
func LoadThread(ctx context.Context, st store.Store, s belay.StreamID) (*ThreadState, error) {
	d, seq, _, err := engine.Load(ctx, st, s)
	if err != nil || seq == 0 {
		return nil, err
	}
	if t, ok := d.(*thread.Decider); ok {
		return t.State(), nil
	}
	return nil, nil
}

// LoadPast reads the past turns of a thread that are in force.
func LoadPast(ctx context.Context, st store.Store, id belay.ThreadID) ([]PastTurn, error) {
	past, err := history.ReadPast(ctx, st, id)
	if err != nil {
		return nil, err
	}
	return past.Turns, nil
}

// Unfinished reports whether a thread has a turn that hasn't ended.
func Unfinished(t *ThreadState) bool { return t != nil && (t.Turn != nil || len(t.Queue) > 0) }

// TurnOver reports whether a turn was submitted to a thread and has ended: alone, as
// part of another turn, or without having begun.
func TurnOver(t *ThreadState, turn belay.TurnID) bool {
	is := func(q thread.Queued) bool { return q.Turn == turn }
	if slices.ContainsFunc(t.Queue, is) || !slices.ContainsFunc(t.Known, func(k thread.Known) bool { return k.Turn == turn }) {
		return false
	}
	return t.Turn == nil || t.Turn.Turn != turn && !slices.ContainsFunc(t.Turn.Joined, is)
}
