package grant

import (
	"slices"
	"strconv"
	"strings"
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
	User   string        `json:"user,omitempty"`   // on whose account
	Slices Book[string]  `json:"slices,omitempty"` // given, or asked for and not answered
	Drawn  belay.Amounts `json:"drawn,omitzero"`   // spent since the slices were returned last
	Asked  QuotaAsked    `json:"asked,omitzero"`

	Returning *QuotaReturn `json:"returning,omitempty"` // nil: the quotas know what became of all slices that were closed
}

// QuotaReturn is what became of slices that the session closed: nothing of them is lent any
// more, and the quotas are told until they have taken it.
type QuotaReturn struct {
	belay.BudgetReturn
	User   string        `json:"user,omitempty"`
	Quotas []belay.Quota `json:"quotas,omitempty"`
}

// QuotaAsked is what the quotas said last.
type QuotaAsked struct {
	ID    string             `json:"id,omitempty"` // of the slice
	Tries int                `json:"tries,omitempty"`
	Until time.Time          `json:"until,omitzero"` // refused: not for the window; others may give something back
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

// Return is what becomes of the slices if they are closed now.
func (q *Quotas) Return() belay.BudgetReturn {
	r := belay.BudgetReturn{Spent: q.Drawn, Back: q.sliced().Max(belay.Amounts{})}
	for _, g := range q.Slices {
		if g.Given {
			r.Closed = append(r.Closed, g.ID)
		}
	}
	return r
}

// Overdrawn is what was spent for which there is no slice: nothing limited it when it was.
func (q *Quotas) Overdrawn() (over belay.Amounts) {
	sliced := q.sliced()
	for _, s := range q.Shared {
		*over.Of(s.Kind) = max(0, -*sliced.Of(s.Kind))
	}
	return over
}

// Unheard are the quotas of which the session heard that they are nearly used up with a slice
// that no thread asked for.
func (q *Quotas) Unheard() []belay.QuotaLeft {
	if g := q.Slices.Find("", q.Asked.ID); g == nil || g.Least != (belay.Amounts{}) {
		return nil
	}
	return q.Asked.Low
}

// QuotaOf is a quota as the facts of the standard have it.
func QuotaOf(l belay.QuotaLeft) event.Quota {
	unit := map[belay.BudgetKind]string{belay.BudgetCost: "microUSD", belay.BudgetTokens: "token", belay.BudgetCalls: "call", belay.BudgetTime: "ns"}[l.Kind]
	return event.Quota{Kind: string(l.Kind), Scope: l.Of, Limit: l.Limit, Left: l.Left, Unit: unit, Until: l.Until}
}

// Pending is the slice that the quotas were asked for, until it is known what they said;
// nil: there is none.
func (q *Quotas) Pending() *Grant[string] {
	if i := slices.IndexFunc(q.Slices, func(g Grant[string]) bool { return !g.Given }); i >= 0 {
		return &q.Slices[i]
	}
	return nil
}

// NextSlice is the id of the next slice for a thread's request: no two slices have the same.
func (q *Quotas) NextSlice(request string) string {
	n := 0
	for _, g := range q.Slices {
		if isFor(g.ID, request) {
			n++
		}
	}
	if n == 0 {
		return request
	}
	return request + "/" + strconv.Itoa(n)
}

// isFor reports whether a slice is one for a thread's request.
func isFor(slice, request string) bool {
	of, _, _ := strings.Cut(slice, "/")
	return of == request
}

// Said is what the quotas said last for a thread's request; zero if they didn't.
func (q *Quotas) Said(request string) (a QuotaAsked) {
	if isFor(q.Asked.ID, request) {
		a = q.Asked
	}
	return a
}

// Tries is how often the quotas refused a slice, or couldn't be asked for it.
func (q *Quotas) Tries(slice string) int {
	if q.Asked.ID != slice {
		return 0
	}
	return q.Asked.Tries
}

// apply folds a step of the slices.
func (q *Quotas) apply(p event.LimitChanged) {
	switch p.Op {
	case event.LimitSet:
		if q.Shared, q.User = p.Quotas, p.User; len(q.Return().Closed) == 0 {
			q.Drawn = belay.Amounts{} // what was spent before counts for none of them
		}
	case event.LimitAsked:
		q.Slices.Ask(Grant[string]{ID: p.GrantID, Least: p.Least, Most: p.Amount})
	case event.LimitGranted:
		q.Slices.Give(Grant[string]{ID: p.GrantID, Amount: p.Amount})
		q.Asked = QuotaAsked{ID: p.GrantID, Low: p.Low}
	case event.LimitRefused:
		q.Asked = QuotaAsked{ID: p.GrantID, Tries: q.Tries(p.GrantID) + 1, Until: p.Until}
		if len(p.Windows) > 0 { // else it isn't known what they say
			q.Asked.For = &p.Windows[0]
			q.Slices.Return("", p.GrantID)
		}
	case event.LimitReturning:
		q.Returning = &QuotaReturn{belay.BudgetReturn{Closed: p.Closed, Spent: p.Spent, Back: p.Amount}, q.User, q.Shared}
		q.close(p)
	case event.LimitReturned:
		if q.Returning == nil { // as an earlier release wrote it
			q.close(p)
		}
		q.Returning = nil
	}
}

func (q *Quotas) close(p event.LimitChanged) {
	q.Slices.Close("", p.Closed, "", belay.Amounts{})
	q.Drawn = q.Drawn.Sub(p.Spent)
}
