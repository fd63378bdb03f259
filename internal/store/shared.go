package store

import (
	"context"
	"iter"
	"sort"
	"sync"

	"github.com/belay-run/belay"
)

// Shared is a store whose newest facts are read and decoded once for all who
// follow it with Scan: who comes a moment later gets the same facts again. They
// are shared, so nobody may change what they hold. A fact that another process
// deletes while it is kept here may still be scanned by who hasn't come as far as
// the deletion, as if it had read a little earlier.
type Shared struct {
	Store

	mu     sync.Mutex
	from   Position // all facts behind this are in kept …
	to     Position // … up to this
	kept   []Record
	gone   int                       // how many were kept before those
	of     map[belay.SessionID][]int // where a session's are among all that were kept
	size   int
	reads  int64 // of the store that have begun
	filled int64 // the one that came to s.to, …
	full   bool  // … after which there was more
}

// sharedBytes bounds what is kept, about.
const sharedBytes = 8 << 20

// sharedAtOnce is how many facts are read at a time, while others wait for them.
const sharedAtOnce = 2048

// Share makes a shared store of one, without anything kept.
func Share(st Store) *Shared { return &Shared{Store: st} }

// Scan yields the facts of all streams after a position, in order, up to the end
// of the log at the time of each read.
func (s *Shared) Scan(ctx context.Context, after Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s.mu.Lock()
		asked := s.reads
		s.mu.Unlock()
		for more := true; more; {
			var recs []Record
			var err error
			recs, more, err = s.next(ctx, after, asked)
			for _, r := range recs {
				if after = r.Position; !yield(r, nil) {
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

// Recent is the facts of a session behind a position, without asking the store,
// and up to where they are all of them. false: that isn't known here.
func (s *Shared) Recent(session belay.SessionID, after Position) (recs []Record, upTo Position, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok = after >= s.from && after <= s.to && s.to > 0
	for i, n := range s.of[session] {
		r := &s.kept[n-s.gone]
		ok = ok || i == 0 && r.Event.Seq == 1 && r.Event.Stream == session.Stream() // none is before it
		if !ok {
			break
		}
		if r.Position > after {
			recs = append(recs, *r)
		}
	}
	return recs, s.to, ok
}

// next is a part of what is after a position; more tells that there may be more.
// What was read from the store after asked is all there was.
func (s *Shared) next(ctx context.Context, after Position, asked int64) (recs []Record, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= s.from && after < s.to {
		i := sort.Search(len(s.kept), func(i int) bool { return s.kept[i].Position > after })
		return s.kept[i:len(s.kept):len(s.kept)], s.full || s.filled <= asked, ctx.Err()
	}
	s.reads++
	for r, err := range s.Store.Scan(ctx, after) {
		if err != nil {
			return recs, false, err
		}
		if recs = append(recs, r); len(recs) == sharedAtOnce {
			more = true
			break
		}
	}
	s.keep(after, recs, more)
	return recs, more, nil
}

// keep remembers what was read after a position, unless newer facts are kept.
// Each payload is encoded here, once for all.
func (s *Shared) keep(after Position, recs []Record, more bool) {
	if len(recs) == 0 || after < s.to {
		return
	}
	size := 0
	for i := range recs {
		ev := &recs[i].Event
		raw, err := ev.Encoded()
		if err != nil {
			return // who wants to encode it meets the error
		}
		ev.Keep(raw)
		size += sizeOf(&recs[i])
	}
	if after > s.to || s.kept == nil {
		s.from, s.kept, s.gone, s.of, s.size = after, nil, 0, map[belay.SessionID][]int{}, 0
	}
	for i := range recs {
		id := recs[i].Event.IDs.Session
		s.of[id] = append(s.of[id], s.gone+len(s.kept)+i)
	}
	s.filled, s.full = s.reads, more
	s.kept, s.to, s.size = append(s.kept, recs...), recs[len(recs)-1].Position, s.size+size
	s.bound()
}

// bound lets the oldest quarter go when there is too much.
func (s *Shared) bound() {
	if s.size <= sharedBytes {
		return
	}
	n := 0
	for ; s.size > sharedBytes/4*3 && n < len(s.kept)-1; n++ {
		s.size -= sizeOf(&s.kept[n])
		id := s.kept[n].Event.IDs.Session
		if s.of[id] = s.of[id][1:]; len(s.of[id]) == 0 {
			delete(s.of, id)
		}
	}
	if n > 0 {
		s.from, s.kept, s.gone = s.kept[n-1].Position, append([]Record(nil), s.kept[n:]...), s.gone+n
	}
}

// forget drops what is kept: facts went from the log.
func (s *Shared) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.to, s.kept, s.gone, s.of, s.size = 0, 0, nil, 0, nil, 0
}

// DeleteSession takes a session out of the store, and of what is kept here.
func (s *Shared) DeleteSession(ctx context.Context, session belay.SessionID, by string) (Deleted, error) {
	defer s.forget()
	return s.Store.DeleteSession(ctx, session, by)
}

// Tombstones lists deletions. What another process deleted isn't kept any longer
// than until somebody learns of it.
func (s *Shared) Tombstones(ctx context.Context, after Position) ([]Tombstone, error) {
	gone, err := s.Store.Tombstones(ctx, after)
	if len(gone) > 0 {
		s.forget()
	}
	return gone, err
}

// SetAnchor lets facts of a stream go, and those that are kept here.
func (s *Shared) SetAnchor(ctx context.Context, a Anchor, epoch int64) error {
	defer s.forget()
	return s.Store.SetAnchor(ctx, a, epoch)
}

// sizeOf is about what a kept fact holds: its payload twice, and what is around it.
func sizeOf(r *Record) int {
	raw, _ := r.Event.Encoded() // it is kept
	return 2*len(raw) + 512
}
