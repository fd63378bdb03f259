package engine

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// maxResting bounds the sessions whose streams are remembered as the last
// command that was handled for them left them.
const maxResting = 128

// stateCache are sessions at rest to which commands came. A session is written only
// under a claim, and each claim has the next epoch: the remembered state is
// current if the next claim of the session is this engine's too.
type stateCache struct {
	mu    sync.Mutex
	at    map[belay.SessionID]*rested
	clock int64
}

// rested is a session as the claim of an epoch left it.
type rested struct {
	epoch int64
	used  int64
	known map[belay.StreamID]streamState
}

func (r *stateCache) forget(id belay.SessionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.at, id)
}

// recall takes what is remembered of a session that was claimed, with the claim's
// epoch. It is removed until it is remembered again.
func (r *stateCache) recall(id belay.SessionID, epoch int64) map[belay.StreamID]streamState {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.at[id]
	delete(r.at, id)
	if was == nil || was.epoch+1 != epoch {
		return map[belay.StreamID]streamState{}
	}
	return was.known
}

// remember keeps the session's own stream and its threads; tasks are many, and
// get one command. A stream in which something runs is taken over by each claim.
func (r *stateCache) remember(id belay.SessionID, epoch int64, known map[belay.StreamID]streamState) {
	maps.DeleteFunc(known, func(s belay.StreamID, at streamState) bool {
		return at.d == nil || at.d.InFlight() || s.Kind() == belay.KindTask
	})
	if len(known) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	r.at[id] = &rested{epoch: epoch, used: r.clock, known: known}
	if len(r.at) <= maxResting {
		return
	}
	oldest := id
	for s, other := range r.at {
		if other.used < r.at[oldest].used {
			oldest = s
		}
	}
	delete(r.at, oldest)
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
	if e.resting.look(id, s, head.Seq, look) {
		return nil
	}
	d, _, _, err := Load(ctx, e.c.Store, s)
	if err == nil {
		look(d)
	}
	return err
}

// look shows a stream that is remembered as it is at a sequence; false: it isn't.
func (r *stateCache) look(id belay.SessionID, s belay.StreamID, seq int64, look func(core.Decider)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.at[id]
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
