package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// watch wakes those who wait for commits.
type watch struct {
	kick chan struct{} // holds one while there is a waiter

	mu      sync.Mutex
	ch      chan struct{} // closed and replaced by the next commit
	waiting bool          // a waiter has ch
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
// finds afterwards. All waiters share one poller; without waiters there is none.
func (l *factLog) Changed(ctx context.Context) <-chan struct{} {
	if ctx.Err() != nil || l.closed.Load() {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	l.watch.mu.Lock()
	ch := l.watch.ch
	l.watch.waiting = true
	l.watch.mu.Unlock()
	if l.closed.Load() {
		l.watch.notify() // Close may have looked before we waited
		return ch
	}
	select {
	case l.watch.kick <- struct{}{}:
	default:
	}
	return ch
}

// poll looks for other processes' commits while there are waiters.
func (l *factLog) poll(stop <-chan struct{}) {
	var p poller
	defer p.close()
	for {
		select {
		case <-stop:
			return
		case <-l.watch.kick:
		}
		tick := time.NewTicker(l.o.PollInterval)
		for open := true; open && l.watch.wanted(); {
			select {
			case <-stop:
				open = false
			case <-tick.C:
				if p.changed(l.access) {
					l.watch.notify()
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
	version int64
}

// changed reports whether the database has changed since the last call. Not
// knowing counts as a change, so the first call is always one.
func (p *poller) changed(a *access) bool {
	a.reading.RLock()
	defer a.reading.RUnlock()
	if a.closed.Load() {
		return false
	}
	var err error
	if p.conn == nil {
		if p.conn, err = a.readers.Conn(a.life); err != nil {
			return true
		}
	}
	var version int64
	if err := p.conn.QueryRowContext(a.life, "PRAGMA data_version").Scan(&version); err != nil {
		return true
	}
	before := p.version
	p.version = version
	return version != before
}

func (p *poller) close() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
}
