package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

const anchored = belay.StreamID("thread/thr_mix0")

// anchorFor is an anchor of a mix's first stream behind a fact.
func anchorFor(t *testing.T, db *DB, seq int64) store.Anchor {
	t.Helper()
	ref, err := db.Put(t.Context(), fmt.Appendf(nil, `{"folded":%d}`, seq), "application/json")
	if err != nil {
		t.Fatal(err)
	}
	a := store.Anchor{Session: "sess_mix0", Stream: anchored, Seq: seq, State: ref, Version: "v1"}
	r := reader{db: db, stream: anchored, after: seq}
	if _, _, err := r.portion(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Hash = r.hash
	return a
}

// kept is a closed store with an anchor, a tombstone and a setting, and the
// heads that it had before.
func kept(t *testing.T, steps int) (dir string, before []store.Head) {
	t.Helper()
	dir = t.TempDir()
	db := openStore(t, dir, Options{})
	m, err := newMix(t.Context(), db, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.steps(t.Context(), steps); err != nil {
		t.Fatal(err)
	}
	for _, w := range m.works {
		head, err := db.Head(t.Context(), w.Stream)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, head)
	}
	if err := db.SetAnchor(t.Context(), anchorFor(t, db, 10), m.works[0].Epoch); err != nil {
		t.Fatal(err)
	}
	if err := db.Release(t.Context(), m.works[1].Session, m.works[1].Epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DeleteSession(t.Context(), m.works[1].Session, "user:mia"); err != nil {
		t.Fatal(err)
	}
	if err := db.Set(t.Context(), "retain", `{"count":3}`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, before
}

func TestVerifyAcceptsAnchorsAndTombstonesAndNamesThem(t *testing.T) {
	dir, before := kept(t, 60)
	early := store.Head{Stream: anchored, Seq: 4}
	r := verified(t, dir, append(before, early)...)
	if !r.OK() || len(r.Warnings) > 0 || r.Streams != 2 {
		t.Fatalf("%v, %v, %v", r.Problems, r.Differences, r.Warnings)
	}
	if len(r.Anchors) != 1 || r.Anchors[0].Stream != anchored || r.Anchors[0].Seq != 10 || !r.Anchors[0].State.Digest.Valid() {
		t.Errorf("anchors: %+v", r.Anchors)
	}
	got := fmt.Sprint(r.Deleted)
	for _, want := range []string{"thread/thr_mix1: its session sess_mix1 was deleted on ", " by user:mia", anchoredText} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	atAnchor := store.Head{Stream: anchored, Seq: 10, Hash: r.Anchors[0].Hash}
	if r := verified(t, dir, atAnchor); !r.OK() || r.Compared != 1 || len(r.Deleted) > 0 {
		t.Errorf("at the anchor: %v, %v", r.Differences, r.Deleted)
	}
	atAnchor.Hash[0]++
	other := before[1]
	other.Hash[0]++
	if r := verified(t, dir, atAnchor, other); len(r.Differences) != 2 {
		t.Errorf("other heads: %v", r.Differences)
	}
}

const anchoredText = "thread/thr_mix0: its facts up to 10 were let go on "

// Whoever changes an anchor or a tombstone can make its checksum fit, and not
// the chain behind it.
func TestVerifyTellsAnAnchorThatDoesNotFitItsChain(t *testing.T) {
	dir, _ := kept(t, 60)
	db := &DB{o: Options{}.withDefaults(), path: Path(dir), life: t.Context()}
	w, err := newWriter(db)
	if err != nil {
		t.Fatal(err)
	}
	defer w.disconnect()
	var number int64
	if _, err := w.row("SELECT stream FROM anchors", nil, &number); err != nil {
		t.Fatal(err)
	}
	r, _, refused, broken := w.anchor(number, anchored)
	if refused != nil || broken != nil {
		t.Fatal(refused, broken)
	}
	r.Hash[3]++
	if err := w.exec("UPDATE anchors SET hash=?, sum=?", r.Hash[:], r.sum()); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, dir); !slices.ContainsFunc(r.Problems, func(p Problem) bool { return strings.HasPrefix(p.Place, string(anchored)+"#11") }) {
		t.Errorf("got %v", r.Problems)
	}
}

func TestVerifyNamesWhatWasChangedOfWhatIsLeft(t *testing.T) {
	for _, c := range []struct{ statement, place, what string }{
		{"UPDATE anchors SET seq=seq-1", "anchors/" + string(anchored), "isn't what was written"},
		{"UPDATE anchors SET version='v2'", "anchors/" + string(anchored), "isn't what was written"},
		{"DELETE FROM anchors", string(anchored) + "#1", "facts up to 10 are not there"},
		{"UPDATE anchors SET stream=99", "anchors", "number 99, which has no row"},
		{`DELETE FROM blobs WHERE CAST(data AS TEXT) LIKE '{"folded%'`, "anchors/" + string(anchored), "is not there: sha256:"},
		{"UPDATE tombstones SET principal='user:eve'", "tombstones/sess_mix1", "isn't what was written"},
		{"UPDATE tombstones SET restored=1", "tombstones/sess_mix1", "isn't what was written"},
		{"UPDATE tombstones SET pos=3", "tombstones/sess_mix1", "isn't what was written"},
		{"UPDATE streams SET session='sess_mix1'", "tombstones/sess_mix1", "it was deleted and has a stream"},
		{"INSERT INTO owners SELECT 'sess_mix1', owner, host, pid, start, since, epoch, lease, sum FROM owners LIMIT 1", "tombstones/sess_mix1", "it was deleted and has an owner"},
		{"UPDATE meta SET value=replace(value, '3', '4') WHERE key='set:retain'", "meta/set:retain", "a setting isn't what was written"},
		{"UPDATE sqlite_sequence SET seq=1 WHERE name='streams'", "streams", "the last number is"},
	} {
		dir, _ := kept(t, 40)
		sqlExec(t, &DB{o: Options{}.withDefaults(), path: Path(dir), life: t.Context()}, c.statement)
		r := verified(t, dir)
		if !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Place == c.place && strings.Contains(p.What, c.what) }) {
			t.Errorf("%s:\nwant %s: %s\ngot %q", c.statement, c.place, c.what, r.Problems)
		}
	}
}

