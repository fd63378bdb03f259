package sqlite

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// damaged is a store with one of everything that readers check.
func damaged(t *testing.T) (db *DB, small, large belay.Ref) {
	t.Helper()
	db = openStore(t, t.TempDir(), Options{})
	var err error
	if small, err = db.Put(t.Context(), []byte("small content"), ""); err != nil {
		t.Fatal(err)
	}
	if large, err = db.Put(t.Context(), []byte(strings.Repeat("large", 10000)), ""); err != nil {
		t.Fatal(err)
	}
	w := newWork(t, db, "a")
	w.b.Lane = store.Lane{Wake: time.UnixMicro(1e15)}
	w.b.State = &store.State{Seq: 1, Version: "v", Data: []byte("state")}
	for range 3 {
		w.append(t, db, "x")
	}
	err = db.Enqueue(t.Context(), belay.Order{ID: "c1", Session: w.b.Session, Stream: w.b.Stream, Command: belay.InterruptTurn{Reason: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	return db, small, large
}

// Guarantee: S12.
func TestChangedRowsAreNoticedByWhoReadsThem(t *testing.T) {
	const stream = belay.StreamID("thread/thr_a")
	read := func(db *DB) (err error) {
		for _, err = range db.Read(t.Context(), stream, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	lanes := func(db *DB) error { _, err := db.Lanes(t.Context(), ""); return err }
	head := func(db *DB) error { _, err := db.Head(t.Context(), stream); return err }
	inbox := func(db *DB) error { _, err := db.Inbox(t.Context(), stream); return err }
	for _, c := range []struct {
		statement string
		read      func(*DB) error
	}{
		{"UPDATE events SET data=CAST('{\"text\":\"y\"}' AS BLOB) WHERE seq=2", read},
		{"UPDATE events SET time=time+1 WHERE seq=3", read},
		{"UPDATE events SET hash=zeroblob(32) WHERE seq=1", read},
		{"UPDATE events SET ids=x'ffffff7f' WHERE seq=1", read},
		{"DELETE FROM events WHERE seq=2", read},
		{"UPDATE types SET name='session.created'", read},
		{"UPDATE streams SET wake=wake+1", lanes},
		{"UPDATE streams SET session='sess_b'", lanes},
		{"UPDATE streams SET seq=2", head},
		{"UPDATE streams SET hash=zeroblob(32)", head},
		{"UPDATE inbox SET body=CAST('{\"reason\":\"y\"}' AS BLOB)", inbox},
		{"UPDATE inbox SET principal='user:eve'", inbox},
	} {
		db, _, _ := damaged(t)
		if err := c.read(db); err != nil {
			t.Fatal(err)
		}
		sqlExec(t, db.place, c.statement)
		db.typeNames.known, db.streamNames.known = nil, nil
		if err := c.read(db); belay.CodeOf(err) != belay.CodeStoreDamaged {
			t.Errorf("%s: got %v", c.statement, err)
		}
	}
}

// Guarantee: S11.
func TestChangedContentIsNoticed(t *testing.T) {
	db, small, large := damaged(t)
	sqlExec(t, db.place, "UPDATE blobs SET data=CAST('small Content' AS BLOB)")
	_, err := db.Get(t.Context(), small.Digest)
	wantCode(t, err, belay.CodeStoreDamaged)

	path := layout.ContentFile(db.blobs, large.Digest)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = db.Get(t.Context(), large.Digest)
	wantCode(t, err, belay.CodeStoreDamaged)
	r, err := db.Open(t.Context(), large.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	wantCode(t, err, belay.CodeStoreDamaged)
	if n != int64(len(b)) {
		t.Errorf("streamed %d of %d bytes before the error", n, len(b))
	}
}

func TestAChangedStateIsNoState(t *testing.T) {
	db, _, _ := damaged(t)
	if st, err := db.LoadState(t.Context(), "thread/thr_a", "v"); st == nil || err != nil {
		t.Fatalf("got %v, %v", st, err)
	}
	sqlExec(t, db.place, "UPDATE states SET data=CAST('State' AS BLOB)")
	if st, err := db.LoadState(t.Context(), "thread/thr_a", "v"); st != nil || err != nil {
		t.Fatalf("got %v, %v", st, err)
	}
}
