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
	handles  map[string]*Store // by the id of an owner that claimed through it
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
	keys    map[string]store.Position
	inbox   []order
	state   *store.State
}

type owner struct {
	store.Owner
	lease time.Time
}

type view struct {
	at   store.Position
	rows map[string][]byte
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
		owners: map[belay.SessionID]*owner{}, writers: map[belay.SessionID]changes{}, handles: map[string]*Store{},
		blobs: map[belay.Digest][]byte{}, views: map[string]*view{}, changed: make(chan struct{}),
	}
}

// Store is one process's handle on the data.
type Store struct {
	d      *Data
	o      Options
	over   error                     // why the handle can't be used any more; guarded by d.mu
	small  map[belay.Digest][]byte   // put and not yet durable; guarded by d.mu
	claims map[belay.SessionID]int64 // guarded by d.mu
	told   func([]store.Written)     // nil: no callback
}

var _ store.Store = (*Store)(nil)

// Open gives a handle.
func (d *Data) Open(o Options) *Store {
	s := &Store{d: d, o: o, small: map[belay.Digest][]byte{}, claims: map[belay.SessionID]int64{}}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	if s.o.Alive == nil {
		s.o.Alive = d.alive
	}
	if s.o.Hook == nil {
		s.o.Hook = func(string) error { return nil }
	}
	return s
}

// Open gives a handle on a store of its own.
func Open(o Options) *Store { return New().Open(o) }

// Data is what the handle is on, for the next process.
func (s *Store) Data() *Data { return s.d }

// Kill ends the process behind the handle as a power failure would: what
// wasn't durable is gone, what it owned stays owned by a dead process, and
// every further call is an error.
func (s *Store) Kill() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.over == nil {
		s.over = belay.Errorf(belay.CodeStoreFailed, "the process is dead")
		clear(s.small)
		s.d.broadcast()
	}
}

// Close makes durable what was put and gives back what was claimed.
func (s *Store) Close() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.over != nil {
		return nil
	}
	s.flush()
	for session, epoch := range s.claims {
		s.release(session, epoch)
	}
	s.over = belay.Errorf(belay.CodeBadState, "the store is closed")
	s.d.broadcast()
	return nil
}

// Runtime is the store's id.
func (s *Store) Runtime() belay.RuntimeID { return s.d.runtime }

// lock begins a call. Without an error the data is locked.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.d.mu.Lock()
	if s.over != nil {
		defer s.d.mu.Unlock()
		return s.over
	}
	return nil
}

// flush makes small content durable: every transaction begins with it.
func (s *Store) flush() {
	for d, b := range s.small {
		s.d.blobs[d] = b
	}
	clear(s.small)
}

// done ends a transaction.
func (s *Store) done() {
	s.flush()
	s.d.broadcast()
}

func (d *Data) broadcast() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Changed returns a channel that is closed after the next commit.
func (s *Store) Changed(ctx context.Context) <-chan struct{} {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.over != nil || ctx.Err() != nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return s.d.changed
}
