package chat

import (
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// Options are what a conversation begins with.
type Options struct {
	Runtime   Runtime
	Terminal  *screen.Terminal
	Look      block.Options            // how blocks are rendered; its Width and Now are set here
	Workspace string                   // of a new session
	Session   belay.SessionID          // that is continued; empty: a new one
	Begin     belay.Settings           // of a new session, as they are shown
	Settings  map[string]any           // what is chosen for the session, as submit_turn takes it
	First     string                   // a message that is sent at once
	Notes     []string                 // lines that are printed first
	Environ   []string                 // of programs such as the editor, NAME=value
	Explain   func(error) *belay.Error // an error as it may be shown
	Now       func() time.Time
}

// Chat is a conversation on a terminal. Its goroutine is the only one that touches
// what it has; work that takes time is done beside it by jobs.
type Chat struct {
	Options
	jobs    *jobs
	items   chan arrival
	conv    conversation
	comp    screen.Composer
	entry   *entry    // what the composed text is for; nil: it is a message
	ask     *question // on the screen; nil: none is
	keys    twice
	note    string // drawn until the next key
	leaving bool
}

// arrival is what a followed session brings.
type arrival struct {
	Item
	err error
}

// entry is a use of the composer other than for a message.
type entry struct {
	label string
	kept  string                 // the message that was composed before
	done  func(text string) bool // takes what was entered; false: it is to be changed
}

// Run holds a conversation until the person leaves, and returns the session; empty, if
// none was begun. What runs then is parked when the caller closes the runtime.
func Run(ctx context.Context, o Options) (belay.SessionID, error) {
	c := &Chat{Options: o, jobs: newJobs(ctx), items: make(chan arrival, 256)}
	defer c.jobs.close()
	c.print(o.Notes...)
	c.conv.settings, c.conv.workspace = o.Begin, o.Workspace
	if o.Session != "" {
		c.follow(o.Session)
	}
	if o.First != "" {
		c.send(o.First, "")
	}
	return c.conv.session, c.loop()
}

// spin is the time between two frames of what moves while a turn runs.
const spin = 250 * time.Millisecond

// loop takes what happens, until the person leaves.
func (c *Chat) loop() error {
	tick := time.NewTicker(spin)
	defer tick.Stop()
	for !c.leaving {
		c.show()
		var moves <-chan time.Time
		if c.conv.turn != "" || c.ask != nil {
			moves = tick.C
		}
		select {
		case e, ok := <-c.Terminal.Events():
			if !ok {
				return nil
			}
			c.event(e)
		case a := <-c.items:
			if err := c.take(a); err != nil {
				return err
			}
		case then := <-c.jobs.done:
			then()
		case <-moves:
		case <-c.jobs.ctx.Done():
			return context.Cause(c.jobs.ctx)
		}
	}
	return nil
}

// take takes what a session brings, and what else has come by now.
func (c *Chat) take(a arrival) error {
	for {
		if err := c.arrived(a); err != nil {
			return err
		}
		select {
		case a = <-c.items:
		default:
			return nil
		}
	}
}

// follow makes a session the one on the screen.
func (c *Chat) follow(id belay.SessionID) {
	c.conv.session = id
	c.jobs.start(func(ctx context.Context) func() {
		for item, err := range c.Runtime.Follow(ctx, id, "") {
			select {
			case c.items <- arrival{item, err}:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
}

// arrived takes one thing that happened in the session.
func (c *Chat) arrived(a arrival) error {
	switch {
	case a.err != nil:
		if errors.Is(a.err, context.Canceled) {
			return nil
		}
		return a.err
	case a.Fact != nil:
		c.conv.stale = ""
		c.conv.apply(*a.Fact)
		switch a.Fact.Data.(type) {
		case event.ActionRequired, event.ActionResolved:
			c.find()
		}
	case a.Flow != nil:
		c.conv.fold.Flow(*a.Flow)
	case a.Broken != nil:
		c.fail(a.Broken)
	case a.Gone:
		c.print("the session was deleted")
		c.leaving = true
	}
	return nil
}
