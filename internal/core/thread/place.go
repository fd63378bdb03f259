package thread

import (
	"encoding/json"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// place tells the session when a sub-agent begins to wait for agents, for a person or for
// the end of a pause, and when it goes on. While it waits it has no place among those
// that work. It doesn't wait for a place to go on: then agents that are needed by one
// another could wait for ever.
func place(d *decision) bool {
	if d.Depth == 0 || d.Turn != nil && d.rules == nil || d.rests() == d.Rests {
		return false
	}
	if d.Rests {
		d.record(d.threadFact(event.ThreadUpdated{Place: event.SubagentWorking}))
		d.send(core.Send{To: d.Session.Stream(), Command: belay.AskGrants{Thread: d.Thread, Place: true}})
		return true
	}
	d.record(d.threadFact(event.ThreadUpdated{Place: event.SubagentWaiting}))
	d.send(core.Send{To: d.Session.Stream(), Command: belay.ReturnGrant{Thread: d.Thread, Place: true}})
	return true
}

// rests reports whether nothing of the turn is in flight and nothing of it can begin until
// an agent ends, a person answers, or a pause is over. Of one that waits for budget the
// session knows.
func (d *decision) rests() bool {
	t := d.Turn
	switch {
	case t == nil || d.driven():
		return false
	case d.Paused() != nil, t.Short, t.Ask != nil && t.Ask.Open:
		return true
	case t.Step == nil || t.Step.Phase != stepAnswered || t.Step.settled():
		return false
	}
	return !slices.ContainsFunc(t.Step.Calls, func(c *Call) bool { return c.Phase != CallOver && !d.needsOthers(c) })
}

// needsOthers reports whether a call goes on when a person answers, or a child ends.
func (d *decision) needsOthers(c *Call) bool {
	if c.Ask != nil && c.Ask.Open {
		return true
	}
	spec, _ := d.rules.Tool(c.Name)
	switch {
	case c.Phase != CallWaits:
		return false
	case spec.Handled == handledSpawn:
		if k := d.childOf(c.ID); k != nil {
			return k.Rules == nil && !k.Background && !k.Ended
		}
		return d.waitsToLend()
	case spec.Handled == handledWait:
		var in agentsArgs
		_ = json.Unmarshal(d.rules.args(c), &in) // it was held against the tool's schema
		_, open, _ := d.awaited(in)
		return open
	}
	return false
}
