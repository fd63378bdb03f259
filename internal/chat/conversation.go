package chat

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
)

// conversation is the session on the screen, as its facts say. The zero value is one
// that begins with the first message.
type conversation struct {
	fold    block.Fold
	session belay.SessionID
	thread  belay.ThreadID // the session's newest
	cursor  string

	workspace string
	title     string
	settings  belay.Settings
	turn      belay.TurnID // the one that runs; empty: none does
	began     time.Time
	turns     []pastTurn
	cost      event.CostSum
	outputs   []block.Call // calls whose programs printed something, by their numbers
	answer    string       // of the last turn, as Markdown
	stale     string       // why nothing new comes; empty: it does
}

// pastTurn is a turn that a person can go back to.
type pastTurn struct {
	id   belay.TurnID
	text string
}

// apply takes a fact.
func (c *conversation) apply(ev event.Envelope) {
	c.fold.Apply(ev)
	c.cost = c.cost.Add(ev.Cost())
	switch p := ev.Data.(type) {
	case event.SessionCreated:
		c.title, c.workspace, c.settings = p.Title, p.Workspace, p.Settings
	case event.SessionUpdated:
		if p.Title != "" {
			c.title = p.Title
		}
		if p.Settings != nil {
			c.settings = *p.Settings
		}
	case event.ThreadStarted:
		c.thread = ev.IDs.Thread
	}
	if ev.IDs.Thread != c.thread {
		return
	}
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		c.turns = append(c.turns, pastTurn{ev.IDs.Turn, p.Text.Text})
	case event.TurnStarted:
		c.turn, c.began, c.answer = ev.IDs.Turn, ev.Time, ""
	case event.TurnCompleted, event.TurnFailed:
		if c.turn == ev.IDs.Turn {
			c.turn = ""
		}
	case event.HistoryRollbackCompleted:
		if p.Scope == event.ScopeThread {
			c.back(p.Turns)
		}
	}
}

// back leaves out turns that were taken back.
func (c *conversation) back(gone []belay.TurnID) {
	kept := c.turns[:0]
	for _, t := range c.turns {
		if !slices.Contains(gone, t.id) {
			kept = append(kept, t)
		}
	}
	c.turns = kept
}

// finished returns the blocks that came to their end since the last call.
func (c *conversation) finished() []block.Block {
	all := c.fold.Take()
	for _, b := range all {
		switch {
		case b.Kind == block.KindCall && b.Call.Output > 0:
			c.outputs = append(c.outputs, *b.Call)
		case b.Kind == block.KindAnswer:
			c.answer += b.Text
		}
	}
	return all
}

// waiting returns the messages of a person that wait for the running turn to end.
func (c *conversation) waiting() (all []block.Block) {
	for _, b := range c.fold.Live() {
		if b.Kind == block.KindInput && b.Turn != c.turn {
			all = append(all, b)
		}
	}
	return all
}

// asks returns the questions that wait, the oldest first.
func (c *conversation) asks() (all []block.Question) {
	for _, b := range c.fold.Live() {
		if b.Kind == block.KindQuestion {
			all = append(all, *b.Asked)
		}
	}
	return all
}
