package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

const ttl = time.Minute

// taken wants an *OwnedError that names who.
func (l *lab) taken(err error, who store.Owner) {
	l.Helper()
	var owned *store.OwnedError
	if !errors.As(err, &owned) || owned.Owner.ID != who.ID || owned.Owner.PID != who.PID {
		l.Fatalf("got %v, want owned by %s", err, who.ID)
	}
}

func (l *lab) claim(s store.Owners, session belay.SessionID, o store.Owner) int64 {
	l.Helper()
	epoch, err := s.Claim(l.Context(), session, o, ttl)
	l.must(err)
	return epoch
}

var ownerLaws = []law{
	// Guarantee: S3.
	{"two owners never hold a session together", func(l *lab) {
		other := l.again()
		l.claim(l, "sess_a", owner("one"))
		_, err := other.Claim(l.Context(), "sess_a", owner("two"), ttl)
		l.taken(err, owner("one"))
		l.claim(other, "sess_b", owner("two"))
	}},
	{"what another process has written is seen by the next write", func(l *lab) {
		other := l.again()
		b := l.session("a")
		l.put(b, "one")
		mine := *b
		l.must(other.Release(l.Context(), b.Session, b.Epoch))
		b.Epoch = l.claim(other, b.Session, owner("two"))
		late := mine
		late.Events = []event.Envelope{l.fact(b, "too late")}
		_, err := l.Append(l.Context(), late)
		l.is(err, store.ErrStale)
		theirs := *b
		theirs.Events = []event.Envelope{l.fact(b, "two")}
		_, err = other.Append(l.Context(), theirs)
		l.must(err)
		late.Epoch = b.Epoch
		_, err = l.Append(l.Context(), late)
		l.is(err, store.ErrConflict)
		b.After++
		l.put(b, "three")
		same(l, "texts", l.texts(b.Stream), []string{"one", "two", "three"})
	}},
	{"of many who claim at once one gets it", func(l *lab) {
		handles := []store.Store{l.Store, l.again()}
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				_, err := handles[i%2].Claim(l.Context(), "sess_a", owner(number("o", i)), ttl)
				var owned *store.OwnedError
				if err == nil {
					won.Add(1)
				} else if !errors.As(err, &owned) {
					l.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			l.Fatalf("%d owners", won.Load())
		}
	}},
	// Guarantee: S4.
	{"an owner whose lease has ended loses the session", func(l *lab) {
		l.claim(l, "sess_a", owner("one"))
		l.env.Pass(ttl - time.Second)
		_, err := l.Claim(l.Context(), "sess_a", owner("two"), ttl)
		l.taken(err, owner("one"))
		l.env.Pass(time.Second)
		l.claim(l, "sess_a", owner("two"))
	}},
	{"an owner that renews keeps all its sessions", func(l *lab) {
		l.claim(l, "sess_a", owner("one"))
		l.claim(l, "sess_b", owner("one"))
		l.claim(l, "sess_c", owner("three"))
		l.env.Pass(ttl / 2)
		l.must(l.Renew(l.Context(), owner("one"), ttl))
		l.env.Pass(ttl/2 + time.Second)
		for _, session := range []belay.SessionID{"sess_a", "sess_b"} {
			_, err := l.Claim(l.Context(), session, owner("two"), ttl)
			l.taken(err, owner("one"))
		}
		l.claim(l, "sess_c", owner("two"))
	}},
	// Guarantee: S4.
	{"a dead process loses its sessions at once", func(l *lab) {
		l.claim(l, "sess_a", owner("one"))
		l.env.Dies(owner("one"))
		o, err := l.OwnerOf(l.Context(), "sess_a")
		l.must(err)
		if o != nil {
			l.Fatalf("a dead owner is shown: %+v", o)
		}
		l.claim(l.again(), "sess_a", owner("two"))
	}},
	// Guarantee: S5.
	{"epochs grow with each claim, across release and reopening", func(l *lab) {
		last := int64(0)
		for i := range 6 {
			o := owner(number("o", i/2))
			epoch := l.claim(l, "sess_a", o)
			if epoch <= last {
				l.Fatalf("epoch %d after %d", epoch, last)
			}
			last = epoch
			if i%2 == 1 {
				l.must(l.Release(l.Context(), "sess_a", epoch))
			}
			if i == 3 {
				l.reopen()
			}
		}
	}},
	// Guarantee: S3.
	{"an owner that lost the session writes nothing", func(l *lab) {
		old := l.session("a")
		l.put(old, "mine")
		l.env.Dies(owner("a"))
		epoch := l.claim(l, old.Session, owner("two"))
		late := *old
		late.Events, late.Key = []event.Envelope{l.fact(old, "late")}, "k"
		_, err := l.Append(l.Context(), late)
		l.is(err, store.ErrStale)
		old.Epoch = epoch
		l.put(old, "theirs")
		same(l, "texts", l.texts(old.Stream), []string{"mine", "theirs"})
	}},
	{"a released session is free, and its old owner can't write", func(l *lab) {
		b := l.session("a")
		l.must(l.Release(l.Context(), b.Session, b.Epoch))
		b.Events = []event.Envelope{l.fact(b, "late")}
		_, err := l.Append(l.Context(), *b)
		l.is(err, store.ErrStale)
		l.claim(l, b.Session, owner("two"))
	}},
	{"an old epoch releases nothing", func(l *lab) {
		first := l.claim(l, "sess_a", owner("one"))
		l.env.Dies(owner("one"))
		l.claim(l, "sess_a", owner("two"))
		l.must(l.Release(l.Context(), "sess_a", first))
		_, err := l.Claim(l.Context(), "sess_a", owner("three"), ttl)
		l.taken(err, owner("two"))
	}},
	{"the live owner is named", func(l *lab) {
		none, err := l.OwnerOf(l.Context(), "sess_a")
		l.must(err)
		epoch := l.claim(l, "sess_a", owner("one"))
		got, err := l.again().OwnerOf(l.Context(), "sess_a")
		l.must(err)
		want := owner("one")
		want.Epoch, want.Since = epoch, l.env.Now()
		if none != nil || got == nil || *got != want {
			l.Fatalf("got %+v then %+v, want nobody then %+v", none, got, want)
		}
		l.must(l.Release(l.Context(), "sess_b", l.claim(l, "sess_b", owner("two"))))
		l.claim(l, "sess_c", owner("three"))
		l.env.Dies(owner("three"))
		all, err := l.Owned(l.Context())
		l.must(err)
		sameMap(l, "owned", all, map[belay.SessionID]store.Owner{"sess_a": want})
		l.env.Pass(ttl)
		if all, err = l.Owned(l.Context()); len(all) > 0 || err != nil {
			l.Fatalf("owned after the lease: %v, %v", all, err)
		}
		if got, err = l.OwnerOf(l.Context(), "sess_a"); got != nil || err != nil {
			l.Fatalf("after the lease: %+v, %v", got, err)
		}
	}},
	{"in the system session each stream has an owner", func(l *lab) {
		one, two := belay.StreamID("process/own_one"), belay.StreamID("process/own_two")
		epoch := l.claim(l, belay.SessionID(one), owner("one"))
		l.claim(l, belay.SessionID(two), owner("two"))
		b := &store.Batch{Session: belay.SystemSession, Stream: one, Epoch: epoch}
		l.put(b, "mine")
		b.Stream, b.After, b.Epoch = "process/own_three", 0, epoch
		b.Events = []event.Envelope{l.fact(b, "nobody's")}
		_, err := l.Append(l.Context(), *b)
		l.is(err, store.ErrStale)
	}},
	{"closing gives back what was claimed, and only that", func(l *lab) {
		other := l.again()
		l.claim(l, "sess_a", owner("one"))
		l.claim(other, "sess_b", owner("two"))
		l.claim(l, "sess_c", owner("one"))
		l.env.Dies(owner("one"))
		l.claim(other, "sess_c", owner("two"))
		l.must(l.Close())
		l.env.mu.Lock()
		clear(l.env.dead)
		l.env.mu.Unlock()
		l.claim(other, "sess_a", owner("three"))
		for _, session := range []belay.SessionID{"sess_b", "sess_c"} {
			_, err := other.Claim(l.Context(), session, owner("three"), ttl)
			l.taken(err, owner("two"))
		}
	}},
}
