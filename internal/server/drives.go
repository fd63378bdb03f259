package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// drives runs the sessions of one tenant that have something to do, so many at
// once, and takes over those whose owner is gone. A session at rest costs its
// row in the store and nothing here but the time at which it wakes.
//
// One goroutine chooses; each session that runs has one more.
type drives struct {
	st   store.Store
	pool *pool
	run  func(ctx context.Context, id belay.SessionID) error
	now  func() time.Time
	log  *slog.Logger

	kicked chan struct{} // capacity 1
	over   chan struct{} // closed when the loop has ended: nothing begins any more
	wg     sync.WaitGroup

	mu      sync.Mutex
	ready   map[belay.SessionID]*waiting
	running map[belay.SessionID]bool // true: look again when it has ended
	wakes   map[belay.SessionID]time.Time
	failed  map[belay.SessionID]int // times in a row
	order   int64
}

// waiting is a session that wants to run.
type waiting struct {
	priority int
	order    int64 // who came first
	since    time.Time
}

// pool bounds how many sessions run at once: in the process and for one tenant.
type pool struct {
	all  chan struct{} // a slot each, shared by the tenants
	mine int
}

// scanEvery is how often the lanes of all sessions are read: what other
// processes did to sessions that nobody drives is seen then.
const scanEvery = 2 * time.Second

func newDrives(st store.Store, all chan struct{}, mine int, now func() time.Time, log *slog.Logger) *drives {
	return &drives{st: st, pool: &pool{all: all, mine: mine}, now: now, log: log, kicked: make(chan struct{}, 1), over: make(chan struct{}),
		ready: map[belay.SessionID]*waiting{}, running: map[belay.SessionID]bool{}, wakes: map[belay.SessionID]time.Time{}, failed: map[belay.SessionID]int{}}
}

func (d *drives) kick() {
	select {
	case d.kicked <- struct{}{}:
	default:
	}
}

// want makes a session run soon. The priority counts among those that wait now.
func (d *drives) want(id belay.SessionID, priority int) {
	d.mu.Lock()
	d.add(id, priority)
	d.mu.Unlock()
	d.kick()
}

// add is want under the lock.
func (d *drives) add(id belay.SessionID, priority int) {
	if id == belay.SystemSession {
		return
	}
	delete(d.wakes, id)
	if _, runs := d.running[id]; runs {
		d.running[id] = true
		return
	}
	if w := d.ready[id]; w != nil {
		w.priority = max(w.priority, priority)
		return
	}
	d.order++
	d.ready[id] = &waiting{priority: priority, order: d.order, since: d.now()}
}

// loop chooses who runs until ctx ends. hold, when it is closed, keeps new ones
// from starting. The sessions run under work, which ends later.
func (d *drives) loop(ctx, work context.Context, hold <-chan struct{}) {
	defer close(d.over)
	scan := time.NewTicker(scanEvery)
	defer scan.Stop()
	d.scan(ctx)
	changed := d.st.Changed(ctx)
	for {
		var slots chan struct{}
		if d.next() != "" {
			slots = d.pool.all
		}
		due, stop := d.due()
		select {
		case <-ctx.Done():
			stop()
			return
		case <-hold:
			stop()
			return
		case slots <- struct{}{}:
			if !d.start(work) {
				<-slots
			}
		case <-d.kicked:
		case <-due:
			d.wake()
		case <-scan.C:
			select {
			case <-changed:
				changed = d.st.Changed(ctx)
				d.scan(ctx)
			default:
			}
		}
		stop()
	}
}

// wait returns when the loop and everything that it began have ended.
func (d *drives) wait() {
	<-d.over
	d.wg.Wait()
}

// next is who is to run: of those with the highest priority who came first.
// Nobody is, while the tenant has all it may have.
func (d *drives) next() belay.SessionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.choose()
}

func (d *drives) choose() belay.SessionID {
	if len(d.running) >= d.pool.mine {
		return ""
	}
	var best belay.SessionID
	for id, w := range d.ready {
		b := d.ready[best]
		if b == nil || cmp.Or(cmp.Compare(w.priority, b.priority), cmp.Compare(b.order, w.order)) > 0 {
			best = id
		}
	}
	return best
}

// start runs the next session in a slot that was taken for it.
func (d *drives) start(ctx context.Context) bool {
	d.mu.Lock()
	id := d.choose()
	if id == "" {
		d.mu.Unlock()
		return false
	}
	delete(d.ready, id)
	d.running[id] = false
	d.mu.Unlock()
	d.wg.Go(func() {
		err := d.run(ctx, id)
		d.ended(ctx, id, err)
		<-d.pool.all
		d.kick()
	})
	return true
}

// ended looks at what a session wants next.
func (d *drives) ended(ctx context.Context, id belay.SessionID, err error) {
	rows, lerr := d.st.Lanes(context.WithoutCancel(ctx), id)
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.running[id]
	delete(d.running, id)
	if ctx.Err() != nil {
		return
	}
	if _, owned := errors.AsType[*store.OwnedError](err); owned { // its owner drives it
		d.wakes[id] = d.now().Add(scanEvery)
		return
	}
	if err = errors.Join(err, lerr); err != nil {
		d.failed[id]++
		pause := min(time.Second<<min(d.failed[id]-1, 8), 5*time.Minute)
		d.log.Error("session", "session", string(id), "error", err.Error(), "again", pause.String())
		d.wakes[id] = d.now().Add(pause)
		return
	}
	delete(d.failed, id)
	d.look(rows)
	if again {
		d.add(id, 0)
	}
}

// look takes from lanes who wants to run now, and when others wake.
func (d *drives) look(rows []store.LaneRow) {
	now := d.now()
	for _, row := range rows {
		switch {
		case row.Session == belay.SystemSession || d.failed[row.Session] > 0:
		case row.Runnable || row.Inbox > 0 || !row.Wake.IsZero() && !now.Before(row.Wake):
			if _, runs := d.running[row.Session]; !runs { // it sees that by itself
				d.add(row.Session, 0)
			}
		case !row.Wake.IsZero():
			if at, ok := d.wakes[row.Session]; !ok || row.Wake.Before(at) {
				d.wakes[row.Session] = row.Wake
			}
		}
	}
}

// scan looks at the lanes of all sessions.
func (d *drives) scan(ctx context.Context) {
	rows, err := d.st.Lanes(ctx, "")
	if err != nil {
		d.log.Error("lanes", "error", err.Error())
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.look(rows)
}

// wake makes those ready whose time has come.
func (d *drives) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for id, at := range d.wakes {
		if !now.Before(at) {
			d.add(id, 0)
		}
	}
}

// due fires when the next session wakes.
func (d *drives) due() (<-chan time.Time, func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.wakes) == 0 {
		return nil, func() {}
	}
	var next time.Time
	for _, at := range d.wakes {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	t := time.NewTimer(max(next.Sub(d.now()), 0))
	return t.C, func() { t.Stop() }
}

// counts are figures for those who watch the server.
func (d *drives) counts() (ready, running, asleep int, oldest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.ready {
		oldest = max(oldest, d.now().Sub(w.since))
	}
	return len(d.ready), len(d.running), len(d.wakes), oldest
}

// sessions are those that run, in order.
func (d *drives) sessions() []belay.SessionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]belay.SessionID, 0, len(d.running))
	for id := range d.running {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
