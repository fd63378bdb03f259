package grant

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// ScopeQuota is the scope of the facts about a session's slices of quotas.
const ScopeQuota = "quota"

// Quotas are what a session may use of what it shares with other sessions. It spends
// from slices that it asks for when its threads do, and gives back when none of them
// needs any.
type Quotas struct {
	Shared []belay.Quota `json:"quotas,omitempty"`
	User   string        `json:"user,omitempty"` // on whose account
	Slices Book[string]  `json:"slices,omitempty"`
	Drawn  belay.Amounts `json:"drawn,omitzero"` // spent since the slices were returned last
	Asked  QuotaAsked    `json:"asked,omitzero"`
}

// QuotaAsked is what the quotas said last, for a thread's request.
type QuotaAsked struct {
	ID    string             `json:"id,omitempty"` // of the request
	Tries int                `json:"tries,omitempty"`
	Until time.Time          `json:"until,omitzero"` // refused: to be asked again then; zero: for the window
	For   *belay.QuotaWindow `json:"for,omitempty"`  // refused: that is used up
	Low   []belay.QuotaLeft  `json:"low,omitempty"`  // granted: that are nearly used up
}

// sliced is what the slices have left, lent to threads or not.
func (q *Quotas) sliced() (a belay.Amounts) {
	for _, g := range q.Slices {
		a = a.Add(g.Amount)
	}
	return a.Sub(q.Drawn)
}

// Same reports whether the session spends from these quotas on this account already.
func (q *Quotas) Same(user string, all []belay.Quota) bool {
	return slices.Equal(q.Shared, all) && (q.User == user || len(all) == 0)
}

// Return is what became of the slices.
func (q *Quotas) Return() belay.BudgetReturn {
	r := belay.BudgetReturn{Spent: q.Drawn, Back: q.sliced().Max(belay.Amounts{})}
	for _, g := range q.Slices {
		r.Closed = append(r.Closed, g.ID)
	}
	return r
}

// Said is what the quotas said for a request; zero if they didn't.
func (q *Quotas) Said(id string) (a QuotaAsked) {
	if q.Asked.ID == id {
		a = q.Asked
	}
	return a
}

// apply folds a step of the slices.
func (q *Quotas) apply(p event.LimitChanged) {
	switch p.Op {
	case event.LimitSet:
		if q.Shared, q.User = p.Quotas, p.User; len(q.Slices) == 0 {
			q.Drawn = belay.Amounts{} // what was spent before counts for none of them
		}
	case event.LimitGranted:
		q.Slices.Give(Grant[string]{ID: p.GrantID, Amount: p.Amount})
		q.Asked = QuotaAsked{ID: p.GrantID, Low: p.Low}
	case event.LimitRefused:
		q.Asked = QuotaAsked{ID: p.GrantID, Tries: q.Said(p.GrantID).Tries + 1, Until: p.Until}
		if len(p.Windows) > 0 {
			q.Asked.For = &p.Windows[0]
		}
	case event.LimitReturned:
		q.Slices.Close("", p.Closed, "", belay.Amounts{})
		q.Drawn = q.Drawn.Sub(p.Spent)
	}
}
