package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// cancel ends a turn that is to be stopped. It wants no effects any more (the
// driver cancels the running ones), closes what waits, and ends the turn once
// nothing is in flight.
func cancel(d *decision) bool {
	t := d.Turn
	switch {
	case t.Stop == nil:
		return false
	case t.Stop.Grace && t.Step != nil && t.Step.Limit == limitClosed && d.Paused() == nil:
		return false // its last step
	case t.Stop.Grace && d.Paused() == nil:
		if d.settleAll("INTERRUPTED", "the turn is to end") && len(d.ready.Decided) == 0 {
			d.ask(KindFinal)
		}
		return true
	}
	if d.settleAll("INTERRUPTED", "the turn was interrupted") {
		d.fail(belay.Cancelled, "INTERRUPTED", stopReason(t.Stop.By, t.Stop.Reason))
	}
	return true
}

// limitClosed is the reason of the last step of a turn that is told to end.
const limitClosed = "closed"

// settleAll closes every call of the step that isn't over: questions are
// cancelled, calls that didn't start are skipped, orphans are settled by their
// effect class. It reports whether nothing is left in flight.
func (d *decision) settleAll(code, why string) bool {
	t := d.Turn
	if t.Ask != nil && t.Ask.Open {
		d.resolve(t.Ask, nil, "cancelled", "turn", "", why)
	}
	st := t.Step
	if st == nil {
		return true
	}
	quiet := st.Phase != stepRequested
	for _, c := range st.Calls {
		if c.Phase == CallOver {
			continue
		}
		if c.Phase == CallRunning {
			if spec, ok := d.rules.Tool(c.Name); ok && spec.Interrupt == "finish" {
				d.want(d.effect(c))
			}
			quiet = false
			continue
		}
		if c.Ask != nil && c.Ask.Open {
			d.resolve(c.Ask, c, "cancelled", "turn", "", why)
		}
		d.closes(c, why)
		p := event.Problem{Class: "cancelled", Code: code, Message: why}
		if c.Phase == CallOrphaned && (d.classOf(c) == belay.AtMostOnce || d.classOf(c) == belay.Recoverable) {
			p = lostProblem(c)
		}
		d.record(d.failed(c, p))
	}
	return quiet
}

// failed ends a call. What it told last of an attempt whose end isn't known is its output.
func (s *State) failed(c *Call, p event.Problem) core.Fact {
	return core.Fact{IDs: s.callIDs(c), Data: event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Problem: p, Output: belay.Content{Text: c.Told}, Final: true}}
}

// fail ends the turn in any other way than well.
func (d *decision) fail(o belay.Outcome, code, reason string) {
	t := d.Turn
	stats := t.stats(o)
	for _, f := range d.ready.Decided {
		if _, closed := f.Data.(event.ToolFailed); closed {
			stats.Calls++
		}
	}
	reason = event.CutText(reason, maxSaid)
	d.record(core.Fact{IDs: d.turnIDs(), Data: event.TurnFailed{
		Outcome: o, Code: code, Reason: reason, PartialRef: t.Partial, Partial: t.PartialText, Stats: stats,
	}})
	end := belay.AttemptEnd{Outcome: o, Reason: reason, Cause: code}
	if a := d.rules.agentUsed(); a != nil {
		end.Agent = a.Title()
	}
	if d.Depth > 0 && (t.PartialText != "" || t.Partial != nil) {
		end.Partial = &belay.Content{Text: event.CutText(t.PartialText, maxSaid), Ref: t.Partial}
	} else if d.Depth > 0 && t.Step != nil && (t.Step.Text.Text != "" || t.Step.Text.Ref != nil) {
		end.Partial = &belay.Content{Text: event.CutText(t.Step.Text.Text, maxSaid), Ref: t.Step.Text.Ref}
	}
	d.report(end)
}

// report tells the task how its attempt ended, and ends what is part of the turn.
func (d *decision) report(end belay.AttemptEnd) {
	end.Acted = d.Turn.Acted || len(d.Turn.Changed) > 0
	if d.Depth > 0 { // its parent reads it
		t := d.Turn
		end.AttemptUse = belay.AttemptUse{Steps: t.Steps, Calls: t.Calls, Active: belay.Duration(t.Active), Usage: t.Usage, MicroUSD: t.Cost.MicroUSD, Charged: d.Charged.Add(d.lent())}
		for _, f := range d.ready.Decided { // calls that end with the turn
			switch f.Data.(type) {
			case event.ToolResult, event.ToolFailed:
				end.Calls++
			}
		}
		end.Taint = TaintNames(d.Taint, maxTaint)
		end.Changed = event.Fitting(t.Changed, maxSaid)
	}
	d.endAttempt(d.Turn.Queued, end)
	d.reportJoined(end)
}

// endAttempt tells a turn's task, if it has one, how the attempt ended.
func (d *decision) endAttempt(q Queued, end belay.AttemptEnd) {
	if q.Task != "" {
		d.send(core.Send{To: q.Task.Stream(), Command: belay.EndAttempt{Run: q.Run, Turn: q.Turn, AttemptEnd: end}})
	}
}

func (s *State) turnIDs() belay.IDs {
	ids := s.ids()
	ids.Step, ids.Task, ids.Run = "", s.Turn.Task, s.Turn.Run
	return ids
}

// stats is what the turn used, which ends in some way.
func (t *Turn) stats(o belay.Outcome) event.TurnStats {
	s := event.TurnStats{Steps: t.Steps, Calls: t.Calls, Denied: t.Denials, ActiveMS: t.Active.Milliseconds(), Usage: t.Usage, Cost: t.cost(), Below: t.Below}
	if t.Agent == nil {
		return s
	}
	s.Agent, s.Version, s.Outcome, s.GateReds = t.Agent.Name, t.Agent.Version, o, t.Reds
	if t.Again {
		s.Retries = 1
	}
	return s
}
