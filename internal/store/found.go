package store

import (
	"context"
	"iter"
	"time"

	"github.com/belay-run/belay"
)

// NewSession is a session that begins with what was decided for its first commands.
type NewSession struct {
	Session belay.SessionID
	Owner   Owner         // who decided
	Orders  []belay.Order // the commands, in the order in which they came
	Batches []Batch       // one for each stream, in the order of the log, with Events, Lane, Sends and State; nothing else of them is looked at

	Keep   time.Duration // how long the owner has the session from then on, as after Claim; 0: it is given back at once
	Writes string        // of a session that is kept: the workspace that it becomes a writer of, as by ClaimWriter; empty: none
	Shared bool          // with Writes: another session may be a writer there
}

// Founder begins sessions.
type Founder interface {
	// Found begins a session in one transaction: as if its orders had been
	// enqueued, the owner had claimed the session and appended the batches, which
	// answer all of the orders and all that they send, and had given it back, unless
	// it keeps it. The session has epoch 1 then, and no owner unless it is kept. It
	// returns the position of the last fact; the facts of all batches stand one
	// after the other.
	//
	// ErrConflict: something is known of the session, of a stream or of a command,
	// also if the session was deleted. Nothing is written then; Enqueue and Claim
	// say what is the matter. *WriterError: another session is a writer of the
	// workspace. Nothing is written then either.
	Found(ctx context.Context, f NewSession) (Position, error)
}

// Check refuses a founding that isn't one of a new session.
func (f *NewSession) Check() error {
	if f.Session == "" || f.Session == belay.SystemSession || f.Owner.ID == "" || len(f.Batches) == 0 {
		return belay.Errorf(belay.CodeInternal, "a founding needs a session, an owner and facts").At(string(f.Session))
	}
	if f.Keep < 0 || f.Keep == 0 && (f.Writes != "" || f.Shared) {
		return belay.Errorf(belay.CodeInternal, "a session that is given back can't be a writer").At(string(f.Session))
	}
	seen := map[belay.StreamID]bool{}
	for i := range f.Batches {
		b := &f.Batches[i]
		if b.Session != f.Session || len(b.Events) == 0 || seen[b.Stream] {
			return belay.Errorf(belay.CodeInternal, "a founding has one batch for each stream of its session, with facts").At(string(b.Stream))
		}
		seen[b.Stream] = true
	}
	told := map[belay.CommandID]bool{}
	for o := range f.Told() {
		if o.Session != f.Session || told[o.ID] {
			return belay.Errorf(belay.CodeInternal, "a founding has commands of its own session, each once").At(string(o.ID))
		}
		told[o.ID] = true
	}
	return nil
}

// Told are all commands of a founding: those that came, and those that its
// streams sent one another.
func (f *NewSession) Told() iter.Seq[*belay.Order] {
	return func(yield func(*belay.Order) bool) {
		for i := range f.Orders {
			if !yield(&f.Orders[i]) {
				return
			}
		}
		for i := range f.Batches {
			for j := range f.Batches[i].Sends {
				if !yield(&f.Batches[i].Sends[j]) {
					return
				}
			}
		}
	}
}

// Fresh is a batch as a founding writes it: its stream's first, which consumes
// and sends nothing.
func (f *NewSession) Fresh(i int) *Batch {
	b := &f.Batches[i]
	return &Batch{Session: b.Session, Stream: b.Stream, Epoch: 1, Events: b.Events, Lane: b.Lane, State: b.State}
}
