package storetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// writes claims a session for o and the workspace for the session.
func (l *lab) writes(s store.Store, session belay.SessionID, o store.Owner, path string) error {
	l.Helper()
	return s.ClaimWriter(l.Context(), session, l.claim(s, session, o), path, false)
}

// writtenBy wants a *WriterError that names who.
func (l *lab) writtenBy(err error, session belay.SessionID, path string) {
	l.Helper()
	var w *store.WriterError
	if !errors.As(err, &w) || w.Writer.Session != session || w.Writer.Path != path || w.Writer.Owner.ID == "" {
		l.Fatalf("got %v, want %s written by %s", err, path, session)
	}
}

var writerLaws = []law{
	{"a workspace has one writer", func(l *lab) {
		l.must(l.writes(l, "sess_a", owner("one"), "/w"))
		l.must(l.writes(l, "sess_b", owner("one"), "/other"))
		l.writtenBy(l.writes(l.again(), "sess_c", owner("two"), "/w"), "sess_a", "/w")
	}},
	// Guarantee: S26.
	{"of many that claim a workspace at once one gets it", func(l *lab) {
		handles := []store.Store{l.Store, l.again()}
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				session := belay.SessionID(number("sess_", i))
				epoch, err := handles[i%2].Claim(l.Context(), session, owner(number("o", i)), ttl)
				if err != nil {
					l.Error(err)
					return
				}
				err = handles[i%2].ClaimWriter(l.Context(), session, epoch, "/w", false)
				var w *store.WriterError
				if err == nil {
					won.Add(1)
				} else if !errors.As(err, &w) {
					l.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			l.Fatalf("%d writers", won.Load())
		}
	}},
	// Guarantee: S26.
	{"a workspace inside another is the same, one beside it isn't", func(l *lab) {
		l.must(l.writes(l, "sess_a", owner("one"), "/w/in"))
		l.writtenBy(l.writes(l, "sess_b", owner("two"), "/w"), "sess_a", "/w/in")
		l.writtenBy(l.writes(l, "sess_b", owner("two"), "/"), "sess_a", "/w/in")
		l.writtenBy(l.writes(l, "sess_b", owner("two"), "/w/in/deeper"), "sess_a", "/w/in")
		l.must(l.writes(l, "sess_b", owner("two"), "/w/inside"))
	}},
	{"a writer that shares is one more", func(l *lab) {
		l.must(l.writes(l, "sess_a", owner("one"), "/w"))
		epoch := l.claim(l, "sess_b", owner("two"))
		l.must(l.ClaimWriter(l.Context(), "sess_b", epoch, "/w", true))
		l.must(l.Release(l.Context(), "sess_a", 1))
		l.writtenBy(l.writes(l, "sess_c", owner("three"), "/w"), "sess_b", "/w")
	}},
	// Guarantee: S26.
	{"a writer's claim ends with its ownership", func(l *lab) {
		other := l.again()
		l.must(l.writes(l, "sess_a", owner("one"), "/w"))
		l.must(l.Release(l.Context(), "sess_a", 1))
		l.must(l.writes(other, "sess_b", owner("two"), "/w"))
		l.env.Dies(owner("two"))
		l.must(l.writes(l, "sess_c", owner("three"), "/w"))
		l.env.Pass(ttl)
		l.must(l.writes(l, "sess_d", owner("four"), "/w"))
	}},
	{"a session that was taken over isn't a writer until it claims", func(l *lab) {
		l.must(l.writes(l, "sess_a", owner("one"), "/w"))
		l.env.Dies(owner("one"))
		l.claim(l, "sess_a", owner("two"))
		l.must(l.writes(l, "sess_b", owner("three"), "/w"))
		l.is(l.ClaimWriter(l.Context(), "sess_a", 1, "/w", true), store.ErrStale)
		l.writtenBy(l.ClaimWriter(l.Context(), "sess_a", 2, "/w", false), "sess_b", "/w")
	}},
	{"a session claims one workspace, again and again", func(l *lab) {
		l.must(l.writes(l, "sess_a", owner("one"), "/w"))
		l.must(l.writes(l, "sess_a", owner("one"), "/w"))
		l.must(l.writes(l, "sess_a", owner("one"), "/v"))
		l.must(l.writes(l, "sess_b", owner("two"), "/w"))
	}},
	{"the writers are listed", func(l *lab) {
		l.must(l.writes(l, "sess_b", owner("two"), "/w/in"))
		l.must(l.writes(l, "sess_a", owner("one"), "/v"))
		var all []string
		for _, path := range []string{"/w", "/v/x", "/u", ""} {
			ws, err := l.again().Writers(l.Context(), path)
			l.must(err)
			for _, w := range ws {
				all = append(all, path+" "+string(w.Session)+" "+w.Path+" "+w.Owner.ID)
			}
		}
		same(l, "writers", all, []string{"/w sess_b /w/in " + owner("two").ID, "/v/x sess_a /v " + owner("one").ID,
			" sess_a /v " + owner("one").ID, " sess_b /w/in " + owner("two").ID})
	}},
}
