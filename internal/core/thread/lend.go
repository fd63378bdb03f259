package thread

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// What a child may spend is lent to it by the turn that starts it, so that the money and
// the tokens of the turn are limited for all that is below it. At its end what it took, with
// those below it, is the turn's own, and the rest is there again.

// loan is what a turn lent to a child.
type loan struct {
	Payer belay.TurnID  `json:"payer,omitempty"` // that lent it; empty: none pays for the child
	Lent  belay.Amounts `json:"lent,omitzero"`
	Took  belay.Amounts `json:"took,omitzero"` // as the child told when it ended last
}

// lent is what open children may spend of the running turn's limits.
func (s *State) lent() (a belay.Amounts) {
	for _, k := range s.Children {
		if s.owes(k) {
			a = a.Add(k.Lent)
		}
	}
	return a
}

// owes reports whether the running turn pays for a child that is open, or will be.
func (s *State) owes(k *child) bool {
	if s.Turn == nil || k.Payer != s.Turn.Turn || k.Ended {
		return false
	}
	c := s.Turn.call(k.Call)
	return k.Rules == nil || c != nil && c.Phase != CallOver
}

// lends folds that the running turn pays for a child.
func (s *State) lends(c *child, a *belay.Amounts) {
	c.Payer, c.Lent = "", belay.Amounts{}
	if a != nil && s.Turn != nil {
		c.Payer, c.Lent = s.Turn.Turn, *a
	}
}

// paid folds what a child took that has ended.
func (s *State) paid(c *child, end *belay.AttemptEnd) {
	if end == nil {
		return
	}
	took := end.Charged.Sub(c.Took).Max(belay.Amounts{})
	c.Took = c.Took.Max(end.Charged)
	if t := s.Turn; t != nil && c.Payer == t.Turn {
		t.Spent, s.Charged, t.Short = t.Spent.Add(took), s.Charged.Add(took), false
		t.Usage, t.Cost.MicroUSD = t.Usage.Add(end.Usage), t.Cost.MicroUSD+end.MicroUSD
		t.Below = event.AgentsUse{Usage: t.Below.Usage.Add(end.Usage), MicroUSD: t.Below.MicroUSD + end.MicroUSD}
	}
	c.Payer, c.Lent = "", belay.Amounts{}
}

// writesOff folds, when the turn ends, that children go on that it pays for: what they may
// spend is charged in full, because nobody is told of it any more.
func (s *State) writesOff() {
	s.Charged = s.Charged.Add(s.lent())
	for _, k := range s.Children {
		if k.Payer == s.Turn.Turn {
			k.Payer, k.Lent = "", belay.Amounts{}
		}
	}
}

// left is what the running turn may still use that was driven for so long, beside what it
// has lent.
func (s *State) left(active time.Duration) belay.Limits {
	return s.Turn.left(active).Less(s.lent())
}

// share is what a child may use for which nothing else is said: of the turn's money and
// tokens an equal part for each that the calls of this answer start, and one for the turn,
// but no less than it takes to do something.
func (d *decision) share() belay.Limits {
	l, n, least := d.left(d.active()), int64(1), d.leastLoan()
	for _, c := range d.Turn.calls() {
		if d.borrows(c) {
			n++
		}
	}
	if l.MicroUSD > 0 {
		l.MicroUSD = min(l.MicroUSD, max(1, l.MicroUSD/n, least.MicroUSD))
	}
	if l.Tokens > 0 {
		l.Tokens = min(l.Tokens, max(1, l.Tokens/n, least.Tokens))
	}
	return l
}

// leastLoan is what two requests take, and a final step after each, if they read as much as
// one of this turn's.
func (d *decision) leastLoan() belay.Amounts {
	_, input := spending{d}.input("")
	one, _ := bound(d.to(), input, leastOutput, d.now)
	two, _ := bound(d.to(), input+2*leastOutput, leastOutput, d.now)
	one = one.Add(two)
	return one.Add(one)
}

// borrows reports whether a call starts a child, or lets one go on, that has got nothing yet.
func (d *decision) borrows(c *Call) bool {
	spec, _ := d.rules.Tool(c.Name)
	k := d.childOf(c.ID)
	return c.Phase != CallOver && (spec.Handled == handledInput || spec.Handled == handledSpawn && (k == nil || k.Begin != nil && k.Rules == nil))
}

// waitsToLend reports whether a child can't get enough to do something before others that
// the turn pays for have ended.
func (d *decision) waitsToLend() bool {
	if d.lent() == (belay.Amounts{}) {
		return false
	}
	share := d.share()
	limit := belay.Amounts{MicroUSD: share.MicroUSD, Tokens: share.Tokens}
	return limit.Short(d.leastLoan().Only(limit)) != ""
}

// lendsTo reports whether a child is prepared now: one after the other where money or
// tokens are limited, because each gets some of what is left.
func (d *decision) lendsTo(c *Call) bool {
	if d.Turn.Limits.MicroUSD == 0 && d.Turn.Limits.Tokens == 0 {
		return true
	}
	for _, o := range d.Turn.calls() {
		if o == c {
			break
		}
		if o.Phase == CallWaits && d.borrows(o) {
			return false
		}
	}
	return !d.waitsToLend()
}

// shortOfLent keeps a request waiting for which the turn has lent too much, and reports
// whether it does: what children give back may be enough.
func (d spending) shortOfLent() bool {
	for _, k := range d.Children {
		if !d.owes(k) || k.Lent == (belay.Amounts{}) {
			continue
		}
		if !d.Turn.Short {
			d.record(d.fact(event.RunStatus{Status: "waiting_resource", Phase: phaseLent, WaitingFor: string(k.ID), Reason: "its agents may use what is left of the turn's limits"}))
		}
		return true
	}
	return false
}

// phaseLent marks a turn that waits for what its children don't use.
const phaseLent = "lent"
