package kill

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/store/sqlite"
)

// open is the store, to be read.
func (m *machine) open() *sqlite.DB {
	m.t.Helper()
	if m.db == nil {
		db, err := sqlite.Open(m.t.Context(), m.store, sqlite.Options{ReadOnly: true})
		if err != nil {
			m.t.Fatal(err)
		}
		m.db = db
	}
	return m.db
}

// log is everything that was recorded, in the order of the store.
func (m *machine) log() (out []event.Envelope) {
	m.t.Helper()
	for r, err := range m.open().Scan(context.Background(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, r.Event)
	}
	return out
}

// caughtUp waits until the followers have seen as much as there is, and compares
// what they saw: each fact once, in the order of the log, over every restart.
func (c *crowd) caughtUp(ctx context.Context, what string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	all := c.log()
	for _, f := range c.seen {
		var want []belay.EventID
		for _, e := range all {
			if f.session == "" || e.IDs.Session == f.session {
				want = append(want, e.ID())
			}
		}
		got := f.wait(ctx, len(want))
		c.tally.facts += len(got)
		c.tally.breaks += max(int(f.dials.Load())-1, 0)
		for i := range min(len(want), len(got)) {
			if got[i] != want[i] {
				c.t.Errorf("%s: the follower of %q saw %s as its %d. fact, the log has %s", what, f.session, got[i], i+1, want[i])
				break
			}
		}
		if len(got) < len(want) {
			c.t.Errorf("%s: the follower of %q saw %d facts of %d", what, f.session, len(got), len(want))
		}
	}
}

// wait returns what was seen once it is so much, or ctx ends.
func (f *followed) wait(ctx context.Context, n int) []belay.EventID {
	for {
		f.mu.Lock()
		ids := slices.Clone(f.ids)
		f.mu.Unlock()
		if len(ids) >= n {
			return ids
		}
		select {
		case <-f.grew:
		case <-ctx.Done():
			return ids
		}
	}
}

