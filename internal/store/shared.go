package store

import (
	"context"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/belay-run/belay"
)

// Written is a fact as it was just made durable, in its stored form.
type Written struct {
	Position Position
	Session  belay.SessionID
	Stream   belay.StreamID
	Row      Row
}

// CommitNotifier is a store that announces what it writes, so that a follower of its log
// in the same process needn't read it from the disk.
type CommitNotifier interface {
	// OnCommit makes the store call told with the facts of each of its own commits, in
	// order, before Changed tells of them and before Append returns. told
	// returns at once; it may keep the facts, though not the slice that they are in,
	// and changes nothing of them. Tell is called once, before the first write.
	OnCommit(told func(facts []Written))
}

// Shared is a store whose newest facts are read and decoded once for all who
// follow it with Scan: a reader that comes a moment later gets the same facts
// again. They are shared, so they must not be changed. Those of a Teller aren't
// even read, except what other processes write. A fact that another process
// deletes while it is kept here may still be scanned by a reader that hasn't
// reached the deletion, as if it had read a little earlier.
type Shared struct {
	Store

	mu     sync.Mutex
	from   Position // all facts behind this are in kept …
	to     Position // … up to this
	kept   []*Record
	size   int
	reads  int64 // of the store that have begun
	filled int64 // the last one that came to s.to, or found nothing behind it, …
	full   bool  // … after which there was more

	fresh pendingFacts
}

// pendingFacts are facts that a Teller has announced and that weren't read yet.
type pendingFacts struct {
	mu    sync.Mutex
	facts []Written
	size  int
}

// told takes facts from a store that has just written them. Without readers they
// don't pile up: a later reader reads them from the store.
func (f *pendingFacts) told(facts []Written) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range facts {
		f.size += len(facts[i].Row.Data) + aroundFact
	}
	if f.facts = append(f.facts, facts...); f.size > sharedBytes {
		f.facts, f.size = nil, 0
	}
}

// take gives them away.
func (f *pendingFacts) take() []Written {
	f.mu.Lock()
	defer f.mu.Unlock()
	facts := f.facts
	f.facts, f.size = nil, 0
	return facts
}

// sharedBytes bounds what is kept, about.
const sharedBytes = 8 << 20

// aroundFact is about what a kept fact holds besides its payload, in bytes.
const aroundFact = 512

// sharedAtOnce is how many facts are read at a time, while others wait for them.
const sharedAtOnce = 2048

// Share makes a shared store of one, without anything kept.
func Share(st Store) *Shared {
	s := &Shared{Store: st}
	if t, ok := st.(CommitNotifier); ok {
		t.OnCommit(s.fresh.told)
	}
	return s
}

// Scan yields the facts of all streams after a position, in order, up to the end
// of the log at the time of each read.
func (s *Shared) Scan(ctx context.Context, after Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s.mu.Lock()
		asked := s.reads
		s.mu.Unlock()
		for more := true; more; {
			var recs []*Record
			var err error
			recs, more, err = s.next(ctx, after, asked)
			for _, r := range recs {
				if after = r.Position; !yield(*r, nil) {
					return
				}
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
}

// next is a part of what is after a position; more means that there may be more.
// What was read from the store after asked is all there was.
func (s *Shared) next(ctx context.Context, after Position, asked int64) (recs []*Record, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	within := func() bool { return s.kept != nil && after >= s.from && after <= s.to }
	if within() && (s.filled <= asked || s.full && after == s.to) {
		s.take()
		if _, err := s.read(ctx, s.to); err != nil { // what others wrote
			return nil, false, err
		}
	}
	if within() {
		i := sort.Search(len(s.kept), func(i int) bool { return s.kept[i].Position > after })
		return s.kept[i:len(s.kept):len(s.kept)], s.full, ctx.Err()
	}
	recs, err = s.read(ctx, after)
	return recs, len(recs) == sharedAtOnce, err
}

// read reads a part of what is after a position, and keeps it if it is the newest.
func (s *Shared) read(ctx context.Context, after Position) (recs []*Record, err error) {
	s.reads++
	for r, err := range s.Store.Scan(ctx, after) {
		if err != nil {
			return recs, err
		}
		if recs = append(recs, &r); len(recs) == sharedAtOnce {
			break
		}
	}
	for i := range recs { // each payload is encoded here, once for all
		ev := &recs[i].Event
		raw, err := ev.Encoded()
		if err != nil {
			return recs, nil // encoding it returns the error
		}
		ev.Keep(raw)
	}
	if s.keep(after, recs) {
		s.filled, s.full = s.reads, len(recs) == sharedAtOnce
	}
	return recs, nil
}

// take keeps announced facts that directly follow the kept ones. Others come
// after facts of another process, and are read with those.
func (s *Shared) take() {
	facts := s.fresh.take()
	recs := make([]*Record, 0, len(facts))
	at := s.to
	for i := range facts {
		f := &facts[i]
		if f.Position <= at {
			continue
		}
		if f.Position != at+1 {
			break
		}
		ev, err := f.Row.Unpack(s.Runtime(), f.Session, f.Stream)
		if err != nil {
			break // reading it returns the error
		}
		ev.Keep(f.Row.Data)
		recs = append(recs, &Record{f.Position, ev})
		at = f.Position
	}
	s.keep(s.to, recs)
}

// keep remembers what is after a position, unless newer facts are kept.
func (s *Shared) keep(after Position, recs []*Record) bool {
	if after < s.to || after > s.to && len(recs) == 0 && len(s.kept) > 0 {
		return false
	}
	if after > s.to || s.kept == nil {
		s.from, s.kept, s.size = after, []*Record{}, 0
	}
	for _, r := range recs {
		s.size += sizeOf(r)
	}
	s.kept = append(s.kept, recs...)
	if s.to = after; len(recs) > 0 {
		s.to = recs[len(recs)-1].Position
	}
	s.bound()
	return true
}

// bound lets the oldest quarter go when there is too much.
func (s *Shared) bound() {
	if s.size <= sharedBytes {
		return
	}
	n := 0
	for ; s.size > sharedBytes/4*3 && n < len(s.kept)-1; n++ {
		s.size -= sizeOf(s.kept[n])
	}
	if n > 0 {
		s.from, s.kept = s.kept[n-1].Position, slices.Clone(s.kept[n:])
	}
}

// forget drops what is kept: facts went from the log.
func (s *Shared) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh.take()
	s.from, s.to, s.kept, s.size = 0, 0, nil, 0
}

// DeleteSession takes a session out of the store, and of what is kept here.
func (s *Shared) DeleteSession(ctx context.Context, session belay.SessionID, by string) (Deleted, error) {
	defer s.forget()
	return s.Store.DeleteSession(ctx, session, by)
}

// Tombstones lists deletions. What another process deleted is kept only until
// the deletion is noticed.
func (s *Shared) Tombstones(ctx context.Context, after Position) ([]Tombstone, error) {
	gone, err := s.Store.Tombstones(ctx, after)
	if len(gone) > 0 {
		s.forget()
	}
	return gone, err
}

// sizeOf is about what a kept fact holds: its payload twice, and what is around it.
func sizeOf(r *Record) int {
	raw, _ := r.Event.Encoded() // it is kept
	return 2*len(raw) + aroundFact
}
