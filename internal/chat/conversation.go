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

	workspace string
	title     string
	settings  belay.Settings
	turn      belay.TurnID  // the one that runs; empty: none does
	outcome   belay.Outcome // of the last one that ended
	began     time.Time
	turns     []pastTurn // that began, without those that were taken back
	texts     []pastTurn // of turns that haven't begun
	cost      event.CostSum
	spent     event.TurnStats // of turns that ended
	ended     int             // how many
	outputs   []block.Call    // calls whose programs printed something, by their numbers
	answered  place           // of the last turn's answers; zero: there is none yet
	used      int64           // tokens of the conversation, about; 0: not known
	room      int64           // tokens that the model reads of it; 0: not known
	stale     time.Time       // since when the server can't be reached; zero: it can be
	files     []block.File    // as calls changed them, in order
}

// place is where the facts of a turn are: behind a cursor, up to a fact.
type place struct {
	turn belay.TurnID
	from string
	upTo belay.EventID
}

// pastTurn is a turn that a person can go back to.
type pastTurn struct {
	id   belay.TurnID
	text string
	mode belay.QueueMode
	own  bool // a call that a person wrote, without a model
}

// apply takes a fact, behind which a cursor is.
func (c *conversation) apply(cursor string, ev event.Envelope) {
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
		if p.Depth == 0 { // agents have threads of their own
			c.thread = ev.IDs.Thread
		}
	}
	if ev.IDs.Thread != c.thread {
		return
	}
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		c.texts = append(c.texts, pastTurn{ev.IDs.Turn, block.Written(p, p.Text.Text), p.Queue, p.Kind == belay.TurnSystem})
	case event.TurnStarted:
		c.turn, c.began, c.answered = ev.IDs.Turn, ev.Time, place{ev.IDs.Turn, cursor, ""}
		if i := slices.IndexFunc(c.texts, func(t pastTurn) bool { return t.id == ev.IDs.Turn }); i >= 0 {
			c.turns, c.texts = append(c.turns, c.texts[i]), slices.Delete(c.texts, i, i+1)
		}
	case event.TurnCompleted:
		c.endOf(ev.IDs.Turn, belay.Completed, p.Stats)
	case event.TurnFailed:
		c.endOf(ev.IDs.Turn, p.Outcome, p.Stats)
	case event.ModelRequested:
		c.used, c.room = p.Tokens, p.Room
	case event.ModelDelta:
		c.answered.upTo = ev.ID()
	case event.ModelCompleted:
		c.answered.upTo = ev.ID()
		if c.used += p.Text.Tokens; p.Usage.Reported { // nobody is sent the reasoning
			c.used = p.Usage.Input + p.Usage.Output - p.Usage.Reasoning
		}
	case event.ContextCompactionCompleted:
		c.used = p.TokensAfter
	case event.HistoryRollbackCompleted:
		if p.Scope == event.ScopeThread {
			c.used = 0
			c.turns = slices.DeleteFunc(c.turns, func(t pastTurn) bool { return slices.Contains(p.Turns, t.id) })
		}
	}
}

// endOf takes the end of a turn.
func (c *conversation) endOf(turn belay.TurnID, outcome belay.Outcome, used event.TurnStats) {
	if c.turn == turn {
		c.turn, c.outcome = "", outcome
	}
	s := &c.spent
	s.Steps, s.Calls, s.Denied, s.ActiveMS, s.Usage = s.Steps+used.Steps, s.Calls+used.Calls, s.Denied+used.Denied, s.ActiveMS+used.ActiveMS, s.Usage.Add(used.Usage)
	c.ended++
}

// finished returns the blocks that came to their end since the last call.
func (c *conversation) finished() []block.Block {
	all := slices.DeleteFunc(c.fold.Take(), func(b block.Block) bool {
		return b.Kind == block.KindEnd && !slices.ContainsFunc(c.turns, func(t pastTurn) bool { return t.id == b.Turn })
	}) // a turn that never began has no end to tell of
	for _, b := range all {
		if b.Kind == block.KindCall {
			c.files = append(c.files, b.Call.Files...)
			if b.Call.Output > 0 {
				c.outputs = append(c.outputs, *b.Call)
			}
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

// has reports whether a turn was submitted.
func (c *conversation) has(id belay.TurnID) bool {
	is := func(t pastTurn) bool { return t.id == id }
	return slices.ContainsFunc(c.turns, is) || slices.ContainsFunc(c.texts, is)
}

// isOwn reports whether a turn is a call that a person wrote.
func (c *conversation) isOwn(id belay.TurnID) bool {
	is := func(t pastTurn) bool { return t.id == id && t.own }
	return slices.ContainsFunc(c.turns, is) || slices.ContainsFunc(c.texts, is)
}

// steers reports whether a message that waits is given to the model in the running turn.
func (c *conversation) steers(id belay.TurnID) bool {
	return slices.ContainsFunc(c.texts, func(t pastTurn) bool { return t.id == id && t.mode == belay.QueueSteer })
}
