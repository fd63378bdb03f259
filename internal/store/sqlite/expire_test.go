package sqlite

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

func (w *work) fact(t *testing.T, db *DB, p event.Payload) {
	t.Helper()
	w.b.Events = []event.Envelope{{Data: p}}
	if _, err := db.Append(t.Context(), w.b); err != nil {
		t.Fatal(err)
	}
	w.b.After++
}

// prints puts an output and names it the way a call does.
func (w *work) prints(t *testing.T, db *DB, text string) belay.Ref {
	t.Helper()
	ref, err := db.Put(t.Context(), []byte(text), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	w.fact(t, db, event.ToolResult{Name: "exec", Whole: &ref, Digest: ref.Digest, Output: belay.Content{Text: "the whole output is " + string(ref.Digest)}})
	return ref
}

func (w *work) expires(t *testing.T, db *DB, ref belay.Ref) {
	t.Helper()
	w.fact(t, db, event.OutputExpired{Digest: ref.Digest, Bytes: ref.Size, Reason: event.ExpiredByRetention})
}

// rests gives sessions back, so that nothing counts as about to be named.
func rests(t *testing.T, db *DB, all ...*work) {
	t.Helper()
	for _, w := range all {
		if err := db.Release(t.Context(), w.b.Session, w.b.Epoch); err != nil {
			t.Fatal(err)
		}
	}
}

func has(t *testing.T, db *DB, ref belay.Ref) bool {
	t.Helper()
	_, err := db.Get(t.Context(), ref.Digest)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func drop(t *testing.T, db *DB) store.Expired {
	t.Helper()
	done, err := db.DropExpired(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

var printed = strings.Repeat("a long line of output\n", 4000)

// Guarantee: S50.
func TestAnOutputGoesOnlyAfterTheFactThatLetsItGo(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	w := newWork(t, db, "a")
	small, big, stays := w.prints(t, db, "small"), w.prints(t, db, printed), w.prints(t, db, printed+"stays")
	rests(t, db, w)
	if done := drop(t, db); done != (store.Expired{}) || !has(t, db, small) || !has(t, db, big) {
		t.Fatalf("%+v went without a fact", done)
	}
	w = again(t, db, w)
	w.expires(t, db, small)
	w.expires(t, db, big)
	if done := drop(t, db); done.Left != 2 || !has(t, db, small) || !has(t, db, big) {
		t.Fatalf("%+v while a session runs that may be about to name them", done)
	}
	rests(t, db, w)
	if done := drop(t, db); done != (store.Expired{Contents: 2, Bytes: small.Size + big.Size}) || has(t, db, small) || has(t, db, big) || !has(t, db, stays) {
		t.Fatalf("%+v", done)
	}
	if done := drop(t, db); done != (store.Expired{}) {
		t.Errorf("again: %+v", done)
	}
	dir := storeOf(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, dir); !r.OK() || r.Expired != 2 {
		t.Errorf("%d expired, %v", r.Expired, r.Problems)
	}
	if err := os.Remove(layout.ContentFile(db.blobs, stays.Digest)); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, dir); r.Expired != 2 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, string(stays.Digest)) {
		t.Errorf("what is missing without a fact: %d expired, %v", r.Expired, r.Problems)
	}
}

// again is a session that was given back, driven anew.
func again(t *testing.T, db *DB, w *work) *work {
	t.Helper()
	epoch, err := db.Claim(t.Context(), w.b.Session, store.Owner{ID: "own_again", Host: "elsewhere"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w.b.Epoch = epoch
	return w
}

// Guarantee: S51.
func TestAnOutputThatSomethingElseNeedsStays(t *testing.T) {
	document := func(db *DB, ref belay.Ref) error {
		list, err := db.Put(t.Context(), fmt.Appendf(nil, `[{"file":%q}]`, ref.Digest), "application/json")
		if err == nil && list.Size == 0 {
			err = errors.New("no list")
		}
		return err
	}
	for _, c := range []struct {
		name  string
		needs func(db *DB, a, b *work, ref belay.Ref) error
		goes  bool
	}{
		{"nothing", func(*DB, *work, *work, belay.Ref) error { return nil }, true},
		{"a text that mentions it", func(db *DB, a, b *work, ref belay.Ref) error {
			b.fact(t, db, event.ModelDelta{Text: `it is "` + string(ref.Digest) + `", I think`})
			return nil
		}, true},
		{"another session's output", func(db *DB, a, b *work, ref belay.Ref) error {
			b.fact(t, db, event.ProcessCompleted{Output: &ref})
			return nil
		}, false},
		{"another session's output that expired too", func(db *DB, a, b *work, ref belay.Ref) error {
			b.fact(t, db, event.ProcessCompleted{Output: &ref})
			b.expires(t, db, ref)
			return nil
		}, true},
		{"the same output, printed again since", func(db *DB, a, b *work, ref belay.Ref) error {
			a.fact(t, db, event.ProcessOutput{Ref: &ref})
			return nil
		}, false},
		{"something handed over", func(db *DB, a, b *work, ref belay.Ref) error {
			a.fact(t, db, event.ArtifactChanged{Kind: "artifact", Name: "report", After: &ref})
			return nil
		}, false},
		{"content of a file that can be restored", func(db *DB, a, b *work, ref belay.Ref) error {
			b.fact(t, db, event.ArtifactChanged{Kind: "file", Path: "a.txt", Before: &ref})
			return nil
		}, false},
		{"what a call was shown", func(db *DB, a, b *work, ref belay.Ref) error {
			a.fact(t, db, event.ToolResult{Name: "read", Output: belay.Content{Ref: &ref}})
			return nil
		}, false},
		{"the references of a fact", func(db *DB, a, b *work, ref belay.Ref) error {
			b.b.Events = []event.Envelope{{Data: event.ModelDelta{Text: "x"}, Refs: map[string]belay.Ref{"a": ref}}}
			_, err := db.Append(t.Context(), b.b)
			return err
		}, false},
		{"a command that waits", func(db *DB, a, b *work, ref belay.Ref) error {
			return db.Enqueue(t.Context(), belay.Order{ID: "c", Session: b.b.Session, Stream: b.b.Stream, Command: belay.InterruptTurn{Reason: string(ref.Digest)}})
		}, false},
		{"a document", func(db *DB, a, b *work, ref belay.Ref) error { return document(db, ref) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			db := openStore(t, dir, Options{})
			a, b := newWork(t, db, "a"), newWork(t, db, "b")
			for _, text := range []string{"small", printed} {
				ref := a.prints(t, db, text)
				a.expires(t, db, ref)
				if err := c.needs(db, a, b, ref); err != nil {
					t.Fatal(err)
				}
				rests(t, db, a, b)
				if done := drop(t, db); has(t, db, ref) == c.goes || (done.Contents == 1) != c.goes || (done.Needed >= 1) == c.goes {
					t.Errorf("%d bytes: %+v", ref.Size, done)
				}
				if text == printed {
					break
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				if r := verified(t, dir); !r.OK() {
					t.Errorf("%v", r.Problems)
				}
				dir = t.TempDir()
				db = openStore(t, dir, Options{})
				a, b = newWork(t, db, "a"), newWork(t, db, "b")
			}
		})
	}
}

// Guarantee: S51.
func TestWhatIsNeededBesidesIsKnownBefore(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	a := newWork(t, db, "a")
	free, handed := a.prints(t, db, "free"), a.prints(t, db, "handed over")
	a.fact(t, db, event.ArtifactChanged{Kind: "artifact", Name: "report", After: &handed})
	needed, err := db.NeededBesides(t.Context(), []belay.Digest{free.Digest, handed.Digest, "no digest"})
	if err != nil || len(needed) != 1 || !needed[handed.Digest] {
		t.Errorf("%v, %v", needed, err)
	}
}

// TestARemovalThatWasCutShortGoesOn lets a process die before each commit, and at
// each step on a file, of a removal.
// Guarantee: S50.
func TestARemovalThatWasCutShortGoesOn(t *testing.T) {
	errDead := errors.New("the process died")
	for stop := 1; ; stop++ {
		dir := t.TempDir()
		db := openStore(t, dir, Options{})
		w := newWork(t, db, "a")
		let := []belay.Ref{w.prints(t, db, "small"), w.prints(t, db, printed), w.prints(t, db, printed+"more")}
		stays := []belay.Ref{w.prints(t, db, "stays"), w.prints(t, db, printed+"stays")}
		for _, ref := range let {
			w.expires(t, db, ref)
		}
		rests(t, db, w)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		steps := 0
		die := func(what string) error {
			if slices.Contains([]string{"commit", "rename", "remove"}, what) {
				steps++
			}
			if steps >= stop {
				return errDead
			}
			return nil
		}
		dying, err := Open(t.Context(), dir, Options{fault: die, FS: dyingFS{FS: files.System{}, die: die}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = dying.DropExpired(t.Context())
		dying.Close()
		if r := verified(t, dir); !r.OK() {
			t.Fatalf("stopped at step %d: %v", stop, r.Problems)
		}
		ended := err == nil
		next := openStore(t, dir, Options{})
		drop(t, next)
		for i, ref := range append(let, stays...) {
			if has(t, next, ref) != (i >= len(let)) {
				t.Errorf("stopped at step %d: content %d is there: %v", stop, i, i < len(let))
			}
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, dir); !r.OK() || r.Expired != len(let) {
			t.Errorf("stopped at step %d: %d expired, %v", stop, r.Expired, r.Problems)
		}
		if ended {
			if stop < 5 {
				t.Errorf("only %d steps", stop-1)
			}
			return
		}
	}
}

// dyingFS does nothing more from a step on.
type dyingFS struct {
	files.FS
	die func(string) error
}

func (f dyingFS) Rename(from, to string) error {
	if err := f.die("rename"); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f dyingFS) Remove(path string) error {
	if err := f.die("remove"); err != nil {
		return err
	}
	return f.FS.Remove(path)
}
