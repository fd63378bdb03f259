package engine

import (
	"context"
	"errors"
	"maps"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// maxResting bounds the sessions whose streams are remembered as the last
// command that was handled for them left them.
const maxResting = 128

// stateCache are sessions at rest to which commands came. A session is written only
// under a claim, and each claim has the next epoch: the remembered state is
// current if the next claim of the session is this engine's too. The engine's
// lock guards it.
type stateCache struct {
	at    map[belay.SessionID]*rested
	clock int64
}

// rested is a session as the claim of an epoch left it.
type rested struct {
	epoch int64
	used  int64
	known map[belay.StreamID]streamState
}

func newResting() stateCache { return stateCache{at: map[belay.SessionID]*rested{}} }

func (r *stateCache) forget(id belay.SessionID) { delete(r.at, id) }

// recall takes what is remembered of a session that was claimed. It is removed
// until it is remembered again.
func (e *Engine) recall(own *ownership) map[belay.StreamID]streamState {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.resting.at[own.session]
	e.resting.forget(own.session)
	if was == nil || was.epoch+1 != own.epoch {
		return map[belay.StreamID]streamState{}
	}
	return was.known
}

// remember keeps the session's own stream and its threads; tasks are many, and
// get one command. A stream in which something runs is taken over by each claim.
func (e *Engine) remember(own *ownership, known map[belay.StreamID]streamState) {
	maps.DeleteFunc(known, func(s belay.StreamID, at streamState) bool {
		return at.d == nil || at.d.InFlight() || s.Kind() == belay.KindTask
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if own.users > 1 || len(known) == 0 { // another holds the claim, and may write
		return
	}
	r := &e.resting
	r.clock++
	r.at[own.session] = &rested{epoch: own.epoch, used: r.clock, known: known}
	if len(r.at) <= maxResting {
		return
	}
	oldest := own.session
	for id, other := range r.at {
		if other.used < r.at[oldest].used {
			oldest = id
		}
	}
	r.forget(oldest)
}

// Look shows a stream's decider as its facts say it is. What look does with it
// is quick, changes nothing and keeps nothing of it.
func (e *Engine) Look(ctx context.Context, id belay.SessionID, s belay.StreamID, look func(core.Decider)) error {
	head, err := e.c.Store.Head(ctx, s)
	if errors.Is(err, store.ErrNotFound) { // it has no facts
		d, _, err := NewDecider(s)
		if err == nil {
			look(d)
		}
		return err
	}
	if err != nil {
		return err
	}
	if e.lookResting(id, s, head.Seq, look) {
		return nil
	}
	d, _, _, err := Load(ctx, e.c.Store, s)
	if err == nil {
		look(d)
	}
	return err
}

// lookResting is Look for a stream that is remembered as it is now.
func (e *Engine) lookResting(id belay.SessionID, s belay.StreamID, seq int64, look func(core.Decider)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.resting.at[id]
	if was == nil {
		return false
	}
	at, ok := was.known[s]
	if !ok || at.seq != seq {
		return false
	}
	look(at.d)
	return true
}