func TestDamageOfAShortenedStoreIsToldOrChangesNothing(t *testing.T) {
	t.Parallel()
	dir, _ := kept(t, 100)
	s := newSubject(t, dir)
	s.flips(t, seeded(t), sample(200), damageFiles(t, dir))
}

// TestAnAnchorGoesOnWhereItWasCutShort lets a process die before each commit
// while the facts before an anchor go.
func TestAnAnchorGoesOnWhereItWasCutShort(t *testing.T) {
	errDead := errors.New("the process died")
	for stop := 1; ; stop++ {
		dir := t.TempDir()
		commits, armed := 0, false
		db, err := Open(t.Context(), dir, Options{fault: func(point string) error {
			if armed && point == "commit" {
				commits++
			}
			if armed && commits >= stop {
				return errDead
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMix(t.Context(), db, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 11 { // more facts than two transactions remove
			b := *m.works[0]
			for range 100 {
				b.Events = append(b.Events, event.Envelope{Data: event.ModelDelta{Text: "x"}})
			}
			if _, err := db.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			m.works[0].After += 100
		}
		a := anchorFor(t, db, m.works[0].After-2)
		armed = true
		err = db.SetAnchor(t.Context(), a, m.works[0].Epoch)
		db.Close()
		if r := verified(t, dir); !r.OK() {
			t.Fatalf("stopped at commit %d: %v", stop, r.Problems)
		}
		if err == nil {
			if stop < 3 {
				t.Errorf("only %d commits", stop-1)
			}
			return
		}
		next := openStore(t, dir, Options{Alive: func(store.Owner) bool { return false }})
		if err := next.Check(t.Context()); err != nil {
			t.Errorf("stopped at commit %d: %v", stop, err)
		}
		for _, err := range next.Read(t.Context(), anchored, 0) {
			if err != nil {
				t.Fatalf("stopped at commit %d: %v", stop, err)
			}
		}
		if stop == 2 { // the anchor stands
			if _, err := next.Compact(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		epoch, err := next.Claim(t.Context(), a.Session, store.ThisProcess(), time.Minute)
		if err == nil {
			_, err = next.Put(t.Context(), fmt.Appendf(nil, `{"folded":%d}`, a.Seq), "application/json")
		}
		if err == nil {
			err = next.SetAnchor(t.Context(), a, epoch)
		}
		if err != nil {
			t.Fatalf("stopped at commit %d: %v", stop, err)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, dir); !r.OK() || len(r.Warnings) > 0 || r.Events != 2 {
			t.Errorf("stopped at commit %d: %v, %v, %d facts", stop, r.Problems, r.Warnings, r.Events)
		}
	}
}
