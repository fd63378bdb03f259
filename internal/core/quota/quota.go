// Package quota is the decider of the quotas of a store: what the sessions of a
// tenant, or of a user, may use in a window of time. It lends slices to sessions by
// the protocol of package grant, as a session lends parts of its budget to threads.
// It belongs to no session: its stream is claimed for one decision at a time.
//
// Which quotas there are, and when their windows begin and end, each command says:
// configuration and time zones are the caller's.
package quota

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
)

// Version names what folding depends on besides the facts.
const Version = "quota/2"

// Stream is where the quotas of a tenant's store are.
const Stream = belay.StreamID(belay.KindLedger + "/default")

// lowPart is the part of a quota, one in so many, with which it is low.
const lowPart = 5

// State is what was lent, and what was spent in the windows that there were last.
type State struct {
	Stream  belay.StreamID              `json:"stream"`
	Seq     int64                       `json:"seq"`
	Grants  grant.Book[belay.SessionID] `json:"grants,omitempty"`
	Windows []window                    `json:"windows,omitempty"`
}

// window is what a quota counted since the window began.
type window struct {
	belay.QuotaWindow
	User  string `json:"user,omitempty"` // of a user's quota
	Spent int64  `json:"spent,omitempty"`
	Low   bool   `json:"low,omitempty"` // that was said
}

// Decider is the decider of the quotas.
type Decider struct{ s State }

var _ core.Decider = (*Decider)(nil)

// New is the decider of an empty stream.
func New(stream belay.StreamID) *Decider { return &Decider{State{Stream: stream}} }

// State is a look at the state; the caller must not change it.
func (d *Decider) State() *State { return &d.s }

// Handle answers a command. What can't be given gives no facts: Short says why.
func (d *Decider) Handle(o belay.Order, _ time.Time) ([]core.Fact, []core.Send, error) {
	s := &d.s
	switch c := o.Command.(type) {
	case belay.AskQuota:
		if s.Grants.Find(c.Session, c.ID) != nil {
			return nil, nil, nil
		}
		amount := c.Most
		for _, l := range s.Left(c.User, c.Windows) {
			amount = atMost(amount, l)
		}
		limit := limited(c.Windows)
		if amount = amount.Only(limit).Max(belay.Amounts{}); amount.Short(c.Least.Only(limit)) != "" {
			return nil, nil, nil
		}
		return s.fact(event.LimitChanged{Op: event.LimitGranted, Session: c.Session, User: c.User, GrantID: c.ID, Amount: amount, Windows: c.Windows,
			Low: s.low(c)}), nil, nil
	case belay.ReturnQuota:
		r := c.Return
		if !slices.ContainsFunc(r.Closed, func(id string) bool { return s.Grants.Find(c.Session, id) != nil }) {
			return nil, nil, nil
		}
		return s.fact(event.LimitChanged{Op: event.LimitReturned, Session: c.Session, User: c.User, GrantID: r.ID, Closed: r.Closed, Amount: r.Back, Spent: r.Spent, Kept: r.Kept, Windows: c.Windows}), nil, nil
	}
	return nil, nil, belay.Errorf(belay.CodeBadCommand, "quotas don't take %s", belay.CommandName(o.Command))
}

func (s *State) fact(p event.LimitChanged) []core.Fact {
	p.Scope = "quota"
	return []core.Fact{{IDs: belay.IDs{Session: belay.SystemSession}, Data: p}}
}

// low are the quotas that are nearly used up, with what the session drew, and of which that
// wasn't said in their window.
func (s *State) low(c belay.AskQuota) (low []belay.QuotaLeft) {
	for _, w := range c.Windows {
		x := s.find(w, c.User)
		if left := w.Limit - x.Spent - *c.Drawn.Of(w.Kind); !x.Low && left <= w.Limit/lowPart {
			low = append(low, belay.QuotaLeft{QuotaWindow: w, Left: max(left, 0)})
		}
	}
	return low
}

// Left is what quotas have left for a user. It is less than nothing where a window
// began anew with much lent, or where providers took more than was reserved.
func (s *State) Left(user string, windows []belay.QuotaWindow) []belay.QuotaLeft {
	all := make([]belay.QuotaLeft, len(windows))
	for i, w := range windows {
		all[i] = belay.QuotaLeft{QuotaWindow: w, Left: w.Limit - s.find(w, user).Spent - s.Lent(w, user)}
	}
	return all
}

// Lent is what sessions have of a quota and may give back.
func (s *State) Lent(w belay.QuotaWindow, user string) int64 { return s.lentAfter(-1, w, user) }

// lentAfter is what of a quota is lent to sessions whose first slice comes after the
// n-th one.
func (s *State) lentAfter(n int, w belay.QuotaWindow, user string) (sum int64) {
	for _, g := range s.Grants {
		if (w.Of != "user" || g.User == user) && s.first(g.To) > n {
			sum += *g.Amount.Of(w.Kind)
		}
	}
	return sum
}

