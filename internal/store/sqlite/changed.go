package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// watch wakes those who wait for commits.
type watch struct {
	kick chan struct{} // holds one: somebody waits

	mu      sync.Mutex
	ch      chan struct{} // closed and replaced by the next commit
	waiting bool          // somebody has ch
}

func (w *watch) init() {
	w.kick, w.ch = make(chan struct{}, 1), make(chan struct{})
}

func (w *watch) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting {
		close(w.ch)
		w.ch, w.waiting = make(chan struct{}), false
	}
}

func (w *watch) wanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// Changed returns a channel that is closed after the next commit, here or in
// another process. It may be closed without one: what counts is what a read
// finds afterwards. All who wait share one poller; nobody waiting costs nothing.
func (db *DB) Changed(ctx context.Context) <-chan struct{} {
	if ctx.Err() != nil || db.closed.Load() {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	db.watch.mu.Lock()
	ch := db.watch.ch
	db.watch.waiting = true
	db.watch.mu.Unlock()
	if db.closed.Load() {
		db.watch.notify() // Close may have looked before we waited
		return ch
	}
	select {
	case db.watch.kick <- struct{}{}:
	default:
	}
	return ch
}

// poll looks for other processes' commits while somebody waits.
func (db *DB) poll() {
	var p poller
	defer p.close()
	for {
		select {
		case <-db.stop:
			return
		case <-db.watch.kick:
		}
		tick := time.NewTicker(db.o.PollInterval)
		for open := true; open && db.watch.wanted(); {
			select {
			case <-db.stop:
				open = false
			case <-tick.C:
				if p.changed(db) {
					db.watch.notify()
				}
			}
		}
		tick.Stop()
	}
}

// poller has a connection of its own, because SQLite counts changes from where
// a connection last looked.
type poller struct {
	conn    *sql.Conn
	stmt    *sql.Stmt
	version int64
}

// changed reports whether the database has changed since the last call. Not
// knowing counts as a change, so the first call is always one.
func (p *poller) changed(db *DB) bool {
	db.reading.RLock()
	defer db.reading.RUnlock()
	if db.closed.Load() {
		return false
	}
	var err error
	if p.conn == nil {
		if p.conn, err = db.readers.Conn(db.life); err != nil {
			return true
		}
	}
	if p.stmt == nil {
		if p.stmt, err = p.conn.PrepareContext(db.life, "PRAGMA data_version"); err != nil {
			return true
		}
	}
	var version int64
	if err := p.stmt.QueryRowContext(db.life).Scan(&version); err != nil {
		return true
	}
	before := p.version
	p.version = version
	return version != before
}

func (p *poller) close() {
	if p.stmt != nil {
		_ = p.stmt.Close()
	}
	if p.conn != nil {
		_ = p.conn.Close()
	}
}
