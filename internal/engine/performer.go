package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Performers perform the effects of streams: they know how, and the engine when.
type Performers interface {
	// Of returns the performer of a stream, for as long as it is driven.
	Of(session belay.SessionID, stream belay.StreamID) Performer
	// Recorded receives a stream's facts that are durable now, in their order. It
	// keeps nothing of the slice.
	Recorded(ctx context.Context, stream belay.StreamID, facts []event.Envelope)
	// Supply hands a decider content that it misses in the form that others have it
	// in already, or reads it. It reports whether it could.
	Supply(d core.Decider, ref belay.Ref, read func() ([]byte, error)) bool
}

// Performer performs the effects of one stream. Perform, GiveUp and what Inspect and
// Arguments return may be called at the same time; the others belong to the goroutine
// that owns the decider.
type Performer interface {
	// Perform makes one attempt of an effect and returns what came of it. No facts
	// mean that this process leaves and the next one decides.
	Perform(ctx context.Context, run *Run, eff core.Effect) []core.Fact
	// Silence is how long an effect may give no sign of life; 0: as long as it likes.
	Silence(eff core.Effect) time.Duration
	// GiveUp returns the end of an effect that gave no sign of life for a time and
	// didn't end when it was cancelled, as far as that is known. late means that it was
	// cancelled for its silence, and not because it isn't wanted or its process leaves.
	GiveUp(eff core.Effect, late bool, silent time.Duration, now time.Time) []core.Fact
	// Leftover returns an effect that has to be performed before the stream is left,
	// though no decider wants it; nil: there is none (any more).
	Leftover() core.Effect

	// Inspect returns what completes decided questions with what they are asked about,
	// as it is in the world then; nil: there are none. Until that was done, nothing is
	// known of what they are asked about.
	Inspect(ctx context.Context, d core.Decider, decided []core.Fact) (complete func(context.Context) []core.Fact, err error)
	// Arguments returns what reads the arguments that an answer gives its call; nil: it
	// gives none. Those that can't be taken are an error of code bad_arguments.
	Arguments(d core.Decider, answer belay.RespondAction) (read func(context.Context) (belay.Command, error))
}

// Run is an effect that runs: what its performer may use of the engine.
type Run struct {
	v       *drive
	key     string
	eff     core.Effect
	cancel  context.CancelFunc
	leaving func() bool
	limit   time.Duration // how long it may be silent; 0: as long as it likes
	sign    atomic.Int64  // when it gave a sign of life last
	told    time.Time     // when it was cancelled
	quiet   time.Time     // its last sign of life before that
	late    bool          // it was cancelled for its silence
	gone    chan struct{} // closed when it is given up
	ended   func()        // once: the drive waits for it no more
}

func (v *drive) newRun(ctx context.Context, key string, eff core.Effect, cancel context.CancelFunc) *Run {
	r := &Run{v: v, key: key, eff: eff, cancel: cancel, leaving: func() bool { return ctx.Err() != nil },
		limit: v.perf.Silence(eff), gone: make(chan struct{}), ended: sync.OnceFunc(v.wg.Done)}
	r.Beat()
	return r
}

// errGivenUp means that an effect was given up: its facts are taken no more.
var errGivenUp = errors.New("the effect was given up")

// Record records a fact, soon. Those of an effect that was given up are dropped.
func (r *Run) Record(f core.Fact) { r.report(report{facts: []core.Fact{f}}) }

// RecordDurably records a fact. It is durable when RecordDurably returns nil.
func (r *Run) RecordDurably(f core.Fact) error {
	ack := make(chan error, 1)
	if !r.report(report{facts: []core.Fact{f}, ack: ack}) {
		return errGivenUp
	}
	return <-ack
}

// report hands facts to the drive. It returns false when the effect was given up; when
// that and a drive that listens come together, the drive drops the facts.
func (r *Run) report(m report) bool {
	m.run = r
	r.Beat()
	select {
	case r.v.reports <- m:
		return true
	case <-r.gone:
		return false
	}
}

// Beat is a sign of life.
func (r *Run) Beat() { r.sign.Store(r.v.e.c.Now().UnixNano()) }

// last is when it gave a sign of life last.
func (r *Run) last() time.Time { return time.Unix(0, r.sign.Load()) }

// Leaving reports whether the whole process leaves the stream, and not only this
// effect ends.
func (r *Run) Leaving() bool { return r.leaving() }

// Leases are those of the sessions of this process.
func (r *Run) Leases() *Leases { return &r.v.e.claims.leases }
