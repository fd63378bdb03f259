package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// operation is one write. apply reads what it needs, refuses, or writes; it may
// run again after a rollback. An error other than a refusal ends the transaction
// for everybody in it.
type operation interface{ apply(w *writer) error }

// refusal is the answer of an operation that has written nothing.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// committed is what an operation does in memory after its transaction.
type committer interface{ committed(w *writer) }

// request is an operation in the queue.
type request struct {
	op   operation
	err  error      // the answer, set before done
	done chan error // holds one answer
}

// queue is what waits to be written.
type queue struct {
	wake chan struct{} // holds one: something is in the queue, or closing

	mu      sync.Mutex
	waiting []*request
	closing bool
	failed  error // closed for writing until the store is opened again
}

// writer commits what is queued. Everything but the queue belongs to its goroutine,
// and to Open and Close before and after.
type writer struct {
	queue
	heads
	small *pendingBlobs
	watch *watch

	types   map[string]int64 // numbers of type names
	fresh   []string         // names that this transaction added to types
	claims  map[string]int64 // epochs of what was claimed through this store, for Close
	putting []smallBlob      // that this transaction writes before its operations
	grown   int              // bytes written since the log's size was last looked at
	quiet   int              // groups since then
	links   []link           // of the append that is written
}

const (
	groupLimit    = 512 // writes in a transaction
	lookBytes     = 512 << 10
	lookGroups    = 64
	passiveBytes  = 4 << 20  // fold the log into the database from here on
	truncateBytes = 64 << 20 // and wait for readers to make the file small from here on
	frameBytes    = 4096 + 24
)

func newWriter(p *place, small *pendingBlobs, watch *watch) (*writer, error) {
	c, err := newConn(p)
	if err != nil {
		return nil, err
	}
	return &writer{queue: queue{wake: make(chan struct{}, 1)}, heads: heads{conn: c}, small: small, watch: watch,
		types: map[string]int64{}, claims: map[string]int64{}}, nil
}

// do queues a write and waits for its answer. When ctx ends first the write
// may still be committed.
func (a *access) do(ctx context.Context, op operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.writer == nil {
		return a.refusal()
	}
	r := &request{op: op, done: make(chan error, 1)}
	if err := a.writer.submit(r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *queue) submit(r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return errClosed()
	}
	if q.failed != nil {
		return q.failed
	}
	q.waiting = append(q.waiting, r)
	q.signal()
	return nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close lets the goroutine end after everything in the queue.
func (q *queue) close() {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	q.signal()
}

// run is the writer's goroutine.
func (w *writer) run() {
	if w.db.o.oneThread {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	for {
		wrote, open := w.turn()
		if wrote {
			continue
		}
		if !open {
			return
		}
		<-w.wake
	}
}

// turn commits what is queued.
func (w *writer) turn() (wrote, open bool) {
	group, open := w.next()
	if len(group) > 0 {
		w.write(group)
	}
	if w.due() {
		w.look()
	}
	return len(group) > 0, open
}

// next takes what is queued, up to a limit.
func (q *queue) next() (group []*request, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), groupLimit)
	group, q.waiting = q.waiting[:n:n], q.waiting[n:]
	if len(q.waiting) == 0 {
		q.waiting = nil // the array belongs to the group now
	}
	return group, !q.closing
}

// write writes a group and answers the callers.
func (w *writer) write(group []*request) {
	blobs, err := w.attempt(group)
	if err != nil && len(group) > 1 && ownFault(err) {
		for _, r := range group {
			w.write([]*request{r})
		}
		return
	}
	if err != nil {
		w.db.stats.failed.Add(1)
		err = w.failure(err)
		w.small.failed(err)
		for _, r := range group {
			r.done <- err
		}
		return
	}
	w.quiet++
	w.small.committed(blobs)
	w.db.stats.transactions.Add(1)
	w.db.stats.largest.Store(max(w.db.stats.largest.Load(), int64(len(group))))
	for _, r := range group {
		if c, ok := r.op.(committer); ok && r.err == nil {
			c.committed(w)
		}
	}
	w.watch.notify()
	for _, r := range group {
		r.done <- r.err
	}
}

