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
// command that was handled for them left them, and maxStanding the streams of one.
const (
	maxResting  = 128
	maxStanding = 16
)

// streamStates are streams of a session as they were left.
type streamStates map[belay.StreamID]streamState

// stateCache are sessions to which commands came. A session is written only under
// a claim, and each claim has the next epoch: the remembered states are current
// under that claim, until they are taken, and if the next claim of the session is
// this engine's too.
type stateCache struct {
	mu    sync.Mutex
	at    map[belay.SessionID]*sessionStates
	clock int64
}

// sessionStates is a session as it was left under the claim of an epoch.
type sessionStates struct {
	epoch   int64
	used    int64
	streams streamStates
}

// take takes out what is remembered of a session that is claimed, with the claim's
// epoch.
func (c *stateCache) take(id belay.SessionID, epoch int64) streamStates {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.at[id]
	delete(c.at, id)
	if was == nil || was.epoch != epoch && was.epoch+1 != epoch {
		return streamStates{}
	}
	return was.streams
}

// remember keeps streams of a session. Of many those of its tasks aren't worth it,
// which get one command. A stream in which something runs is taken over by each
// claim.
func (c *stateCache) remember(id belay.SessionID, epoch int64, streams streamStates) {
	maps.DeleteFunc(streams, func(s belay.StreamID, at streamState) bool {
		return at.d == nil || at.d.InFlight() || len(streams) > maxStanding && s.Kind() == belay.KindTask
	})
	if len(streams) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	c.at[id] = &sessionStates{epoch: epoch, used: c.clock, streams: streams}
	if len(c.at) <= maxResting {
		return
	}
	oldest := id
	for s, other := range c.at {
		if other.used < c.at[oldest].used {
			oldest = s
		}
	}
	delete(c.at, oldest)
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
	if e.states.look(id, s, head.Seq, look) {
		return nil
	}
	d, _, _, err := Load(ctx, e.c.Store, s)
	if err == nil {
		look(d)
	}
	return err
}

// look shows a stream that is remembered as it is at a sequence; false: it isn't.
func (c *stateCache) look(id belay.SessionID, s belay.StreamID, seq int64, look func(core.Decider)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.at[id]
	if was == nil || was.streams[s].d == nil || was.streams[s].seq != seq {
		return false
	}
	look(was.streams[s].d)
	return true
}
