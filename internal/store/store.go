// Package store is the seam to durable storage: the log of facts, the inbox of
// commands, ownership of sessions, content by digest, and what can be rebuilt
// from the log (lanes, decider states, views). Its laws are in storetest; every
// driver passes them.
//
// A driver is written from this package: it gives a Store and, for stores that are
// kept, an Admin. Leases are counted by the driver's clock, never by a caller's.
//
// A call that returned without error is durable: it survives a crash of the
// process and, with a disk that honours sync, of the machine.
package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Position is the global order of facts in one store. It grows; it has holes;
// nothing ever appears behind a position that a follower has seen.
type Position int64

var (
	// ErrConflict: the stream's last sequence isn't Batch.After, a claim doesn't get Batch.Epoch, or a view's position isn't From.
	ErrConflict = errors.New("the stream has moved on")
	// ErrStale: the epoch isn't the session's: another owner has taken over. Stop everything.
	ErrStale = errors.New("another process owns the session now")
	// ErrNotFound: no such stream, blob, state or session.
	ErrNotFound = errors.New("not found")
)

// Batch is one decision: everything in it becomes durable together, or nothing does.
type Batch struct {
	Session belay.SessionID
	Stream  belay.StreamID
	After   int64  // the stream's last sequence as the writer knows it; 0 for a new stream
	Epoch   int64  // from Owners.Claim, or the one that Claim gets
	Claim   *Claim // the session is claimed with the batch; nil: it is claimed already
	Key     string // unique per stream; a batch whose key is present already is a no-op. Empty: no key

	Events   []event.Envelope // Seq After+1 …; Stream, Seq and Time are set by the writer
	Lane     Lane
	Consumed []belay.CommandID // commands of this stream that the events answer
	Sends    []belay.Order     // commands that come in with the events; what a batch beside them consumes waits in no inbox
	State    *State            // the decider's state after the last event, or nil
}

// Claim is the claim on a session that an append makes. The session must not have
// had another epoch than those before the batch's.
type Claim struct {
	Owner  Owner
	Keep   time.Duration // how long the owner has the session from then on, as after Owners.Claim; 0: it is given back at once
	Writes string        // of a session that is kept: the workspace that it becomes a writer of, as by ClaimWriter; empty: none
	Shared bool          // with Writes: another session may be a writer there
}

// CheckBatches refuses batches that no append can have written.
func CheckBatches(batches []Batch) error {
	refused := func(why string, b *Batch) error {
		return belay.Errorf(belay.CodeInternal, "%s", why).At(string(b.Stream))
	}
	if len(batches) == 0 {
		return refused("an append without a batch", &Batch{})
	}
	first, seen := &batches[0], map[belay.StreamID]bool{}
	for i := range batches {
		switch b := &batches[i]; {
		case b.Session == "" || b.Stream == "":
			return refused("a batch without session or stream", b)
		case b.Session != first.Session || b.Epoch != first.Epoch || seen[b.Stream] || i > 0 && (b.Claim != nil || b.Session == belay.SystemSession):
			return refused("an append has one batch for each of some streams of a session, under one claim", b)
		}
		seen[batches[i].Stream] = true
	}
	if c := first.Claim; c != nil && (c.Owner.ID == "" || first.Session == belay.SystemSession || c.Keep < 0 || c.Keep == 0 && c.Writes != "" || c.Shared && c.Writes == "") {
		return refused("a claim needs an owner, and a writer keeps its session", first)
	}
	return nil
}

// Lane is a stream's scheduling row: it must equal what folding the stream says.
type Lane struct {
	Runnable bool      // something is wanted now
	Wake     time.Time // when something may be wanted next; zero is never
}

// LaneRow is a lane as Lanes reports it.
type LaneRow struct {
	Session belay.SessionID
	Stream  belay.StreamID
	Lane
	Seq   int64 // of the stream's last fact
	Inbox int   // waiting commands; a stream that has some is runnable besides
}

// State is a cached decider state. Version is the digest of what the fold
// depends on besides the events; a reader with another Version ignores it.
type State struct {
	Seq     int64
	Version string
	Data    []byte
}

// Head is a stream's end.
type Head struct {
	Stream  belay.StreamID
	Session belay.SessionID
	Seq     int64
	Hash    [32]byte  // of the chain, after Seq
	Time    time.Time // of the last event
}

// Record is a fact with its global position.
type Record struct {
	Position Position
	Event    event.Envelope
}

// Window is a part of the log: facts of one stream, or of all streams of a
// session, between two positions, neither of which is in it.
type Window struct {
	Session belay.SessionID // all its streams; not looked at when Stream is set
	Stream  belay.StreamID
	After   Position
	Before  Position // 0: to the end of the log
	Newest  bool     // the last one first
}

// Log is the only way facts enter.
type Log interface {
	// Append writes batches of one session, each of another stream, in one
	// transaction, and returns the positions of their events, in their order; a
	// batch whose key is present has none. Errors: ErrConflict, also if a command that
	// comes in and is consumed with the batches was known; ErrStale; with a claim
	// what Claim and ClaimWriter refuse; or a belay.Error with a store code: a fact
	// over MaxEvent is CodeTooLarge. A context that ends while the write is queued
	// may still see it committed: the caller must reload.
	Append(ctx context.Context, batches ...Batch) ([]Position, error)
	// Read yields the events of a stream with sequence > after, in order.
	Read(ctx context.Context, s belay.StreamID, after int64) iter.Seq2[event.Envelope, error]
	// Head is the stream's end; ErrNotFound when it has no event.
	Head(ctx context.Context, s belay.StreamID) (Head, error)
	// Scan yields the facts of all streams after a position, in order, up to
	// the end of the log at the time of each read, and then returns.
	Scan(ctx context.Context, after Position) iter.Seq2[Record, error]
	// Window yields facts of one session or stream, up to the end of the log at
	// the time of the call. What it costs follows from what is taken and from how
	// many streams the session has, not from the length of the log.
	Window(ctx context.Context, w Window) iter.Seq2[Record, error]
	// End is the position of the last fact or deletion.
	End(ctx context.Context) (Position, error)
	// Changed returns a channel that is closed once something was committed
	// here or, within 200 ms, by another process, since the call.
	Changed(ctx context.Context) <-chan struct{}
}