// first is where a session's first slice is among all; -1: it has none.
func (s *State) first(session belay.SessionID) int {
	return slices.IndexFunc(s.Grants, func(g grant.Grant[belay.SessionID]) bool { return g.To == session })
}

// Short is the quota that doesn't have what a session asks for, and whether the
// session should wait for what others return. A session keeps its slices while it
// waits, so it waits only for sessions that got their first slice later than it did:
// no sessions wait for each other.
func (s *State) Short(c belay.AskQuota) (short *belay.QuotaWindow, wait bool) {
	for i, l := range s.Left(c.User, c.Windows) {
		least := *c.Least.Of(l.Kind)
		if l.Warn || l.Left >= least {
			continue
		}
		short, wait = &c.Windows[i], l.Left+s.lentAfter(s.first(c.Session), l.QuotaWindow, c.User) >= least
		if !wait {
			break
		}
	}
	return short, wait
}

// Close are the commands that end the slices of a session that can't return them any
// more. All of them count as spent.
func (s *State) Close(session belay.SessionID, now time.Time) (all []belay.ReturnQuota) {
	for _, g := range s.Grants {
		if g.To != session {
			continue
		}
		c := belay.ReturnQuota{Session: session, User: g.User, Return: belay.BudgetReturn{Closed: []string{g.ID}, Spent: g.Amount}}
		for _, w := range s.Windows {
			if w.Of != "user" || w.User == g.User {
				c.Windows = append(c.Windows, Current(w.Quota, now))
			}
		}
		all = append(all, c)
	}
	return all
}

// find is what was counted in a window: nothing if it is a new one.
func (s *State) find(w belay.QuotaWindow, user string) window {
	if i := s.index(w, user); i >= 0 && s.Windows[i].From.Equal(w.From) {
		return s.Windows[i]
	}
	return window{}
}

func (s *State) index(w belay.QuotaWindow, user string) int {
	if w.Of != "user" {
		user = ""
	}
	return slices.IndexFunc(s.Windows, func(x window) bool {
		return x.Of == w.Of && x.Kind == w.Kind && x.Per == w.Per && x.Zone == w.Zone && x.User == user
	})
}

// atMost lowers an amount to what a quota has left. One that only warns lowers nothing.
func atMost(amount belay.Amounts, l belay.QuotaLeft) belay.Amounts {
	if of := amount.Of(l.Kind); !l.Warn {
		*of = min(*of, l.Left)
	}
	return amount
}

// limited are the kinds that windows count.
func limited(windows []belay.QuotaWindow) (limit belay.Amounts) {
	for _, w := range windows {
		*limit.Of(w.Kind) = math.MaxInt64
	}
	return limit
}

// Apply folds one fact.
func (d *Decider) Apply(e event.Envelope) {
	s := &d.s
	s.Seq, s.Stream = e.Seq, e.Stream
	p, ok := e.Data.(event.LimitChanged)
	if !ok {
		return
	}
	switch p.Op {
	case event.LimitGranted:
		s.Grants.Give(grant.Grant[belay.SessionID]{ID: p.GrantID, To: p.Session, Amount: p.Amount, User: p.User})
	case event.LimitReturned:
		s.Grants.Close(p.Session, p.Closed, p.GrantID, p.Kept)
	}
	s.forget(e.Time)
	for _, w := range p.Windows {
		x := s.find(w, p.User)
		x.QuotaWindow = w
		if w.Of == "user" {
			x.User = p.User
		}
		if p.Op == event.LimitReturned {
			x.Spent = (belay.Amounts{Tokens: x.Spent}).Add(belay.Amounts{Tokens: *p.Spent.Of(w.Kind)}).Tokens
		}
		x.Low = x.Low || slices.ContainsFunc(p.Low, func(l belay.QuotaLeft) bool { return l.Quota == w.Quota })
		if i := s.index(w, p.User); i >= 0 {
			s.Windows[i] = x
		} else {
			s.Windows = append(s.Windows, x)
		}
	}
}

// forget drops windows that are over, but for those of users who have slices: what is
// counted of them begins anew.
func (s *State) forget(now time.Time) {
	s.Windows = slices.DeleteFunc(s.Windows, func(w window) bool {
		return !now.Before(w.Until) && !slices.ContainsFunc(s.Grants, func(g grant.Grant[belay.SessionID]) bool { return w.Of != "user" || g.User == w.User })
	})
}

// Next decides nothing: quotas act on commands only.
func (d *Decider) Next(time.Time) core.Ready { return core.Ready{} }

// Missing names nothing: quotas need no content.
func (d *Decider) Missing() []belay.Ref { return nil }

// Supply takes nothing in.
func (d *Decider) Supply(belay.Ref, []byte) error { return nil }

// InFlight reports that nothing runs.
func (d *Decider) InFlight() bool { return false }

// Save is the state as bytes.
func (d *Decider) Save() ([]byte, error) { return json.Marshal(&d.s) }

// Load takes the state from bytes.
func (d *Decider) Load(data []byte) error { return json.Unmarshal(data, &d.s) }
