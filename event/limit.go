package event

import (
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// LimitChanged is a step of a budget: it was set, or a thread asked its session
// for a part, got it, or gave it back. Both streams have it.
type LimitChanged struct {
	fact
	Op      string         `json:"op"`                // set, asked, granted, refused, recalled, returning, returned
	Scope   string         `json:"scope"`             // session, thread, quota
	GrantID string         `json:"grantId,omitempty"` // asked, granted, refused, and returned: of the grant that what is kept belongs to
	Thread  belay.ThreadID `json:"thread,omitempty"`  // that asks, or was given
	Limit   belay.Amounts  `json:"limit,omitzero"`    // of the session, from now on; a kind without one isn't limited
	Counted belay.Amounts  `json:"counted,omitzero"`  // kinds that quotas count and nothing limits; how much says nothing
	Least   belay.Amounts  `json:"least,omitzero"`    // asked: without which it is of no use
	Amount  belay.Amounts  `json:"amount,omitzero"`   // asked, at most; granted; returned, returning
	Spent   belay.Amounts  `json:"spent,omitzero"`    // returned, returning: of what was granted; set: before there was a limit
	Kept    belay.Amounts  `json:"kept,omitzero"`     // returned: what the thread still has
	Waits   bool           `json:"waits,omitempty"`   // returned: the rest doesn't come back before what the thread waits for; recalled: it waits for budget itself, and gives all back
	Closed  []string       `json:"closed,omitempty"`  // returned, returning: the grants that this is about
	By      string         `json:"by,omitempty"`      // the principal who set it

	Priority int `json:"priority,omitempty"` // asked: among the threads that wait

	Session belay.SessionID     `json:"session,omitempty"` // of a quota: that spends from it
	User    string              `json:"user,omitempty"`    // on whose account
	Windows []belay.QuotaWindow `json:"windows,omitempty"` // the quotas that count
	Quotas  []belay.Quota       `json:"quotas,omitempty"`  // set: that the session spends from now on
	Until   time.Time           `json:"until,omitzero"`    // refused: when to ask again, because others may give something back
	Low     []belay.QuotaLeft   `json:"low,omitempty"`     // quotas that are nearly used up, once a window
}

// Ops of a LimitChanged.
const (
	LimitSet       = "set"
	LimitAsked     = "asked"
	LimitGranted   = "granted"
	LimitRefused   = "refused" // not as things are: the thread asks a person, or comes to its end
	LimitRecalled  = "recalled"
	LimitReturning = "returning" // of a quota: the session closed slices, and the quotas don't know what became of them yet
	LimitReturned  = "returned"
)

// Cost is an amount of money and what it is for.
type Cost struct {
	Amount   int64       `json:"amount"`   // millionths of the currency
	Currency string      `json:"currency"` // USD
	Provider string      `json:"provider,omitempty"`
	Model    string      `json:"model,omitempty"`
	Usage    belay.Usage `json:"usage,omitzero"`
	Unpriced bool        `json:"unpriced,omitempty"` // the price isn't known, so neither is the amount
	For      string      `json:"for,omitempty"`      // the request: what cost.recorded says of one closes what cost.estimated says
}

// Summary reports whether it is for shortening a conversation.
func (c Cost) Summary() bool { return strings.HasPrefix(c.For, compactionKey) }

// CostSum is the known cost of answers. It is empty when no price is known,
// which isn't zero.
type CostSum struct {
	MicroUSD int64 `json:"microUsd,omitempty"` // millionths of a US dollar
	Priced   int   `json:"priced,omitempty"`   // answers whose price is known
	Unpriced int   `json:"unpriced,omitempty"` // answers, and requests that failed, whose price isn't

	Estimated int `json:"estimated,omitempty"` // requests whose cost follows from what was counted: their providers reported no usage
}

// Add is the sum of two, at most the largest number there is.
func (c CostSum) Add(d CostSum) CostSum {
	sum := belay.Amounts{MicroUSD: c.MicroUSD}.Add(belay.Amounts{MicroUSD: d.MicroUSD})
	return CostSum{sum.MicroUSD, c.Priced + d.Priced, c.Unpriced + d.Unpriced, c.Estimated + d.Estimated}
}

// State is known, estimated, at_least or unknown.
func (c CostSum) State() string {
	switch {
	case c.Priced == 0 && c.MicroUSD == 0:
		return "unknown"
	case c.Unpriced > 0:
		return "at_least"
	case c.Estimated > 0:
		return "estimated"
	}
	return "known"
}

// CostEstimated reserves the most that a request can cost, in the append that
// announces it. Usage is the most that it can have.
type CostEstimated struct {
	fact
	Cost
	Counted int64 `json:"counted,omitempty"` // tokens of its input, as they are counted
}

// Charge is what a request takes that is over.
type Charge string

// What requests take.
const (
	ChargeNothing Charge = ""       // it never reached a model that worked on it
	ChargeAnswer  Charge = "answer" // what the provider reports, else what was counted
	ChargePart    Charge = "part"   // it was cut or cancelled: the input, and what came of the answer
	ChargeAll     Charge = "all"    // it isn't known: all that was reserved
)

// CostRecorded is what a request cost.
type CostRecorded struct {
	fact
	Cost
	Source string `json:"source"` // reported, computed, estimated

	Failed bool  `json:"failed,omitempty"` // of an attempt that brought no answer
	Over   int64 `json:"over,omitempty"`   // more than was reserved, in millionths of the currency
}

// Sum is what it adds to a sum of costs.
func (c CostRecorded) Sum() CostSum {
	if c.Unpriced {
		return CostSum{}
	}
	sum := CostSum{MicroUSD: c.Amount}
	if !c.Failed {
		sum.Priced = 1
	}
	if c.Source == "estimated" {
		sum.Estimated = 1
	}
	return sum
}

// Answered reports whether a fact records the cost of a request whose answer is a fact of its
// own: a step's. What shortened a conversation, judged a call or failed has no other.
func (e Envelope) Answered() bool {
	p, ok := e.Data.(CostRecorded)
	return ok && !p.Failed && !p.Summary() && e.IDs.Call == ""
}

// Cost is what a fact adds to the known cost of requests: that of an answer isn't
// known until it is recorded.
func (e Envelope) Cost() CostSum {
	switch p := e.Data.(type) {
	case ModelCompleted:
		return CostSum{Unpriced: 1}
	case CostRecorded:
		sum := p.Sum()
		switch {
		case e.Answered():
			sum.Unpriced = -sum.Priced
		case p.Unpriced:
			sum.Unpriced = 1
		}
		return sum
	}
	return CostSum{}
}

// Used is what a fact says that a request used, so that each request counts once. What no
// provider reported is an estimate.
func (e Envelope) Used() belay.Usage {
	switch p := e.Data.(type) {
	case ModelCompleted:
		return p.Usage
	case CostRecorded:
		if !e.Answered() || !p.Usage.Reported { // else it is what the answer said
			return p.Usage
		}
	}
	return belay.Usage{}
}

// RateLimitHit records that a provider refused a request for its rate limit.
type RateLimitHit struct {
	fact
	Provider string    `json:"provider"`
	Model    string    `json:"model,omitempty"`
	Kind     string    `json:"kind,omitempty"` // requests, tokens, concurrency
	RetryAt  time.Time `json:"retryAt,omitzero"`
}

// Quota is how much of something is left.
type Quota struct {
	Kind  string    `json:"kind"` // cost, tokens, calls, time
	Scope string    `json:"scope"`
	Limit int64     `json:"limit"`
	Left  int64     `json:"left"`
	Unit  string    `json:"unit"`
	Until time.Time `json:"until,omitzero"` // when it is filled up again
}

// QuotaLow warns before a quota blocks.
type QuotaLow struct {
	fact
	Quota
}

// QuotaBlocked says that a quota stopped something.
type QuotaBlocked struct {
	fact
	Quota
	Reason string `json:"reason"`
}
