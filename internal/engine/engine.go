// Package engine drives streams: it appends what deciders decide, performs what
// they want, and hands the outcome back as facts. It promises that nothing is
// performed before the facts that announce it are durable, that one goroutine
// owns a stream's state, and that when a call returns its goroutines are gone.
//
// Drive is the loop of one stream; Session runs the streams of a session until
// they rest; Submit brings a command to whoever owns the session.
package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/quota"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
)

// Config is what an engine is made of. Store, Owner and Performers must be set.
type Config struct {
	Store      store.Run
	Owner      store.Owner
	Performers Performers
	Secrets    *secret.Scrubber  // values that never reach the store; nil knows none
	Now        func() time.Time  // nil is time.Now
	Point      func(kind string) // called before and after every append and effect; for crash tests
	Stall      time.Duration     // how long an effect whose time is up may hold its thread; 0 is DefaultStall
}

// Engine drives sessions of one store.
type Engine struct {
	c      Config
	claims claims
	stuck  atomic.Int64 // effects that were given up

	deciding chan struct{} // one decision on a stream of the system session at a time; has a token then
}

// New checks the configuration.
func New(c Config) (*Engine, error) {
	if c.Store == nil || c.Performers == nil || c.Owner.ID == "" {
		return nil, fmt.Errorf("engine: store, performers and owner must be set")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Secrets == nil {
		c.Secrets = &secret.Scrubber{}
	}
	if c.Point == nil {
		c.Point = func(string) {}
	}
	return &Engine{c: c, deciding: make(chan struct{}, 1),
		claims: claims{st: c.Store, owner: c.Owner, owned: map[belay.SessionID]*ownership{}}}, nil
}

// NewDecider is the empty decider of a stream's kind, and the version of its cached state.
func NewDecider(s belay.StreamID) (core.Decider, string, error) {
	switch s.Kind() {
	case belay.KindSession:
		return session.New(s), session.Version, nil
	case belay.KindThread:
		return thread.New(s), thread.Version, nil
	case belay.KindTask:
		return task.New(s), task.Version, nil
	case belay.KindLedger:
		return quota.New(s), quota.Version, nil
	}
	return nil, "", belay.Errorf(belay.CodeRequires, "this build has no decider for streams of kind %q", s.Kind()).At(string(s))
}

// Load folds a stream: the cached state and what came after it.
func Load(ctx context.Context, st store.Run, s belay.StreamID) (core.Decider, int64, time.Time, error) {
	at, err := load(ctx, st, s)
	return at.d, at.seq, at.last, err
}

// load is a stream as its facts say it is.
func load(ctx context.Context, st store.Run, s belay.StreamID) (at streamState, err error) {
	if at.d, at.vers, err = NewDecider(s); err != nil {
		return streamState{}, err
	}
	cached, err := st.LoadState(ctx, s, at.vers)
	if err != nil {
		return streamState{}, err
	}
	if cached != nil {
		if at.d.Load(cached.Data) == nil {
			at.seq, at.saved = cached.Seq, cached.Seq
		} else if at.d, _, err = NewDecider(s); err != nil { // an unreadable cache is no cache
			return streamState{}, err
		}
	}
	for ev, err := range st.Read(ctx, s, max(at.seq-1, 0)) {
		if err == nil {
			err = known(s, ev)
		}
		if err != nil {
			return streamState{}, err
		}
		if ev.Seq > at.seq+1 {
			return streamState{}, store.Damaged(store.RowName(s, at.seq+1), "facts are not there")
		}
		if ev.Seq > at.seq {
			at.d.Apply(ev)
		}
		at.seq, at.last = max(at.seq, ev.Seq), ev.Time
	}
	return at, nil
}

// known refuses a fact that needs a newer build.
func known(s belay.StreamID, ev event.Envelope) error {
	if ev.Requires <= requiresKnown {
		return nil
	}
	return belay.Errorf(belay.CodeRequires, "event %d needs a newer belay (level %d, this one knows %d)", ev.Seq, ev.Requires, requiresKnown).
		At(string(s)).WithHint("update belay; nothing was changed")
}

// requiresKnown is the newest level of Envelope.Requires this build can act on.
const requiresKnown = 1
