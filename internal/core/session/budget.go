package session

import (
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
)

// ask takes what a thread asks for into the books.
func (s *State) ask(c belay.AskGrants, now time.Time) (facts []core.Fact, sends []core.Send, err error) {
	switch {
	case c.Place:
		return s.place(c.Thread, event.SubagentWorking), nil, nil
	case c.Share != nil:
		facts, sends = s.shareGrant(c.Thread, *c.Share, now)
		return facts, sends, nil
	case c.Use != nil:
		facts, sends = s.useGrant(c.Thread, *c.Use)
		return facts, sends, nil
	case c.Budget == nil:
		return s.hold(c), nil, nil
	case s.Budget.Grants.Find(c.Thread, c.Budget.ID) != nil:
		return nil, nil, nil
	}
	return []core.Fact{s.limitFact(event.LimitChanged{Op: event.LimitAsked, Thread: c.Thread, GrantID: c.Budget.ID, Least: c.Budget.Least, Amount: c.Budget.Most, Priority: c.Budget.Priority})}, nil, nil
}

// takeBack takes what a thread returns out of the books.
func (s *State) takeBack(c belay.ReturnGrant) (facts []core.Fact) {
	if c.Place {
		facts = s.place(c.Thread, event.SubagentWaiting)
	}
	if c.Used != nil {
		facts = s.report(c.Thread, *c.Used)
	}
	if c.Call != "" {
		facts = append(facts, s.release(c)...)
	}
	if b := c.Budget; b != nil {
		facts = append(facts, s.limitFact(event.LimitChanged{Op: event.LimitReturned, Thread: c.Thread, GrantID: b.ID, Closed: b.Closed, Amount: b.Back, Spent: b.Spent, Kept: b.Kept, Waits: b.Waits}))
	}
	return facts
}

// advance is the part of the budget that goes to a thread with its work: all that
// is left while it is the only one.
func (s *State) advance(l grant.Ledger, thread belay.ThreadID, n int) (fact []core.Fact, with *belay.BudgetGrant) {
	telling := l.Telling()
	if with = &telling; !l.Limited() {
		if l.Counted() == (belay.Amounts{}) {
			with = nil
		}
		return nil, with
	}
	amount := l.Left().Max(belay.Amounts{})
	if amount == (belay.Amounts{}) || !l.Only(thread) {
		return nil, with
	}
	with.ID, with.Amount = belay.DeriveID("grant", s.Stream, s.Seq+1+int64(n), 0), amount
	return []core.Fact{s.limitFact(event.LimitChanged{Op: event.LimitGranted, Thread: thread, GrantID: with.ID, Amount: amount})}, with
}

// setBudget changes the limit, and tells the threads.
func (s *State) setBudget(c belay.SetBudget, by string) ([]core.Fact, []core.Send, error) {
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session")
	}
	if strings.HasPrefix(by, "stream:") { // the answer to a thread's question, which knows what quotas limit, too
		if c.Budget = c.Budget.Only(s.Budget.Limit); c.Budget == (belay.Amounts{}) {
			return nil, s.refuseAgain(by), nil
		}
	}
	limit, before, err := s.Budget.Set(c)
	if err != nil || limit == s.Budget.Limit {
		return nil, nil, err
	}
	return []core.Fact{s.limitFact(event.LimitChanged{Op: event.LimitSet, Limit: limit, Spent: before, By: by})}, s.tellLimit(limit), nil
}

// refuseAgain answers a thread whose request stays refused, because what it asked to raise isn't
// limited here: it waits for an answer.
func (s *State) refuseAgain(by string) (sends []core.Send) {
	l := &s.Budget
	for _, g := range l.Grants {
		if !g.Given && g.Refused && by == "stream:"+string(g.To.Stream()) {
			b := l.Telling()
			b.ID, b.Refused, b.Left, b.Quota = g.ID, true, l.Left(), l.Said(g.ID).For
			sends = append(sends, core.Send{To: g.To.Stream(), Command: belay.GiveGrant{Budget: &b}})
		}
	}
	return sends
}

// tellLimit are the sends that make the threads ask before they spend.
func (s *State) tellLimit(limit belay.Amounts) (sends []core.Send) {
	after := s.Budget
	after.Limit = limit
	for _, thread := range s.All() {
		sends = append(sends, core.Send{To: thread.Stream(), Command: belay.GiveGrant{Budget: &belay.BudgetGrant{Limit: limit, Counted: after.Counted()}}})
	}
	return sends
}

func (s *State) limitFact(p event.LimitChanged) core.Fact {
	p.Scope = "session"
	return core.Fact{IDs: s.ids(), Data: p}
}

// grantBudget answers threads that ask for a part of the budget. What is short is
// asked of the quotas, or recalled from other threads; when none of them has any, the
// request is refused until the limit is raised.
func (s *State) grantBudget(rd *core.Ready) {
	l := &s.Budget
	s.returnQuota(rd)
	s.awaitQuota(rd)
	left := l.Left()
	waiting := l.Waiting(s.age())
	if left.Short(belay.Amounts{}) != "" {
		s.recall(rd, "", waiting, left, belay.Amounts{})
	}
	for i, g := range waiting {
		amount, ok := l.Share(g, left)
		limit := l.Told()
		switch {
		case ok:
			left = left.Sub(amount)
			rd.Decided = append(rd.Decided, s.limitFact(event.LimitChanged{Op: event.LimitGranted, Thread: g.To, GrantID: g.ID, Amount: amount}))
			b := l.Telling()
			b.ID, b.Amount, b.Low = g.ID, amount, l.Said(g.ID).Low
			s.give(rd, g.To, b)
			continue
		case len(rd.Decided) > 0: // look again when that is folded
		case s.askQuota(rd, g, left):
		case s.recall(rd, g.To, waiting[i+1:], left, g.Least.Only(limit)):
		case !g.Refused:
			rd.Decided = append(rd.Decided, s.limitFact(event.LimitChanged{Op: event.LimitRefused, Thread: g.To, GrantID: g.ID}))
			b := l.Telling()
			b.ID, b.Refused, b.Left, b.Quota = g.ID, true, left, l.Said(g.ID).For
			s.give(rd, g.To, b)
			continue
		default:
			continue
		}
		return
	}
}

// age says of a thread how many are older.
func (s *State) age() func(belay.ThreadID) int {
	all := map[belay.ThreadID]int{}
	for i, t := range s.All() {
		all[t] = i
	}
	return func(t belay.ThreadID) int { return all[t] }
}

func (s *State) give(rd *core.Ready, thread belay.ThreadID, b belay.BudgetGrant) {
	rd.Sends = append(rd.Sends, core.Send{To: thread.Stream(), Command: belay.GiveGrant{Budget: &b}})
}

// recall asks other threads for what a request lacks, if enough of it may come back, and
// reports whether it may. What is overdrawn is asked of all.
func (s *State) recall(rd *core.Ready, to belay.ThreadID, behind []grant.Grant[belay.ThreadID], left, least belay.Amounts) bool {
	from, enough := s.Budget.Recalls(to, behind, left, least)
	if !enough && to != "" {
		return false
	}
	for _, r := range from {
		rd.Decided = append(rd.Decided, s.limitFact(event.LimitChanged{Op: event.LimitRecalled, Thread: r.From, Waits: r.Waits}))
		rd.Sends = append(rd.Sends, core.Send{To: r.From.Stream(), Command: belay.RecallGrants{Waits: r.Waits}})
	}
	return enough
}