// Inbox takes commands from anyone.
type Inbox interface {
	// Enqueue makes orders durable together, or none of them, and they wait in
	// the order given. It is idempotent by an order's id; the same id with
	// another body is belay.CodeIDConflict, also after the first was consumed. A
	// deleted session takes none (belay.CodeDeleted); a Send to one is dropped,
	// because its sender must be able to go on.
	Enqueue(ctx context.Context, orders ...belay.Order) error
	// Inbox lists the waiting commands of a stream, first in first out.
	Inbox(ctx context.Context, s belay.StreamID) ([]belay.Order, error)
}

// Owner names a process.
type Owner struct {
	ID    string    `json:"id"` // unique per process start; behind an @ the PID namespace
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Start string    `json:"start"` // the process's start time as the system tells it
	Since time.Time `json:"since"` // when the claim was made
	Epoch int64     `json:"epoch"`
}

// OwnedError is the error of Claim when a live process owns the session.
type OwnedError struct {
	Session belay.SessionID
	Owner   Owner
}

// Error implements error.
func (e *OwnedError) Error() string {
	return "session " + string(e.Session) + " is owned by a running process"
}

// Owners decides which process may append to a session.
type Owners interface {
	// Claim makes o the owner of a session and returns its epoch, greater than
	// every epoch before. An owner whose lease has ended, or whose process is
	// gone from this machine, loses it; a live one is an *OwnedError. A session
	// that was deleted is belay.CodeDeleted until it is restored.
	// In belay.SystemSession ownership is per stream: claim the stream's id there.
	Claim(ctx context.Context, session belay.SessionID, o Owner, ttl time.Duration) (epoch int64, err error)
	// Renew extends the leases of all sessions that o owns.
	Renew(ctx context.Context, o Owner, ttl time.Duration) error
	// Release gives a session back if epoch is still its epoch.
	Release(ctx context.Context, session belay.SessionID, epoch int64) error
	// OwnerOf is the live owner, or nil.
	OwnerOf(ctx context.Context, session belay.SessionID) (*Owner, error)
	// Owned are all sessions, and streams of the system session, that have a live owner.
	// It costs what is owned.
	Owned(ctx context.Context) (map[belay.SessionID]Owner, error)
}

// Blobs keeps content by digest.
type Blobs interface {
	// Put keeps content. Small content (up to 32 KiB) becomes durable no later
	// than the next Append of this process that is called after Put returned;
	// larger content is a synced file when Put returns.
	Put(ctx context.Context, content []byte, media string) (belay.Ref, error)
	// Writer keeps content of unknown size without holding it in memory.
	// Commit makes it durable and names it; Close without Commit drops it.
	Writer(ctx context.Context, media string) (BlobWriter, error)
	// Get returns the whole content; ErrNotFound, or CodeStoreDamaged when the
	// content doesn't have its digest.
	Get(ctx context.Context, d belay.Digest) ([]byte, error)
	// Open streams the content. A reader that is an io.Seeker compares content with its
	// digest only if it is read from the beginning on.
	Open(ctx context.Context, d belay.Digest) (io.ReadCloser, error)
}

// BlobWriter streams content into the store.
type BlobWriter interface {
	io.Writer
	Commit() (belay.Ref, error)
	Close() error
}

// Lanes is what start-up, timers and takers read.
type Lanes interface {
	// Lanes lists the lanes of a session that are runnable, have a wake time
	// or have waiting commands; of all sessions when session is empty.
	Lanes(ctx context.Context, session belay.SessionID) ([]LaneRow, error)
	// Waiting lists the lanes of all sessions that have waiting commands.
	Waiting(ctx context.Context) ([]LaneRow, error)
}

// States caches decider states.
type States interface {
	// LoadState returns the newest cached state of a stream with this version, or nil.
	LoadState(ctx context.Context, s belay.StreamID, version string) (*State, error)
}

// Deletion takes sessions out of the store.
type Deletion interface {
	// DeleteSession removes a session: the facts, lanes, waiting commands and
	// cached states of its streams, its rows in views, and content that nothing
	// else names. What is left is a tombstone. Repeated, it finishes what a
	// crash cut short and answers with the same tombstone. Archive.Restore brings
	// a session back. Errors: *OwnedError,
	// ErrNotFound, or belay.CodeBadState for the system session.
	//
	// Content that another running session may be about to name stays until it
	// is collected; Deleted counts it.
	DeleteSession(ctx context.Context, session belay.SessionID, by string) (Deleted, error)
}

// Tombstones lists what is left of deleted sessions.
type Tombstones interface {
	// Tombstones lists the sessions that were deleted after a position, in order.
	Tombstones(ctx context.Context, after Position) ([]Tombstone, error)
}

// Run is what driving sessions needs.
type Run interface {
	Runtime() belay.RuntimeID
	Log
	Inbox
	Owners
	Blobs
	Lanes
	States
	Writers
}

// ReadModels is what folding the log into read models needs.
type ReadModels interface {
	Log
	Blobs
	Views
	Tombstones
}

// Store is what every driver gives. One whose stores are kept gives an Admin besides.
type Store interface {
	Run
	ReadModels
	Archive
	Deletion
	// Close waits for what was accepted and gives back what this process owns.
	Close() error
}
