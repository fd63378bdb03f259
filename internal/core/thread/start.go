package thread

import (
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// startTurn begins the next queued turn when none runs: its rules, limits and
// inventory are fixed here and recorded.
func startTurn(d *decision) bool {
	switch {
	case d.Turn != nil:
		return false
	case len(d.Queue) == 0 || d.Pause != nil || d.waitsForQuiet():
		return true
	case d.rules == nil && !d.lost:
		return true // Missing names them
	case d.rules == nil: // the turn begins only to be lost
		d.rules = &Rules{}
	}
	q := d.Queue[0]
	ids := d.idsOf(q)
	d.tell()
	limits := d.rules.Settings.Limits
	if q.Limits != nil {
		limits = limits.Within(*q.Limits)
	}
	if q.Rest {
		limits = limits.Within(belay.Limits{MicroUSD: d.Borrowed.Limit.MicroUSD, Tokens: d.Borrowed.Limit.Tokens}).Less(d.Charged.Sub(d.Borrowed.After))
	}
	d.record(core.Fact{IDs: ids, Data: event.TurnStarted{
		Kind: q.Kind, Rules: q.Rules, Completion: d.rules.completion(), Limits: limits, Agent: d.rules.agentUsed(),
	}})
	ids.Task, ids.Run = "", ""
	names := make([]string, len(d.rules.Tools))
	for i, t := range d.rules.Tools {
		names[i] = t.Name
	}
	specs, _ := json.Marshal(d.rules.Tools) // plain data: can't fail
	catalog := len(d.ready.Decided)
	d.record(core.Fact{IDs: ids, Data: event.ToolCatalogResolved{Tools: names, Digest: belay.DigestOf(specs)}})
	d.record(d.rules.routing(ids, q.Task, needsOf(d.Queue[:d.collected()]))...)
	if in := d.instructs(); len(d.rules.Context)+len(d.rules.LeftOut) > 0 || in != nil {
		ids.Task, ids.Run = q.Task, q.Run
		d.record(core.Fact{IDs: ids, Data: event.ContextResolved{Items: d.rules.Context, Omitted: d.rules.LeftOut, Instructions: in}})
	}
	if n := d.collected(); n > 1 {
		d.join(d.Queue[1:n], q.Turn, len(d.Queue)-1)
	}
	of := &d.ready.Decided[catalog].IDs
	of.Step = belay.StepID(d.derive(belay.PrefixStep, len(d.ready.Decided))) // the step it precedes
	of.Call = belay.CallID(d.derive(belay.PrefixCall, catalog))
	return true
}
