// Package memory is a store without a disk, for tests. It passes the same laws
// as the drivers. Its data outlives a handle, so that a test can let a process
// die at any commit and open the store again as the next one would find it.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Points at which a Hook is called.
const (
	BeforeAppend = "before append" // an error keeps the batch out
	AfterAppend  = "after append"  // the batch is durable; an error only hides that from the caller
)

// Data is what survives: the disk of the pretended machine.
type Data struct {
	runtime belay.RuntimeID

	mu       sync.Mutex
	streams  map[belay.StreamID]*stream
	log      []position // of all facts, by position - 1
	commands map[belay.CommandID]string
	owners   map[belay.SessionID]*owner
	writers  map[belay.SessionID]changes
	handles  map[string]*handle // by the id of an owner that claimed through it
	blobs    map[belay.Digest][]byte
	views    map[string]*view
	order    []*stream          // by creation
	graves   []*store.Tombstone // by position
	changed  chan struct{}
}

// position is a place in the log; without a stream it is a hole.
type position struct {
	stream *stream
	seq    int64
}

// stream holds its rows packed, as a driver would, so that nothing a test puts
// in comes out better than it would from a disk.
type stream struct {
	id      belay.StreamID
	session belay.SessionID
	rows    []store.Row
	at      []store.Position
	hash    [32]byte
	lane    store.Lane
	keys    map[string]bool
	inbox   []order
	state   *store.State
}

type owner struct {
	store.Owner
	lease time.Time
}

type view struct {
	at   store.Position
	rows map[string]store.ViewRow
}

// Options of a handle. The zero value works.
type Options struct {
	Now   func() time.Time
	Alive func(store.Owner) bool   // default: the handle that the owner claimed through wasn't killed or closed
	Hook  func(point string) error // called around each append, without a lock
}

// New makes an empty store.
func New() *Data {
	return &Data{
		runtime: belay.RuntimeID(belay.NewID(belay.PrefixRuntime)),
		streams: map[belay.StreamID]*stream{}, commands: map[belay.CommandID]string{},
		owners: map[belay.SessionID]*owner{}, writers: map[belay.SessionID]changes{}, handles: map[string]*handle{},
		blobs: map[belay.Digest][]byte{}, views: map[string]*view{}, changed: make(chan struct{}),
	}
}

// Store is the store as one process has it open.
type Store struct {
	*handle
	owners
	blobs
	views
	deletions
}

// The parts of a store, each of which works through the handle.
type (
	owners    struct{ *handle } // claims on sessions and workspaces
	blobs     struct{ *handle } // content by digest
	views     struct{ *handle } // read models
	deletions struct{ *handle } // sessions that go, and what they leave
)

// handle is one process's access to the data, and what it would lose by dying.
type handle struct {
	d      *Data
	o      Options
	over   error                     // why the handle can't be used any more; guarded by d.mu
	small  map[belay.Digest][]byte   // put and not yet durable; guarded by d.mu
	claims map[belay.SessionID]int64 // guarded by d.mu
}

var _ store.Store = (*Store)(nil)

// Open gives a handle.
func (d *Data) Open(o Options) *Store {
	h := &handle{d: d, o: o, small: map[belay.Digest][]byte{}, claims: map[belay.SessionID]int64{}}
	if h.o.Now == nil {
		h.o.Now = time.Now
	}
	if h.o.Alive == nil {
		h.o.Alive = d.alive
	}
	if h.o.Hook == nil {
		h.o.Hook = func(string) error { return nil }
	}
	return &Store{h, owners{h}, blobs{h}, views{h}, deletions{h}}
}

// Open gives a handle on a store of its own.
func Open(o Options) *Store { return New().Open(o) }

// Data is what the handle is on, for the next process.
func (h *handle) Data() *Data { return h.d }

// Kill ends the process behind the handle as a power failure would: what
// wasn't durable is gone, what it owned stays owned by a dead process, and
// every further call is an error.
func (h *handle) Kill() {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.over == nil {
		h.over = belay.Errorf(belay.CodeStoreFailed, "the process is dead")
		clear(h.small)
		h.d.broadcast()
	}
}

// Close makes durable what was put and gives back what was claimed.
func (h *handle) Close() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.over != nil {
		return nil
	}
	h.flush()
	for session, epoch := range h.claims {
		h.release(session, epoch)
	}
	h.over = belay.Errorf(belay.CodeBadState, "the store is closed")
	h.d.broadcast()
	return nil
}

// Runtime is the store's id.
func (h *handle) Runtime() belay.RuntimeID { return h.d.runtime }

// lock begins a call. Without an error the data is locked.
func (h *handle) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.d.mu.Lock()
	if h.over != nil {
		defer h.d.mu.Unlock()
		return h.over
	}
	return nil
}

// flush makes small content durable: every transaction begins with it.
func (h *handle) flush() {
	for d, b := range h.small {
		h.d.blobs[d] = b
	}
	clear(h.small)
}

// done ends a transaction.
func (h *handle) done() {
	h.flush()
	h.d.broadcast()
}

func (d *Data) broadcast() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Changed returns a channel that is closed after the next commit.
func (h *handle) Changed(ctx context.Context) <-chan struct{} {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.over != nil || ctx.Err() != nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return h.d.changed
}
