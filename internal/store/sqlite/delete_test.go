package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	"github.com/belay-run/belay/internal/store/storetest"
)

// TestADeletionGoesOnWhereItWasCutShort lets a process die before each of a
// deletion's commits.
// Guarantee: S32.
func TestADeletionGoesOnWhereItWasCutShort(t *testing.T) {
	errDead := errors.New("the process died")
	for stop := 1; ; stop++ {
		db, m := stored(t)
		dir, b := storeOf(db), m.works[0]
		for _, w := range m.works {
			if err := db.Release(t.Context(), w.Session, w.Epoch); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		commits := 0
		dying, err := Open(t.Context(), dir, Options{fault: func(point string) error {
			if commits++; point == "commit" && commits >= stop {
				return errDead
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = dying.DeleteSession(t.Context(), b.Session, "user:mia")
		dying.Close()
		if r := verified(t, dir); !r.OK() {
			t.Fatalf("stopped at commit %d: %v", stop, r.Problems)
		}
		if err == nil {
			if stop < 4 {
				t.Errorf("only %d commits", stop-1)
			}
			return
		}
		next := openStore(t, dir, Options{})
		for range next.Scan(t.Context(), 0) {
		}
		if err := next.Check(t.Context()); err != nil {
			t.Errorf("stopped at commit %d: %v", stop, err)
		}
		if _, err := next.DeleteSession(t.Context(), b.Session, "user:mia"); err != nil {
			t.Fatalf("stopped at commit %d: %v", stop, err)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, dir); !r.OK() || len(r.Warnings) > 0 || r.Streams != 2 {
			t.Errorf("stopped at commit %d: %v, %v, %d streams", stop, r.Problems, r.Warnings, r.Streams)
		}
	}
}

// Guarantee: S34.
func TestRetentionTakesNoSessionInWhichSomethingIsWanted(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	works := []*work{newWork(t, db, "rests"), newWork(t, db, "wakes"), newWork(t, db, "runs"), newWork(t, db, "waits"), newWork(t, db, "owned")}
	works[1].b.Lane.Wake, works[2].b.Lane.Runnable = time.Now().Add(time.Hour), true
	for i, w := range works {
		w.append(t, db, "x")
		if i == 3 {
			if err := db.Enqueue(t.Context(), belay.Order{ID: "c", Session: w.b.Session, Stream: w.b.Stream, Command: belay.InterruptTurn{}}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 4 {
			continue
		}
		if err := db.Release(t.Context(), w.b.Session, w.b.Epoch); err != nil {
			t.Fatal(err)
		}
	}
	for i, w := range works {
		err := db.DeleteIdle(t.Context(), w.b.Session, "retention")
		_, owned := errors.AsType[*store.OwnedError](err)
		if (err == nil) != (i == 0) || owned != (i == 4) || err != nil && !owned && belay.CodeOf(err) != belay.CodeBusy {
			t.Errorf("%s: %v", w.b.Session, err)
		}
	}
}

const words = "the words that nobody may find any more"

// wordy writes a session that says the words everywhere it can.
func wordy(t *testing.T, db *DB, b *work) {
	t.Helper()
	for i := range 40 {
		text := strings.Repeat(fmt.Sprintf("%s (%d). ", words, i), 1+i*4)
		refs := map[string]belay.Ref{}
		for _, size := range []int{1, 10, 200} {
			ref, err := db.Put(t.Context(), []byte(strings.Repeat(text, size)[:min(len(text)*size, 100_000)]), "")
			if err != nil {
				t.Fatal(err)
			}
			refs[fmt.Sprint("r", size)] = ref
		}
		b.b.State = &store.State{Seq: b.b.After + 1, Version: "v1", Data: []byte(strings.Repeat(text, 3))}
		b.b.Sends = []belay.Order{{ID: belay.CommandID(fmt.Sprint(b.b.Session, "c", i)), Session: b.b.Session, Stream: b.b.Stream, Command: belay.InterruptTurn{Reason: text}}}
		b.b.Key = text
		b.b.Events = []event.Envelope{{Data: event.ModelDelta{Text: text[:min(len(text), 8000)]}, Refs: refs}}
		if _, err := db.Append(t.Context(), b.b); err != nil {
			t.Fatal(err)
		}
		b.b.After++
	}
	if err := db.SaveView(t.Context(), "list", 0, 1, storetest.DataRows(map[string][]byte{"1/" + string(b.b.Session): []byte(words)})); err != nil {
		t.Fatal(err)
	}
}

// saying lists the files below a directory that hold the words.
func saying(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(words)) {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Guarantee: S33.
func TestDeletedContentIsInNoFile(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	b, other := newWork(t, db, "a"), newWork(t, db, "b")
	wordy(t, db, b)
	other.append(t, db, "stays")
	if before := saying(t, dir); len(before) < 10 {
		t.Fatalf("only %v have it before", before)
	}
	for _, w := range []*work{b, other} {
		if err := db.Release(t.Context(), w.b.Session, w.b.Epoch); err != nil {
			t.Fatal(err)
		}
	}
	d, err := db.DeleteSession(t.Context(), b.b.Session, "user:mia")
	if err != nil || d.Left > 0 || d.Contents < 100 {
		t.Fatalf("%+v, %v", d, err)
	}
	before, err := db.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Compact(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	after, err := db.Inventory(t.Context())
	if err != nil || after.Free != 0 || before.Free == 0 || c.After >= c.Before || after.Log != 0 {
		t.Errorf("%+v, then %+v, %v, %+v", before, after, err, c)
	}
	if files := saying(t, dir); len(files) > 0 {
		t.Errorf("the words are still in %v", files)
	}
}

// Guarantee: S31.
func TestContentIsCollectedWhenNothingHasNamedItForADay(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	db := openStore(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	w := newWork(t, db, "a")
	put := func(text string) belay.Ref {
		ref, err := db.Put(t.Context(), []byte(text), "")
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	large := strings.Repeat("large ", 20_000)
	named, list := put("named"), put(fmt.Sprintf("[%q]", belay.DigestOf([]byte("listed"))))
	put("listed")
	put("unnamed")
	put(large + "unnamed")
	largeNamed := put(large + "named")
	w.b.Events = []event.Envelope{{Data: event.ModelDelta{Text: "x"}, Refs: map[string]belay.Ref{"a": named, "b": list, "c": largeNamed}}}
	if _, err := db.Append(t.Context(), w.b); err != nil {
		t.Fatal(err)
	}
	w.b.After++
	collect := func(dry bool, want int) {
		t.Helper()
		c, err := db.Compact(t.Context(), dry)
		if err != nil || c.Contents != want || (c.Bytes > 0) != (want > 0) {
			t.Fatalf("got %+v, %v, want %d contents", c, err, want)
		}
	}
	collect(false, 0) // it is too young
	now = now.Add(30 * time.Hour)
	for _, text := range []string{large + "unnamed", large + "named"} {
		path := layout.ContentFile(db.blobs, belay.DigestOf([]byte(text)))
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-30*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	put("unnamed") // and is new again
	w.append(t, db, "y")
	collect(true, 1)
	collect(false, 1)
	now = now.Add(30 * time.Hour)
	collect(false, 1)
	for text, there := range map[string]bool{"named": true, "listed": true, "unnamed": false, large + "named": true, large + "unnamed": false} {
		if _, err := db.Get(t.Context(), belay.DigestOf([]byte(text))); (err == nil) != there {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, storeOf(db)); !r.OK() {
		t.Errorf("%v", r.Problems)
	}
}

// Content may be named, or put again, while it is looked for.
// Guarantee: S31.
func TestContentThatIsNamedMeanwhileIsNotCollected(t *testing.T) {
	now := time.Now()
	db := openStore(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	w := newWork(t, db, "a")
	var old []belay.Ref
	for _, text := range []string{"small", "other", strings.Repeat("large ", 20_000), strings.Repeat("again ", 20_000)} {
		ref, err := db.Put(t.Context(), []byte(text), "")
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, ref)
	}
	w.append(t, db, "x")
	now = now.Add(30 * time.Hour)
	c, files := contents{}, map[[32]byte]os.FileInfo{}
	for i, ref := range old {
		raw, _ := store.RawDigest(ref.Digest)
		c.add(raw)
		if i > 1 {
			path := layout.ContentFile(db.blobs, ref.Digest)
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(-30*time.Hour)); err != nil {
				t.Fatal(err)
			}
			files[raw], _ = os.Stat(path)
		}
	}
	s, err := db.markReachable(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	w.b.Events = []event.Envelope{{Data: event.ModelDelta{Text: "y"}, Refs: map[string]belay.Ref{"a": old[0], "b": old[2]}}}
	if _, err := db.Append(t.Context(), w.b); err != nil {
		t.Fatal(err)
	}
	w.b.After++
	if _, err := db.Put(t.Context(), []byte("other"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(t.Context(), []byte(strings.Repeat("again ", 20_000)), ""); err != nil {
		t.Fatal(err)
	}
	op := &sweepOp{seen: s, old: true, files: files}
	for d := range c {
		op.of = append(op.of, d)
	}
	if err := db.do(t.Context(), op); err != nil || op.dropped != 0 {
		t.Errorf("%d removed, %v", op.dropped, err)
	}
	for _, ref := range old {
		if _, err := db.Get(t.Context(), ref.Digest); err != nil {
			t.Errorf("%d bytes: %v", ref.Size, err)
		}
	}
}
