package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Dispatcher runs the sessions of one store that have something to do, so many at
// once, and takes over those whose owner is gone. A session at rest costs its
// row in the store and nothing here but the time at which it wakes.
//
// One goroutine chooses; each session that runs has one more.
type Dispatcher struct {
	st   store.Run
	pool *pool
	run  func(ctx context.Context, id belay.SessionID) error
	now  func() time.Time
	log  *slog.Logger

	// Only, if it is set before Loop, says which sessions the lanes of all sessions
	// are read for; others run when they are enqueued.
	Only func(belay.SessionID) bool

	kicked chan struct{} // capacity 1
	over   chan struct{} // closed when the loop has ended: nothing begins any more
	wg     sync.WaitGroup

	mu      sync.Mutex
	ready   *line                    // sessions that want to run
	running map[belay.SessionID]bool // true: look again when it has ended
	wakes   *line                    // sessions that want to run later, by time
	failed  map[belay.SessionID]int  // times in a row
}

// ahead is what one step of priority is worth: a session with it stands where it
// would if it had come so much earlier. So what is urgent passes what has just
// come, and nothing waits for ever behind what is more urgent.
const ahead = 30 * time.Second

// pool bounds how many sessions run at once: in the process and for one tenant.
type pool struct {
	all  chan struct{} // a slot each, shared by the tenants
	mine int
}

// scanEvery is how often the lanes of all sessions are read: that finds what
// other processes did to sessions that aren't driven.
const scanEvery = 2 * time.Second

// NewDispatcher returns a dispatcher of an engine's store. Each session that runs
// has one of the slots, which are shared with other tenants; at most so many are
// its own. run drives a session until it rests.
func (e *Engine) NewDispatcher(slots chan struct{}, most int, run func(ctx context.Context, id belay.SessionID) error, log *slog.Logger) *Dispatcher {
	return &Dispatcher{st: e.c.Store, run: run, pool: &pool{all: slots, mine: most}, now: e.c.Now, log: log, kicked: make(chan struct{}, 1), over: make(chan struct{}),
		ready: newLine(), running: map[belay.SessionID]bool{}, wakes: newLine(), failed: map[belay.SessionID]int{}}
}

// Enqueue makes a session run soon. The priority counts among those that wait now.
func (d *Dispatcher) Enqueue(id belay.SessionID, priority int) {
	d.mu.Lock()
	d.add(id, priority)
	d.mu.Unlock()
	signal(d.kicked)
}

// add is want under the lock.
func (d *Dispatcher) add(id belay.SessionID, priority int) {
	d.wakes.remove(id)
	if id == belay.SystemSession {
		return
	}
	if _, runs := d.running[id]; runs {
		d.running[id] = true
		return
	}
	now := d.now()
	d.ready.put(id, now.Add(-time.Duration(priority)*ahead), now)
}

// Loop chooses the sessions to run until ctx ends. hold, when it is closed,
// keeps new ones from starting. The sessions run under work, which ends later.
func (d *Dispatcher) Loop(ctx, work context.Context, hold <-chan struct{}) {
	defer close(d.over)
	scan := time.NewTicker(scanEvery)
	defer scan.Stop()
	again := d.scan(ctx)
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
			if d.now().Before(again) {
				break
			}
			select {
			case <-changed:
				changed = d.st.Changed(ctx)
				again = d.scan(ctx)
			default:
			}
		}
		stop()
	}
}

// Wait returns when the loop and everything that it began have ended.
func (d *Dispatcher) Wait() {
	<-d.over
	d.wg.Wait()
}

// next is the session to run: the first in line, priority counted. There is none
// while the tenant has all its places in use.
func (d *Dispatcher) next() belay.SessionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.choose()
}

func (d *Dispatcher) choose() belay.SessionID {
	if first := d.ready.first(); first != nil && len(d.running) < d.pool.mine {
		return first.id
	}
	return ""
}

