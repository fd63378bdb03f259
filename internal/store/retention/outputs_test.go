package retention_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/retention"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bench is a store at a time.
type bench struct {
	*testing.T
	*sqlite.DB
	dir string
	now time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, dir: t.TempDir(), now: start}
	b.open()
	return b
}

func (b *bench) open() {
	b.Helper()
	db, err := sqlite.Open(b.T.Context(), b.dir, sqlite.Options{Now: func() time.Time { return b.now }})
	b.must(err)
	b.DB = db
	b.Cleanup(func() { db.Close() })
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// add appends facts to a stream of a session.
func (b *bench) add(session belay.SessionID, stream belay.StreamID, lane store.Lane, ids belay.IDs, facts ...event.Payload) {
	b.Helper()
	ctx := b.T.Context()
	epoch, err := b.Claim(ctx, session, store.ThisProcess(), time.Hour)
	b.must(err)
	head, err := b.Head(ctx, stream)
	if !errors.Is(err, store.ErrNotFound) {
		b.must(err)
	}
	ids.Session = session
	batch := store.Batch{Session: session, Stream: stream, After: head.Seq, Epoch: epoch, Lane: lane}
	for _, p := range facts {
		batch.Events = append(batch.Events, event.Envelope{IDs: ids, Data: p})
	}
	_, err = b.Append(ctx, batch)
	b.must(err)
	b.must(b.Release(ctx, session, epoch))
}

// prints makes a session that printed something.
func (b *bench) prints(name, text string) belay.Ref {
	b.Helper()
	ref, err := b.Put(b.T.Context(), []byte(text), "text/plain")
	b.must(err)
	session, thread := belay.SessionID("sess_"+name), belay.ThreadID("thr_"+name)
	b.add(session, session.Stream(), store.Lane{}, belay.IDs{}, event.SessionCreated{Workspace: "/w", Thread: thread})
	ids := belay.IDs{Thread: thread, Turn: "turn_1", Step: "step_1", Call: belay.CallID("call_" + name), Process: belay.ProcessID("proc_" + name)}
	b.add(session, thread.Stream(), store.Lane{Wake: start.Add(time.Hour)}, ids, event.OutputSpilled{Owner: "process", Bytes: ref.Size, Ref: &ref}, event.ProcessCompleted{Output: &ref})
	ids.Process = ""
	b.add(session, thread.Stream(), store.Lane{Wake: start.Add(time.Hour)}, ids, event.ToolResult{Name: "exec", Whole: &ref, Output: belay.Content{Text: "head and tail"}})
	return ref
}

func (b *bench) list() []retention.Output {
	b.Helper()
	all, err := retention.List(b.T.Context(), b.DB, "")
	b.must(err)
	return all
}

func (b *bench) expire(w retention.ExpiryTarget, all ...retention.Output) []retention.OutputChoice {
	b.Helper()
	var chosen []retention.OutputChoice
	for _, o := range all {
		chosen = append(chosen, retention.OutputChoice{Output: o, Why: "the disk is small"})
	}
	if w.Owner == (store.Owner{}) {
		w.Owner = store.ThisProcess()
	}
	done, err := retention.Expire(b.T.Context(), b.DB, w, chosen)
	b.must(err)
	return done
}

func (b *bench) expirations(s belay.SessionID) (all []event.Envelope) {
	b.Helper()
	for e, err := range b.Read(b.T.Context(), s.Stream(), 0) {
		b.must(err)
		if _, ok := e.Data.(event.OutputExpired); ok {
			all = append(all, e)
		}
	}
	return all
}

func TestOutputsAreListedWithWhereTheyComeFrom(t *testing.T) {
	b := newBench(t)
	one := b.prints("a", "one")
	b.now = b.now.Add(time.Hour)
	two := b.prints("b", "two")
	b.now = b.now.Add(time.Hour)
	b.prints("c", "one")
	all := b.list()
	if len(all) != 2 || all[0].Digest != two.Digest || all[1].Digest != one.Digest || len(all[1].Named) != 2 || !all[1].Recorded.Equal(b.now) {
		t.Fatalf("%+v", all)
	}
	want := retention.Naming{Session: "sess_a", Owner: "process", Tool: "exec", Call: "call_a", Process: "proc_a", Recorded: start}
	if got := all[1].Named[0]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, n := range map[string]int{string(one.Digest): 1, strings.TrimPrefix(string(two.Digest), "sha256:")[:8]: 1, "proc_b": 1, "call_c": 1, "abc": 0, "": 0, "proc_x": 0} {
		if found := retention.Find(all, name); len(found) != n {
			t.Errorf("%q: %d found", name, len(found))
		}
	}
	of, err := retention.List(t.Context(), b.DB, "sess_b")
	if err != nil || len(of) != 1 || of[0].Digest != two.Digest {
		t.Errorf("%+v, %v", of, err)
	}
}

// Guarantee: S50.
func TestAnOutputExpiresInEverySessionByAFactAndThenItsBytesGo(t *testing.T) {
	b := newBench(t)
	one := b.prints("a", "one")
	b.prints("b", "one")
	before, err := b.Lanes(t.Context(), "")
	b.must(err)
	if done := b.expire(retention.ExpiryTarget{Reason: event.ExpiredAsked, DryRun: true}, b.list()...); len(done) != 1 || done[0].Kept != "" || len(b.expirations("sess_a")) > 0 {
		t.Fatalf("a dry run: %+v", done)
	}
	done := b.expire(retention.ExpiryTarget{Reason: event.ExpiredAsked, By: "user:mia"}, b.list()...)
	if len(done) != 1 || done[0].Kept != "" {
		t.Fatalf("%+v", done)
	}
	for _, s := range []belay.SessionID{"sess_a", "sess_b"} {
		facts := b.expirations(s)
		want := event.OutputExpired{Digest: one.Digest, Bytes: 3, Owner: "process", Reason: event.ExpiredAsked, Why: "the disk is small", By: "user:mia", Since: start}
		if len(facts) != 1 || facts[0].Data != event.Payload(want) || facts[0].IDs.Session != s {
			t.Errorf("%s: %+v", s, facts)
		}
	}
	if after, err := b.Lanes(t.Context(), ""); err != nil || !slices.Equal(before, after) {
		t.Errorf("lanes %+v, were %+v, %v", after, before, err)
	}
	if all := b.list(); len(all) != 1 || !all[0].Gone() || all[0].Named[0].Expired.By != "user:mia" {
		t.Errorf("%+v", all)
	}
	if r, err := b.DropExpired(t.Context()); err != nil || r.Contents != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	again := b.prints("c", "one") // and is there again
	if all := b.list(); len(all) != 1 || all[0].Gone() || all[0].Named[2].Expired != nil {
		t.Errorf("%+v", all)
	}
	if r, err := b.DropExpired(t.Context()); err != nil || r.Contents != 0 || r.Needed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := b.Get(t.Context(), again.Digest); err != nil {
		t.Error(err)
	}
}

// Guarantee: S51.
func TestOutputsThatAreNeededOrDrivenStay(t *testing.T) {
	b := newBench(t)
	handed := b.prints("a", "handed over")
	b.add("sess_a", "thread/thr_a", store.Lane{}, belay.IDs{Thread: "thr_a"}, event.ArtifactChanged{Kind: "artifact", Name: "report", After: &handed})
	driven := b.prints("b", "driven")
	b.prints("c", "driven")
	_, err := b.Claim(t.Context(), "sess_b", store.Owner{ID: "own_other", Host: "elsewhere"}, time.Hour)
	b.must(err)
	done := b.expire(retention.ExpiryTarget{Reason: event.ExpiredByRetention}, b.list()...)
	for _, c := range done {
		if want := map[belay.Digest]string{handed.Digest: "something else needs", driven.Digest: "a process drives sess_b"}[c.Digest]; !strings.HasPrefix(c.Kept, want) || want == "" {
			t.Errorf("%s: %q, want %q", c.Digest.Short(), c.Kept, want)
		}
	}
	for _, s := range []belay.SessionID{"sess_a", "sess_b", "sess_c"} {
		if facts := b.expirations(s); len(facts) > 0 {
			t.Errorf("%s: %+v", s, facts)
		}
	}
}

// dying is a store whose process dies before the n-th thing that it is asked to
// write.
type dying struct {
	*sqlite.DB
	left int
}

var errDead = errors.New("the process died")

func (d *dying) die() error {
	if d.left--; d.left < 0 {
		return errDead
	}
	return nil
}

func (d *dying) Append(ctx context.Context, b ...store.Batch) ([]store.Position, error) {
	if err := d.die(); err != nil {
		return nil, err
	}
	return d.DB.Append(ctx, b...)
}

func (d *dying) Claim(ctx context.Context, s belay.SessionID, o store.Owner, ttl time.Duration) (int64, error) {
	if err := d.die(); err != nil {
		return 0, err
	}
	return d.DB.Claim(ctx, s, o, ttl)
}

// TestACrashLeavesAnOutputOrTheFactThatItIsGone lets a process die at every point
// between the first fact and the removal; the next one ends it right.
// Guarantee: S50.
func TestACrashLeavesAnOutputOrTheFactThatItIsGone(t *testing.T) {
	for stop := 0; ; stop++ {
		b := newBench(t)
		refs := []belay.Ref{b.prints("a", "one"), b.prints("b", strings.Repeat("two ", 10_000))}
		b.prints("c", "one")
		var chosen []retention.OutputChoice
		for _, o := range b.list() {
			chosen = append(chosen, retention.OutputChoice{Output: o})
		}
		w := retention.ExpiryTarget{Reason: event.ExpiredByRetention, Owner: store.Owner{ID: "own_dies", Host: "here", PID: os.Getpid()}}
		_, err := retention.Expire(t.Context(), &dying{b.DB, stop}, w, chosen)
		if stop%2 == 0 { // the next one may come before the removal or after
			_, e := b.DropExpired(t.Context())
			b.must(e)
		}
		b.must(b.Close())
		r, e := verify.Run(t.Context(), b.dir, verify.Options{})
		if e != nil || !r.OK() {
			t.Fatalf("stopped at %d: %v, %v", stop, r.Problems, e)
		}
		b.now = b.now.Add(time.Hour) // the dead one's lease is over
		b.open()
		b.expire(w, b.list()...)
		_, e = b.DropExpired(t.Context())
		b.must(e)
		for _, ref := range refs {
			if _, err := b.Get(t.Context(), ref.Digest); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("stopped at %d: %v", stop, err)
			}
		}
		for _, s := range []belay.SessionID{"sess_a", "sess_b", "sess_c"} {
			if facts := b.expirations(s); len(facts) != 1 {
				t.Errorf("stopped at %d: %s has %d facts", stop, s, len(facts))
			}
		}
		if err == nil {
			if stop < 6 {
				t.Errorf("only %d points", stop)
			}
			return
		}
	}
}

