// Package storetest is what every store must do: a table of laws, each a claim
// and a short function that tries to break it. A driver passes all of them or
// it isn't one.
package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Config says how to get at the store under test.
type Config struct {
	// Open makes an empty store that takes the time and the fate of processes
	// from env. The test closes it.
	Open func(t *testing.T, env *Env) store.Store
	// Again opens the data of s another time, as another process would. s may
	// be open or closed.
	Again func(t *testing.T, env *Env, s store.Store) store.Store
}

// Env is the world of a law: a clock and who is dead.
type Env struct {
	mu   sync.Mutex
	now  time.Time
	dead map[string]bool
}

// newEnv is a world in which everybody lives.
func newEnv() *Env {
	return &Env{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), dead: map[string]bool{}}
}

// Now is the world's time. It moves only when a law says so.
func (e *Env) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// Pass lets time pass.
func (e *Env) Pass(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = e.now.Add(d)
}

// Alive reports whether an owner's process lives.
func (e *Env) Alive(o store.Owner) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.dead[o.ID]
}

// Dies ends an owner's process.
func (e *Env) Dies(o store.Owner) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead[o.ID] = true
}

// law is one claim.
type law struct {
	claim string
	try   func(l *lab)
}

// Run holds a store against every law.
func Run(t *testing.T, c Config) {
	for _, group := range []struct {
		name string
		laws []law
	}{
		{"log", logLaws}, {"window", windowLaws}, {"inbox", inboxLaws}, {"owners", ownerLaws}, {"founding", foundingLaws}, {"writers", writerLaws}, {"blobs", blobLaws}, {"rest", restLaws}, {"archive", archiveLaws},
		{"deletion", deletionLaws},
		{"append", appendLaws},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, law := range group.laws {
				t.Run(law.claim, func(t *testing.T) {
					env := newEnv()
					law.try(&lab{tester: t, t: t, Store: open(t, c.Open(t, env)), env: env, c: c})
				})
			}
		})
	}
	// Guarantee: S21.
	t.Run("it answers as a plain model does", func(t *testing.T) { model(t, c) })
	// Guarantee: S21.
	t.Run("lists and sums are those of a view's rows", func(t *testing.T) { Lists(t, c, nil) })
}

func open(t *testing.T, s store.Store) store.Store {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// tester is what laws need of a test; the model's random runs are one too.
type tester interface {
	Helper()
	Context() context.Context
	Failed() bool
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// lab is a law's store and tools.
type lab struct {
	tester
	store.Store
	t   *testing.T
	env *Env
	c   Config
}

// again is another handle on the same data.
func (l *lab) again() store.Store {
	l.Helper()
	return open(l.t, l.c.Again(l.t, l.env, l.Store))
}

// reopen closes the store and continues with a new handle.
func (l *lab) reopen() {
	l.Helper()
	l.must(l.Store.Close())
	l.Store = l.again()
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) is(got, want error) {
	l.Helper()
	if want == nil && got != nil || want != nil && !matches(got, want) {
		l.Fatalf("got %v, want %v", got, want)
	}
}

// code wants an error with a code.
func (l *lab) code(err error, want belay.Code) {
	l.Helper()
	if err == nil || belay.CodeOf(err) != want {
		l.Fatalf("got %v, want code %s", err, want)
	}
}

func owner(name string) store.Owner {
	return store.Owner{ID: "own_" + name, Host: "here", PID: 42, Start: "1"}
}

// session claims a session for an owner and returns its thread's next batch.
func (l *lab) session(name string) *store.Batch {
	l.Helper()
	session := belay.SessionID("sess_" + name)
	epoch, err := l.Claim(l.Context(), session, owner(name), time.Hour)
	l.must(err)
	return &store.Batch{Session: session, Stream: belay.ThreadID("thr_" + name).Stream(), Epoch: epoch}
}

// fact is an event that says text.
func (l *lab) fact(b *store.Batch, text string) event.Envelope {
	return event.Envelope{Time: l.env.Now(), Runtime: l.Runtime(), IDs: belay.IDs{Session: b.Session, Thread: belay.ThreadID(b.Stream.ID())},
		Data: event.ModelDelta{Attempt: 1, Text: text}}
}

// put appends facts, moves the batch behind them, and returns the last one's
// position, 0 if there is none.
func (l *lab) put(b *store.Batch, texts ...string) store.Position {
	l.Helper()
	c := *b
	for _, text := range texts {
		c.Events = append(c.Events, l.fact(b, text))
	}
	pos, err := l.Append(l.Context(), c)
	l.must(err)
	if len(pos) != len(texts) && b.Key == "" {
		l.Fatalf("%d positions of %d facts", len(pos), len(texts))
	}
	b.After += int64(len(texts))
	if len(pos) == 0 {
		return 0
	}
	return pos[len(pos)-1]
}

// stream is everything in a stream.
func (l *lab) stream(s store.Log, id belay.StreamID, after int64) (all []event.Envelope) {
	l.Helper()
	for e, err := range s.Read(l.Context(), id, after) {
		l.must(err)
		all = append(all, e)
	}
	return all
}

// texts is what the facts of a stream say.
func (l *lab) texts(id belay.StreamID) (all []string) {
	l.Helper()
	for _, e := range l.stream(l, id, 0) {
		all = append(all, e.Data.(event.ModelDelta).Text)
	}
	return all
}

func (l *lab) log(s store.Log, after store.Position) (all []store.Record) {
	l.Helper()
	for r, err := range s.Scan(l.Context(), after) {
		l.must(err)
		all = append(all, r)
	}
	return all
}

func (l *lab) order(id string, b *store.Batch, reason string) belay.Order {
	return belay.Order{ID: belay.CommandID(id), Principal: "user:ada", Time: l.env.Now(), Session: b.Session, Stream: b.Stream,
		Command: belay.InterruptTurn{Reason: reason}}
}

// waiting is the ids in a stream's inbox.
func (l *lab) waiting(id belay.StreamID) (ids []belay.CommandID) {
	l.Helper()
	orders, err := l.Inbox(l.Context(), id)
	l.must(err)
	for _, o := range orders {
		ids = append(ids, o.ID)
	}
	return ids
}

func (l *lab) lanes(session belay.SessionID) map[belay.StreamID]store.LaneRow {
	l.Helper()
	rows, err := l.Lanes(l.Context(), session)
	l.must(err)
	m := map[belay.StreamID]store.LaneRow{}
	for _, r := range rows {
		m[r.Stream] = r
	}
	if len(m) != len(rows) {
		l.Fatalf("a lane is listed twice: %v", rows)
	}
	return m
}

func (l *lab) rows(view string) map[string]string {
	m := map[string]string{}
	var keys []string
	for key, data := range l.ViewRows(l.Context(), view, "") {
		m[key] = string(data)
		keys = append(keys, key)
	}
	if !slices.IsSorted(keys) || len(keys) != len(m) {
		l.Fatalf("view rows come as %q", keys)
	}
	return m
}

func same[T comparable](l *lab, what string, got, want []T) {
	l.Helper()
	if !slices.Equal(got, want) {
		l.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func sameMap[K comparable, V comparable](l *lab, what string, got, want map[K]V) {
	l.Helper()
	if !maps.Equal(got, want) {
		l.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func number(prefix string, n int) string { return fmt.Sprintf("%s%d", prefix, n) }