// start runs the next session in a slot that was taken for it.
func (d *Dispatcher) start(ctx context.Context) bool {
	d.mu.Lock()
	id := d.choose()
	if id == "" {
		d.mu.Unlock()
		return false
	}
	d.ready.remove(id)
	d.running[id] = false
	d.mu.Unlock()
	d.wg.Go(func() {
		err := d.run(ctx, id)
		d.ended(ctx, id, err)
		<-d.pool.all
		signal(d.kicked)
	})
	return true
}

// ended looks at what a session wants next.
func (d *Dispatcher) ended(ctx context.Context, id belay.SessionID, err error) {
	rows, lerr := d.st.Lanes(context.WithoutCancel(ctx), id)
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.running[id]
	delete(d.running, id)
	if ctx.Err() != nil {
		return
	}
	if _, owned := errors.AsType[*store.OwnedError](err); owned { // its owner drives it
		d.sleep(id, d.now().Add(scanEvery))
		return
	}
	if err = errors.Join(err, lerr); err != nil {
		d.failed[id]++
		pause := min(time.Second<<min(d.failed[id]-1, 8), 5*time.Minute)
		d.log.Error("session", "session", string(id), "error", err.Error(), "again", pause.String())
		d.sleep(id, d.now().Add(pause))
		return
	}
	delete(d.failed, id)
	d.look(rows)
	if again {
		d.add(id, 0)
	}
}

// look reads from lanes the sessions that want to run now, and when others wake.
func (d *Dispatcher) look(rows []store.LaneRow) {
	now := d.now()
	for _, row := range rows {
		switch {
		case row.Session == belay.SystemSession || d.failed[row.Session] > 0:
		case row.Runnable || row.Inbox > 0 || !row.Wake.IsZero() && !now.Before(row.Wake):
			if _, runs := d.running[row.Session]; !runs { // it sees that by itself
				d.add(row.Session, 0)
			}
		case !row.Wake.IsZero():
			d.wakes.put(row.Session, row.Wake, now) // the earliest of its streams
		}
	}
}

// ApplyLanes is look for lanes that were just read.
func (d *Dispatcher) ApplyLanes(rows []store.LaneRow) {
	d.mu.Lock()
	d.look(rows)
	d.mu.Unlock()
	signal(d.kicked)
}

// sleep lets a session wake at a time and not before.
func (d *Dispatcher) sleep(id belay.SessionID, at time.Time) {
	d.wakes.remove(id)
	d.wakes.put(id, at, d.now())
}

// scan looks at the lanes of all sessions, and says when it may do so again: it
// takes at most a twentieth of the time, however many want something.
func (d *Dispatcher) scan(ctx context.Context) time.Time {
	begun := d.now()
	rows, err := d.st.Lanes(ctx, "")
	if err != nil {
		d.log.Error("lanes", "error", err.Error())
		return begun
	}
	if d.Only != nil {
		rows = slices.DeleteFunc(rows, func(row store.LaneRow) bool { return !d.Only(row.Session) })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.look(rows)
	now := d.now()
	return now.Add(20 * now.Sub(begun))
}

// wake makes those ready whose time has come.
func (d *Dispatcher) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for p := d.wakes.first(); p != nil && !now.Before(p.at); p = d.wakes.first() {
		d.add(p.id, 0)
	}
}

// due fires when the next session wakes.
func (d *Dispatcher) due() (<-chan time.Time, func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var at time.Time
	if first := d.wakes.first(); first != nil {
		at = first.at
	}
	return timerAt(at, d.now())
}

// Counts are figures for those who watch the server.
func (d *Dispatcher) Counts() (ready, running, asleep int, oldest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, p := range d.ready.places {
		oldest = max(oldest, now.Sub(p.since))
	}
	return len(d.ready.places), len(d.running), len(d.wakes.places), oldest
}

// Sessions are those that run, in order.
func (d *Dispatcher) Sessions() []belay.SessionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]belay.SessionID, 0, len(d.running))
	for id := range d.running {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