// attempt runs a group in one transaction: the small content that was put
// before, then the operations. An error means that nothing was written.
func (w *writer) attempt(group []*request) (blobs []smallBlob, err error) {
	blobs = w.small.waiting()
	if err := w.closedForWriting(); err != nil {
		return blobs, err
	}
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return blobs, err
	}
	w.fresh, w.putting = w.fresh[:0], blobs
	if err = w.refresh(); err == nil {
		err = w.inside(group, blobs)
	}
	if err == nil {
		if err = w.db.o.fault("commit"); err == nil {
			err = w.exec("COMMIT")
		}
	}
	if err != nil {
		w.rollback()
	}
	return blobs, err
}

func (w *writer) inside(group []*request, blobs []smallBlob) error {
	for _, b := range blobs {
		if err := w.putBlob(b); err != nil {
			return err
		}
	}
	for _, r := range group {
		err := r.op.apply(w)
		answer, refused := errors.AsType[refusal](err)
		if err != nil && !refused {
			return err
		}
		if _, keeps := r.op.(keeper); !keeps {
			w.forget()
		}
		r.err = answer.error
	}
	return nil
}

// rollback forgets the transaction. SQLite may have done it by itself.
func (w *writer) rollback() {
	_ = w.exec("ROLLBACK")
	w.forget()
	for _, name := range w.fresh {
		delete(w.types, name)
	}
	w.fresh = w.fresh[:0]
}

// ownFault reports whether an error may be about one operation of a group, so
// that the others deserve a transaction without it.
func ownFault(err error) bool {
	switch layout.ResultCode(err) {
	case layout.CodeBusy, layout.CodeLocked, layout.CodeReadOnly, layout.CodeIO, layout.CodeCorrupt, layout.CodeFull, layout.CodeCantOpen, layout.CodeNotADB:
		return false
	}
	return !errors.Is(err, driver.ErrBadConn)
}

// failure is the error of a failed group. After a failed write or sync the content
// of the disk is unknown: the store closes for writing, and leaves a mark for the
// process that opens it next.
func (w *writer) failure(err error) error {
	code := layout.ResultCode(err)
	wrapped := w.db.wrap(err, "write")
	if code != layout.CodeIO && code != layout.CodeCorrupt && code != layout.CodeNotADB {
		return wrapped
	}
	w.mu.Lock()
	if w.failed == nil {
		w.failed = wrapped
	}
	w.mu.Unlock()
	w.db.leaveMark()
	return wrapped
}

func (q *queue) closedForWriting() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}

// due reports whether the log may have grown so much that it should be looked at.
func (w *writer) due() bool { return w.quiet >= lookGroups || w.grown >= lookBytes }

// look folds the log into the database when it has grown.
func (w *writer) look() {
	w.quiet, w.grown = 0, 0
	frames, folded, err := w.wal("NOOP")
	if err != nil || (frames-folded)*frameBytes < passiveBytes && frames*frameBytes < truncateBytes {
		return
	}
	w.db.stats.checkpoints.Add(1)
	if frames = w.fold("PASSIVE"); frames*frameBytes >= truncateBytes {
		w.truncate()
	}
}

// fold runs a checkpoint and returns the frames in the log. What it can't do
// now is done later, with one exception: after a failed write or sync the
// system may call pages clean that never reached the disk.
func (w *writer) fold(kind string) (frames int64) {
	frames, _, err := w.wal(kind)
	if err != nil && layout.ExtendedCode(err) != layout.CodeIOTruncate {
		_ = w.failure(err) // there is no caller to return it to: the next write gets it
		return 0
	}
	return frames
}

// truncate waits a moment for readers, then makes the log empty.
func (w *writer) truncate() {
	_ = w.script("PRAGMA busy_timeout=200")
	w.fold("TRUNCATE")
	_ = w.script("PRAGMA busy_timeout=" + strconv.FormatInt(w.db.o.BusyTimeout.Milliseconds(), 10))
}

// finish commits what Put left, gives claims back and closes the connection.
// The goroutine has ended. A store that failed has told so already: Close adds
// an error only when content is lost with it, and leases end by themselves.
func (w *writer) finish() error {
	blobs := w.small.waiting()
	err := w.closedForWriting()
	if err == nil && len(blobs)+len(w.claims) > 0 {
		if blobs, err = w.attempt([]*request{{op: releaseAll{}}}); err != nil {
			err = w.failure(err)
		}
	}
	if err == nil {
		w.truncate()
	} else if len(blobs) == 0 {
		err = nil
	}
	return errors.Join(err, w.disconnect())
}

func (w *writer) now() time.Time { return w.db.o.Now() }
