package thread

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// requestEnd is how a request ended, as far as its cost goes.
type requestEnd struct {
	Usage  belay.Usage  `json:"usage,omitzero"`
	Text   int64        `json:"text,omitempty"` // tokens of the answer, as they are counted
	Takes  event.Charge `json:"takes,omitempty"`
	Failed bool         `json:"failed,omitempty"` // there is no answer
}

// charge records what the requests took that are over. A provider's report counts;
// without one what was counted; of an attempt that failed what its failure says.
// More than was reserved is charged too: then nothing starts until it is covered.
func charge(d *decision) bool {
	for _, r := range d.Purse.Open {
		if r.End == nil {
			continue
		}
		ids := d.ids()
		if d.Turn == nil { // of a call that was over when its checker's request ended
			ids = d.lastIDs()
		}
		if c := d.Compacting; c != nil && r.For == event.CompactionKey(c.Started) {
			ids = c.IDs
		}
		ids.Call = r.Call
		d.record(core.Fact{IDs: ids, Data: d.cost(r)})
	}
	return false
}

// cost is what a request took that is over.
func (d *decision) cost(r reservation) event.CostRecorded {
	end := r.End
	c := event.CostRecorded{Source: "estimated", Failed: end.Failed,
		Cost: event.Cost{Currency: "USD", Provider: r.Route.Provider, Model: r.Route.Model, For: r.For, Unpriced: r.Unpriced}}
	switch {
	case end.Takes == event.ChargeNothing:
		c.Unpriced, c.Source = false, "computed"
		return c
	case end.Takes == event.ChargeAll:
		c.Usage, c.Amount = belay.Usage{Input: r.Amount.Tokens - r.Output, Output: r.Output}, r.Amount.MicroUSD
		return c
	case end.Takes == event.ChargePart:
		c.Usage = belay.Usage{Input: r.Input, Output: end.Text + end.Text/4}
	case end.Usage.Reported:
		c.Usage, c.Source = end.Usage, "computed"
	default:
		c.Usage = belay.Usage{Input: r.Input, Output: end.Text}
	}
	if r.Unpriced {
		return c
	}
	u := c.Usage
	u.Reported = true
	amount, known := int64(0), false
	if d.rules != nil {
		amount, known = d.rules.Candidate(r.Route).Prices.Cost(u, d.now)
	}
	if !known { // a price ended, the rules are lost, or the usage can't be
		amount, c.Source = r.Amount.MicroUSD, "estimated"
	}
	c.Amount, c.Over = amount, max(0, amount-r.Amount.MicroUSD)
	return c
}

// applyCost folds reservations, the ends of what they are for, and their charges.
func (s *State) applyCost(e event.Envelope) {
	p := &s.Purse
	end := func(key string, how requestEnd) {
		if r := find(p.Open, func(r *reservation) bool { return r.For == key && r.End == nil }); r != nil {
			r.End = &how
		}
	}
	switch f := e.Data.(type) {
	case event.CostEstimated:
		p.Open = append(p.Open, reservation{For: f.For, Route: event.Route{Provider: f.Provider, Model: f.Model}, Call: e.IDs.Call, Unpriced: f.Unpriced,
			Amount: belay.Amounts{MicroUSD: f.Amount, Tokens: f.Usage.Total()}, Output: f.Usage.Output, Input: f.Counted})
	case event.CostRecorded:
		if f.For == "" { // of an earlier release
			return
		}
		if p.Open = slices.DeleteFunc(p.Open, func(r reservation) bool { return r.For == f.For }); len(p.Open) == 0 {
			p.Open = nil // as a state that was loaded has it
		}
		took := belay.Amounts{MicroUSD: f.Amount, Tokens: f.Usage.Total()}
		p.spend(took)
		s.Charged = s.Charged.Add(took)
		if s.Turn != nil && e.IDs.Turn == s.Turn.Turn {
			s.Turn.Spent = s.Turn.Spent.Add(took)
		}
	case event.ModelCompleted:
		end(modelKey(e.IDs.Step, f.Attempt), requestEnd{Usage: f.Usage, Text: answered(f) + sealed(f), Takes: event.ChargeAnswer})
	case event.ModelFailed:
		end(modelKey(e.IDs.Step, f.Attempt), requestEnd{Usage: f.Usage, Text: f.Tokens, Takes: f.Charge, Failed: true})
	case event.ContextCompactionCompleted:
		end(event.CompactionKey(f.Started), requestEnd{Usage: f.Usage, Text: said(f.Summary) + f.Came, Takes: f.Charge, Failed: f.Problem != nil})
	case event.ContextCompactionFailed:
		end(event.CompactionKey(f.Started), requestEnd{Usage: f.Usage, Text: f.Tokens, Takes: f.Charge, Failed: true})
	case event.HookCompleted:
		end(checkKey(e.IDs.Call, f.Hook), requestEnd{Usage: f.Usage, Takes: event.ChargeAnswer})
	case event.HookFailed:
		end(checkKey(e.IDs.Call, f.Hook), requestEnd{Usage: f.Usage, Takes: f.Charge, Failed: true})
	case event.RunStatus:
		if f.Phase == "takeover" {
			for i := range p.Open {
				if p.Open[i].End == nil { // else it is known, and only its cost isn't recorded
					p.Open[i].End = &requestEnd{Takes: event.ChargeAll, Failed: true}
				}
			}
		}
	}
}

func modelKey(step belay.StepID, attempt int) string {
	return core.CallModel{Step: step, Attempt: attempt}.Key()
}

func checkKey(call belay.CallID, hook string) string {
	return string(call) + "/" + hook
}
