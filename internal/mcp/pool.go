// Package mcp is the client of MCP servers: it starts them within a boundary, for one
// session each, offers what they have as tools, and ends them. It promises: a server's
// program is recorded and confined like one that a call starts, because a call starts
// it; it ends with its session, when nothing uses it, and with the runtime, however that
// dies; what a server says of itself decides nothing unless a person said so; a tool
// whose definition isn't the accepted one isn't run; and whatever a server answers, its
// call gets an error with a code and the turn continues.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/tool"
)

// Bounds of a pool.
const (
	maxServers  = 64               // that run in a process
	maxRestarts = 3                // of a server of a session
	restartsIn  = 10 * time.Minute // within this time
)

// Pool are the servers that run in this process.
type Pool struct {
	Environ []string // of the process
	Grants  *Grants  // of logins; nil: nothing is known of any
	// Seen gets the tools of a server, with the first call and whenever the server
	// says that they changed; may be nil. It returns soon.
	Seen func(s *manifest.Server, defs []Definition)

	mu    sync.Mutex
	slots map[key]*slot
}

// key is what a server is shared by.
type key struct {
	session belay.SessionID
	server  belay.Digest // of all that is said of it
	bounds  belay.Digest
}

// slot is a server of a session: one that runs, or the place of it.
type slot struct {
	busy chan struct{} // holds one token while it is started

	// With the pool's lock:
	users  int         // calls that look here for their server, or start it
	live   *connection // nil: none was started
	starts bool        // one is being started
	fell   []time.Time // when one couldn't be started, or ended by itself
}

func keyOf(s *manifest.Server, c tool.Call) (k key) {
	text, err := json.Marshal(s)
	if err != nil {
		text = []byte(s.Where) // a struct of strings can be encoded
	}
	k = key{session: c.Session, server: belay.DigestOf(text)}
	if c.Box != nil {
		k.bounds = c.Box.Is
	}
	return k
}

// connect is the session's server of a kind, claimed for a call: it is started if it
// doesn't run. started reports whether this call did so, which then leaves it to its
// thread.
func (p *Pool) connect(ctx context.Context, s *manifest.Server, c tool.Call) (n *connection, started bool, err error) {
	at := p.slot(keyOf(s, c))
	defer p.leave(at)
	select {
	case at.busy <- struct{}{}:
		defer func() { <-at.busy }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if n := p.running(at); n != nil && n.claim() {
		return n, false, nil
	}
	if fell := p.falls(at); fell > maxRestarts {
		return nil, false, tool.Failf(tool.Internal, CodeUnavailable, "MCP server %s was started %d times within %s and ended each time", s.Name, fell, restartsIn).
			WithHint("do without it; belay mcp test %s shows what it prints", s.Name)
	}
	if err := p.room(ctx, at); err != nil {
		return nil, false, err
	}
	n, err = connect(ctx, s, surroundings{p.Environ, p.Grants}, c)
	e, ok := errors.AsType[*tool.Error](err)
	wantsLogin := ok && e.Code == CodeNeedsLogin // it isn't broken: the next call may find a login
	p.mu.Lock()
	at.starts = false
	if err == nil {
		at.live = n
	} else if ctx.Err() == nil && !wantsLogin {
		at.fell = append(at.fell, time.Now())
	}
	p.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	if p.Seen != nil {
		n.mu.Lock()
		n.seen = func() { p.Seen(s, n.definitions()) }
		n.mu.Unlock()
		n.seen()
	}
	return n, true, nil
}

// slot is the place of a server, until the caller leaves it. Places where nobody is, and of
// which nothing has to be known, are forgotten.
func (p *Pool) slot(k key) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots == nil {
		p.slots = map[key]*slot{}
	}
	for other, s := range p.slots {
		if other != k && s.users == 0 && !s.counts() && s.falls() == 0 {
			delete(p.slots, other)
		}
	}
	at := p.slots[k]
	if at == nil {
		at = &slot{busy: make(chan struct{}, 1)}
		p.slots[k] = at
	}
	at.users++
	return at
}

func (p *Pool) leave(at *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.users--
}

// running is the slot's server; nil: it was never started.
func (p *Pool) running(at *slot) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return at.live
}

// counts reports whether there is a server, or is about to be.
func (s *slot) counts() bool { return s.starts || s.live != nil && !s.live.isGone() }

// falls is how often it ended by itself lately.
func (p *Pool) falls(at *slot) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return at.falls()
}

// falls counts what the server that was started last did, too. The caller has the pool's
// lock.
func (s *slot) falls() int {
	if s.live != nil && s.live.fellByItself() {
		s.fell, s.live = append(s.fell, s.live.idleSince()), nil
	}
	s.fell = slices.DeleteFunc(s.fell, func(t time.Time) bool { return time.Since(t) > restartsIn })
	return len(s.fell)
}

// room makes room for one more server: the one that was idle longest ends.
func (p *Pool) room(ctx context.Context, at *slot) error {
	for {
		ending, err := p.take(at)
		if ending == nil || err != nil {
			return err
		}
		select {
		case <-ending.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take gives the slot a place among the servers that run. ending is a server whose place
// there will be, when it is gone.
func (p *Pool) take(at *slot) (ending *connection, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var live []*connection
	n := 0
	for _, s := range p.slots {
		if !s.counts() {
			continue
		}
		if n++; s.live != nil {
			live = append(live, s.live)
		}
	}
	if n < maxServers {
		at.starts = true
		return nil, nil
	}
	slices.SortFunc(live, func(a, b *connection) int { return cmp.Compare(a.idleSince().UnixNano(), b.idleSince().UnixNano()) })
	for _, n := range live {
		if n.over() {
			return n, nil
		}
	}
	for _, n := range live {
		if n.endIdle("limit") {
			return n, nil
		}
	}
	return nil, tool.Failf(tool.Conflict, CodeLimit, "%d MCP servers run, and all of them work", maxServers).WithHint("try again when other calls have ended")
}

// claim notes that a call uses it; false: it has ended, or is about to.
func (n *connection) claim() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over() {
		return false
	}
	n.calls++
	return true
}

// release notes that a call doesn't use it any more.
func (n *connection) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls--
	n.used = time.Now()
}

// endIdle asks whoever keeps it to end it, if no call uses it.
func (n *connection) endIdle(why string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls > 0 || len(n.exchanges) > 0 {
		return false
	}
	n.end(why)
	return true
}

// isGone reports whether nothing of it is left.
func (n *connection) isGone() bool {
	select {
	case <-n.gone:
		return true
	default:
		return false
	}
}

// fellByItself reports whether it ended, and nothing of the runtime had it end.
func (n *connection) fellByItself() bool {
	if !n.over() {
		return false
	}
	select {
	case <-n.ended:
		return n.whyEnded == "closed" || n.whyEnded == "failed"
	default:
		return true
	}
}