// tellAgain repeats each command that was acknowledged, under its key: it is
// answered as before, and no session learns of it.
func (c *crowd) tellAgain(ctx context.Context, what string) {
	c.t.Helper()
	for ctx.Err() == nil { // what turns that ended gave back may be on its way yet
		rows, err := c.open().Lanes(ctx, "")
		if err != nil {
			c.t.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		rest(ctx, 10*time.Millisecond)
	}
	before := len(c.facts())
	k, done, err := c.client(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer done()
	for _, a := range slices.Clone(c.acks) {
		again, err := c.tell(ctx, k, a)
		if err != nil || !again.Repeated || again.Command != a.out.Command && a.name != "submit_turn" || again.Turn != a.out.Turn || again.Run != a.out.Run {
			c.t.Errorf("%s: %s %s was answered %+v, and again %+v, %v", what, a.name, a.key, a.out, again, err)
		}
	}
	if after := len(c.facts()); after != before {
		c.t.Errorf("%s: commands that were repeated caused %d facts", what, after-before)
	}
}

// facts are those of the sessions.
func (c *crowd) facts() []event.Envelope {
	c.t.Helper()
	return slices.DeleteFunc(c.log(), func(e event.Envelope) bool { return e.IDs.Session == belay.SystemSession })
}

// check holds the laws against the store at rest.
func (c *crowd) check(what string) {
	c.t.Helper()
	if e := c.run(nil, "verify"); e.exit != 0 {
		c.t.Errorf("%s: verify exits %d:\n%s", what, e.exit, e.out)
	}
	c.open()
	for _, s := range c.streams() {
		c.checkStream(what, s)
	}
	c.checkViews(what)
	if rows, err := c.open().Lanes(c.t.Context(), ""); err != nil || len(rows) != 0 {
		c.t.Errorf("%s: lanes at rest: %+v %v", what, rows, err)
	}
	c.tally.ops.add(coretest.Books(c.t, what, c.log()).Ops)
	all := c.facts()
	c.checkTurns(what, all)
	c.checkAcknowledged(what, all)
	c.checkEffects(what, all)
}

// checkTurns: each turn was submitted once and ended once, those of a thread in
// the order in which they came.
func (c *crowd) checkTurns(what string, all []event.Envelope) {
	c.t.Helper()
	submitted, ended := map[belay.TurnID]int{}, map[belay.TurnID]int{}
	var order []belay.TurnID
	for _, e := range all {
		switch d := e.Data.(type) {
		case event.TurnSubmitted:
			submitted[e.IDs.Turn]++
		case event.TurnStarted:
			order = append(order, e.IDs.Turn)
		case event.TurnCompleted:
			ended[e.IDs.Turn]++
		case event.TurnFailed:
			ended[e.IDs.Turn]++
			switch {
			case d.Outcome == belay.Cancelled:
				c.tally.interrupted++
			case d.Outcome == belay.OverBudget && c.limited:
				c.tally.unpaid++
			default:
				c.t.Errorf("%s: turn %s ended %s: %s", what, e.IDs.Turn, d.Outcome, d.Reason)
			}
		}
	}
	if len(submitted) != 2*sessionsOfCrowd {
		c.t.Errorf("%s: %d turns were submitted", what, len(submitted))
	}
	for turn, n := range submitted {
		if n != 1 || ended[turn] != 1 {
			c.t.Errorf("%s: turn %s was submitted %d times and ended %d times", what, turn, n, ended[turn])
		}
	}
	for n := range sessionsOfCrowd {
		first, second := slices.Index(order, firstTurn(n)), slices.Index(order, secondTurn(n))
		if first > second && !severalThreads(n) {
			c.t.Errorf("%s: session %d began its second turn first", what, n)
		}
	}
}

// checkAcknowledged: what was answered is in the log, once.
func (c *crowd) checkAcknowledged(what string, all []event.Envelope) {
	c.t.Helper()
	resolved := map[belay.ActionID][]event.Envelope{}
	caused := map[belay.CommandID]int{}
	streams := map[belay.CommandID]belay.StreamID{}
	for _, e := range all {
		if id := e.IDs.Request; id != "" {
			caused[id]++
			streams[id] = e.Stream
		}
		if _, ok := e.Data.(event.ActionResolved); ok {
			resolved[e.IDs.Action] = append(resolved[e.IDs.Action], e)
		}
	}
	for id, es := range resolved {
		if len(es) != 1 {
			c.t.Errorf("%s: action %s was resolved %d times", what, id, len(es))
		}
	}
	for _, a := range c.acks {
		c.tally.acknowledged++
		if a.out.Repeated {
			continue // what it was told first is another line, or nobody heard it
		}
		if caused[a.out.Command] == 0 {
			c.t.Errorf("%s: %s %s was acknowledged as %s, and nothing came of it", what, a.name, a.key, a.out.Command)
		}
		if a.action == "" {
			continue
		}
		es := resolved[a.action]
		if len(es) != 1 || es[0].IDs.Request != a.out.Command || es[0].Data.(event.ActionResolved).Decision != a.decision {
			c.t.Errorf("%s: %s was answered %s by %s, the log has %+v", what, a.action, a.decision, a.out.Command, es)
		}
	}
}

// checkEffects: a call that may happen at most once began once, and what it does
// was done no more often than it began, and as often as it went well.
func (c *crowd) checkEffects(what string, all []event.Envelope) {
	c.t.Helper()
	begun := map[belay.CallID]int{}
	could, did := map[belay.SessionID]int{}, map[belay.SessionID]int{}
	for _, e := range all {
		switch d := e.Data.(type) {
		case event.ToolStarted:
			if d.Effect == "at_most_once" {
				begun[e.IDs.Call]++
				could[e.IDs.Session]++
			}
		case event.ToolResult:
			if begun[e.IDs.Call] > 0 {
				did[e.IDs.Session]++
			}
		}
	}
	for id, n := range begun {
		if n != 1 {
			c.t.Errorf("%s: call %s, which may happen at most once, began %d times", what, id, n)
		}
	}
	for n := range sessionsOfCrowd {
		raw, err := os.ReadFile(filepath.Join(c.workspace(n), "effects.log"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			c.t.Fatal(err)
		}
		lines := bytes.Count(raw, []byte("\n"))
		if id := sessionID(n); lines > could[id] || lines < did[id] {
			c.t.Errorf("%s: session %s: %d calls began, %d went well, the effect is there %d times", what, id, could[id], did[id], lines)
		}
		c.tally.lost += could[sessionID(n)] - did[sessionID(n)]
	}
}
