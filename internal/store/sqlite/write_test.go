package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// work is a claimed session and the batch that comes next in it.
type work struct{ b store.Batch }

func newWork(t *testing.T, db *DB, name string) *work {
	t.Helper()
	session := belay.SessionID("sess_" + name)
	epoch, err := db.Claim(t.Context(), session, store.Owner{ID: "own_" + name, Host: "elsewhere"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &work{store.Batch{Session: session, Stream: belay.ThreadID("thr_" + name).Stream(), Epoch: epoch}}
}

func (w *work) try(ctx context.Context, db *DB, text string) error {
	w.b.Events = []event.Envelope{{Data: event.ModelDelta{Text: text}}}
	_, err := db.Append(ctx, w.b)
	if err == nil {
		w.b.After++
	}
	return err
}

func (w *work) append(t *testing.T, db *DB, text string) {
	t.Helper()
	if err := w.try(t.Context(), db, text); err != nil {
		t.Fatal(err)
	}
}

// result is an error as SQLite gives it.
type result int

func (r result) Error() string { return "result " + strconv.Itoa(int(r)) }
func (r result) Code() int     { return int(r) }

// fault fails the commits for which it is set.
type fault struct {
	mu  sync.Mutex
	err error
}

func (f *fault) set(err error) { f.mu.Lock(); f.err = err; f.mu.Unlock() }

func (f *fault) at(string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func TestWritesThatWaitAreCommittedTogether(t *testing.T) {
	const sessions, each = 100, 10
	db := openStore(t, t.TempDir(), Options{})
	var all []*work
	for i := range sessions {
		all = append(all, newWork(t, db, strconv.Itoa(i)))
	}
	before := db.Stats()
	var wg sync.WaitGroup
	for _, w := range all {
		wg.Go(func() {
			for range each {
				if err := w.try(t.Context(), db, "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := db.Stats()
	if got := s.Appends - before.Appends; got != sessions*each {
		t.Fatalf("%d appends, want %d", got, sessions*each)
	}
	if syncs := s.Transactions - before.Transactions; syncs > sessions*each/4 {
		t.Fatalf("%d transactions for %d appends", syncs, sessions*each)
	}
}

func TestARefusedWriteDoesNotDisturbItsGroup(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	good, bad := newWork(t, db, "good"), newWork(t, db, "bad")
	bad.b.After = 7
	// One transaction holds both: the good one, and one that SQLite itself refuses.
	group := []*request{}
	for _, w := range []*work{good, bad} {
		w.b.Events = []event.Envelope{{Data: event.ModelDelta{Text: "x"}}}
		op, err := packAppend([]store.Batch{w.b})
		if err != nil {
			t.Fatal(err)
		}
		group = append(group, &request{op: op, done: make(chan error, 1)})
	}
	group = append(group, &request{op: brokenOp{}, done: make(chan error, 1)})
	db.writer.mu.Lock()
	db.writer.waiting = append(db.writer.waiting, group...)
	db.writer.mu.Unlock()
	db.writer.signal()
	if err := <-group[0].done; err != nil {
		t.Error(err)
	}
	if err := <-group[1].done; !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if err := <-group[2].done; err == nil {
		t.Error("the broken write succeeded")
	}
	if head, err := db.Head(t.Context(), good.b.Stream); err != nil || head.Seq != 1 {
		t.Errorf("the good write: %+v, %v", head, err)
	}
}

type brokenOp struct{}

func (brokenOp) apply(w *writer) error {
	return w.exec("INSERT INTO meta (key, value) VALUES ('runtime', 'second')")
}

// Guarantee: S15.
func TestAFullDiskLosesNothingAndTheStoreGoesOn(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	w := newWork(t, db, "a")
	w.append(t, db, "before")
	if err := pagesOf(db, "PRAGMA max_page_count=1"); err != nil { // SQLite raises it to what is used
		t.Fatal(err)
	}
	blob, err := db.Put(t.Context(), []byte("put before the disk was full"), "")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 8000)
	n := 0
	for err == nil && n < 100 {
		if err = w.try(t.Context(), db, text); err == nil {
			n++
		}
	}
	wantCode(t, err, belay.CodeStoreFull)
	wantCode(t, w.try(t.Context(), db, text), belay.CodeStoreFull)
	if err := pagesOf(db, "PRAGMA max_page_count=100000"); err != nil {
		t.Fatal(err)
	}
	w.append(t, db, text)
	if head, err := db.Head(t.Context(), w.b.Stream); err != nil || head.Seq != int64(n+2) {
		t.Fatalf("%+v, %v, want %d facts", head, err, n+2)
	}
	again := openStore(t, storeDir(db), Options{})
	if _, err := again.Get(t.Context(), blob.Digest); err != nil {
		t.Fatalf("the blob that waited: %v", err)
	}
	if err := again.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pagesOf runs a pragma on the writer's connection, between its transactions.
func pagesOf(db *DB, pragma string) error {
	return db.do(context.WithoutCancel(db.life), pragmaOp(pragma))
}

type pragmaOp string

func (p pragmaOp) apply(w *writer) error {
	_, err := w.number(string(p))
	return err
}

func storeDir(db *DB) string { return db.Dir() + "/../.." }

// Guarantee: S16.
func TestAFailedSyncClosesTheStoreForWritingUntilItWasChecked(t *testing.T) {
	dir := t.TempDir()
	var f fault
	db := openStore(t, dir, Options{fault: f.at})
	w := newWork(t, db, "a")
	w.append(t, db, "before")
	f.set(result(layout.CodeIO | 4<<8))
	wantCode(t, w.try(t.Context(), db, "lost"), belay.CodeStoreFailed)
	f.set(nil)
	wantCode(t, w.try(t.Context(), db, "still refused"), belay.CodeStoreFailed)
	_, err := db.Put(t.Context(), []byte("x"), "")
	wantCode(t, err, belay.CodeStoreFailed)
	if end, err := db.End(t.Context()); end != 1 || err != nil {
		t.Fatalf("reading on: %d, %v", end, err)
	}
	if !layout.NeedsCheck(dir) {
		t.Fatal("no mark was left")
	}
	db.Close()
	db = openStore(t, dir, Options{Alive: func(store.Owner) bool { return false }})
	if layout.NeedsCheck(dir) {
		t.Fatal("the mark is there after the check")
	}
	w = newWork(t, db, "a")
	w.b.After = 1
	w.append(t, db, "after")
}

// Guarantee: S16.
func TestAMarkedStoreThatIsDamagedIsNotWritten(t *testing.T) {
	for what, statement := range map[string]string{
		"a fact":     "UPDATE events SET data=CAST('{\"text\":\"forged\"}' AS BLOB) WHERE pos=2",
		"a lost one": "DELETE FROM events WHERE pos=3",
		"a head":     "UPDATE streams SET seq=2",
	} {
		dir := t.TempDir()
		db := openStore(t, dir, Options{})
		w := newWork(t, db, "a")
		for range 3 {
			w.append(t, db, "x")
		}
		sqlExec(t, db.place, statement)
		db.leaveMark()
		db.Close()
		_, err := Open(t.Context(), dir, Options{})
		wantCode(t, err, belay.CodeStoreDamaged)
		if !layout.NeedsCheck(dir) {
			t.Errorf("%s: the mark is gone", what)
		}
		openStore(t, dir, Options{ReadOnly: true})
	}
}

func TestABusyStoreSaysSoAndCanBeTriedAgain(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{BusyTimeout: 20 * time.Millisecond})
	w := newWork(t, db, "a")
	other, err := newConn(db.place)
	if err != nil {
		t.Fatal(err)
	}
	defer other.disconnect()
	if err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.try(t.Context(), db, "x"), belay.CodeStoreBusy)
	if err := other.exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	w.append(t, db, "x")
}

func TestARolledBackTypeNameIsForgotten(t *testing.T) {
	var f fault
	db := openStore(t, t.TempDir(), Options{fault: f.at})
	w := newWork(t, db, "a")
	f.set(result(layout.CodeFull))
	wantCode(t, w.try(t.Context(), db, "x"), belay.CodeStoreFull)
	f.set(nil)
	w.append(t, db, "x")
	for _, err := range db.Read(t.Context(), w.b.Stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheLogIsFoldedIntoTheDatabase(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	w := newWork(t, db, "a")
	for i := range 60 {
		w.b.State = &store.State{Data: bytes.Repeat([]byte{byte(i)}, 400<<10)} // the same bytes again would cost nothing
		w.append(t, db, "x")
	}
	if s := db.Stats(); s.Checkpoints == 0 || s.WALBytes > 12<<20 {
		t.Fatalf("after 24 MB: %+v", s)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(layout.Path(dir) + "-wal"); err == nil && info.Size() > 0 {
		t.Fatalf("the log has %d bytes after closing", info.Size())
	}
}

func TestCloseCommitsWhatWasAccepted(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	w := newWork(t, db, "a")
	small, err := db.Put(t.Context(), []byte("small"), "")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- w.try(t.Context(), db, "racing") }()
	db.Close()
	appended := <-done
	if appended != nil {
		wantCode(t, appended, belay.CodeBadState)
	}
	db = openStore(t, dir, Options{})
	if _, err := db.Get(t.Context(), small.Digest); err != nil {
		t.Error(err)
	}
	if end, err := db.End(t.Context()); err != nil || (end == 1) != (appended == nil) {
		t.Errorf("the append said %v, the end is %d, %v", appended, end, err)
	}
	if _, err := db.Claim(t.Context(), w.b.Session, store.ThisProcess(), time.Minute); err != nil {
		t.Errorf("the session wasn't given back: %v", err)
	}
}

func TestACallerThatLeavesDoesNotStopTheWrite(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{BusyTimeout: time.Minute})
	w := newWork(t, db, "a")
	other, err := newConn(db.place)
	if err != nil {
		t.Fatal(err)
	}
	defer other.disconnect()
	if err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.try(ctx, db, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	changed := db.Changed(t.Context())
	if err := other.exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	<-changed
	if err := w.try(t.Context(), db, "x"); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("got %v, want a conflict with the write that went on", err)
	}
}

// TestEndedClaimsDontPileUp counts the rows of claims on workspaces. One that
// is given back goes at once; one that ended otherwise, when another process
// wrote and the rows are read again.
func TestEndedClaimsDontPileUp(t *testing.T) {
	dir := t.TempDir()
	alive := true
	db := openStore(t, dir, Options{Alive: func(store.Owner) bool { return alive }})
	rows := func(want int) {
		t.Helper()
		var n int
		if err := db.readers.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM writers").Scan(&n); err != nil || n != want {
			t.Errorf("%d rows, %d expected: %v", n, want, err)
		}
	}
	claim := func(db *DB, n int) *work {
		w := newWork(t, db, strconv.Itoa(n))
		if err := db.ClaimWriter(t.Context(), w.b.Session, w.b.Epoch, "/w/"+strconv.Itoa(n), false); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for n := range 5 {
		if w := claim(db, n); n < 3 {
			if err := db.Release(t.Context(), w.b.Session, w.b.Epoch); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows(2)
	alive = false
	newWork(t, openStore(t, dir, Options{Alive: func(store.Owner) bool { return alive }}), "4") // another process takes a session over
	rows(2)
	claim(db, 9)
	rows(2)
}
