// Package mcp is the client of MCP servers: it starts them within a boundary, for one
// session each, offers what they have as tools, and ends them. It promises: a server's
// program is recorded and confined like one that a call starts, because a call starts
// it; it ends with its session, when nothing uses it, and with the runtime, however that
// dies; what a server says of itself decides nothing unless a person said so; a tool
// whose definition isn't the accepted one isn't run; and whatever a server answers, the
// call that asked gets an error with a code and the turn goes on.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
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
	// Seen is told what tools a server has, with the first call and whenever it says
	// that they changed; nil: nobody is. It returns soon.
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
	busy   chan struct{} // holds one token while it is started
	conn   *connection   // set and read with the token
	starts []time.Time
	live   *connection // set and read with the pool's lock
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

// connect is the session's server of a kind, started if it doesn't run. started
// reports whether this call did so, which then leaves it to its thread.
func (p *Pool) connect(ctx context.Context, s *manifest.Server, c tool.Call) (n *connection, started bool, err error) {
	at := p.slot(keyOf(s, c))
	select {
	case at.busy <- struct{}{}:
		defer func() { <-at.busy }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if at.conn != nil && !at.conn.over() {
		return at.conn, false, nil
	}
	at.conn = nil
	now := time.Now()
	at.starts = slices.DeleteFunc(at.starts, func(t time.Time) bool { return now.Sub(t) > restartsIn })
	if len(at.starts) > maxRestarts {
		return nil, false, tool.Failf(tool.Internal, CodeUnavailable, "MCP server %s was started %d times within %s and ended each time", s.Name, len(at.starts), restartsIn).
			WithHint("do without it; belay mcp test %s shows what it prints", s.Name)
	}
	if err := p.room(); err != nil {
		return nil, false, err
	}
	at.starts = append(at.starts, now)
	n, err = connect(ctx, s, p.Environ, c)
	if err != nil {
		return nil, false, err
	}
	at.conn = n
	p.mu.Lock()
	at.live = n
	p.mu.Unlock()
	if p.Seen != nil {
		p.Seen(s, n.definitions())
	}
	return n, true, nil
}

// slot is the place of a server. Places of servers that ended long ago are forgotten.
func (p *Pool) slot(k key) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots == nil {
		p.slots = map[key]*slot{}
	}
	for other, s := range p.slots {
		ended := s.live != nil && s.live.over() && time.Since(s.live.idleSince()) > restartsIn
		if other != k && ended && len(s.busy) == 0 {
			delete(p.slots, other)
		}
	}
	at := p.slots[k]
	if at == nil {
		at = &slot{busy: make(chan struct{}, 1)}
		p.slots[k] = at
	}
	return at
}

// room makes room for one more server: the one that was idle longest ends.
func (p *Pool) room() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var live []*connection
	for _, s := range p.slots {
		if s.live != nil && !s.live.over() {
			live = append(live, s.live)
		}
	}
	if len(live) < maxServers {
		return nil
	}
	live = slices.DeleteFunc(live, func(n *connection) bool { return n.waited() })
	if len(live) == 0 {
		return tool.Failf(tool.Conflict, CodeLimit, "%d MCP servers run, and all of them work", maxServers).WithHint("try again when other calls have ended")
	}
	oldest := slices.MinFunc(live, func(a, b *connection) int { return cmp.Compare(a.idleSince().UnixNano(), b.idleSince().UnixNano()) })
	oldest.end("limit")
	return nil
}

// waited reports whether a call waits for it.
func (n *connection) waited() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls > 0 || len(n.exchanges) > 0
}