// TestWhatIsMoreThanGoesAtOnceWaits: those that stay for another reason don't take
// the place of those that can go.
// Guarantee: S53.
func TestWhatIsMoreThanGoesAtOnceWaits(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b", "c"} {
		b.prints(name, "of "+name)
		b.now = b.now.Add(time.Hour)
	}
	epoch, err := b.Claim(t.Context(), "sess_a", store.ThisProcess(), time.Hour)
	b.must(err)
	defer b.Release(t.Context(), "sess_a", epoch) //nolint:errcheck // the store goes with the test
	for _, dry := range []bool{true, false} {
		done := b.expire(retention.ExpiryTarget{Reason: event.ExpiredByRetention, Most: 1, DryRun: dry}, b.list()...)
		if len(done) != 3 || done[0].Kept != "a process drives sess_a" || done[1].Kept != "" || done[2].Kept != retention.Later {
			t.Errorf("dry %t: %+v", dry, done)
		}
	}
	if len(b.expirations("sess_b")) != 1 || len(b.expirations("sess_c")) != 0 {
		t.Error("facts say something else")
	}
}

// slow is a log that takes a millisecond for a fact.
type slow struct {
	retention.Source
	facts int
}

func (s slow) Scan(ctx context.Context, _ store.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for i := range s.facts {
			time.Sleep(time.Millisecond)
			if !yield(store.Record{Position: store.Position(i + 1)}, nil) {
				return
			}
		}
	}
}

// TestALookWithTimeLeavesTheMachineToOthers nine parts of ten, misses nothing, and
// ends with its context.
// Guarantee: S53.
func TestALookWithTimeLeavesTheMachineToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, n := time.Now(), 0
		for r, err := range retention.Gently(slow{facts: 3500}).Scan(t.Context(), 0) {
			if n++; err != nil || r.Position != store.Position(n) {
				t.Fatalf("fact %d: %v, %v", n, r.Position, err)
			}
		}
		if took := time.Since(begun); n != 3500 || took != 3500*time.Millisecond+3*9*time.Second {
			t.Errorf("%d facts in %s", n, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var last error
		for _, err := range retention.Gently(slow{facts: 3500}).Scan(ctx, 0) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("a context that ended: %v", last)
		}
	})
}
