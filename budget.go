package belay

import (
	"math"
	"math/big"
	"strings"
	"time"
)

// Amounts are what was, or may be, used of each kind. Sums and differences
// saturate.
type Amounts struct {
	MicroUSD int64    `json:"microUsd,omitempty"` // millionths of a US dollar
	Tokens   int64    `json:"tokens,omitempty"`
	Calls    int64    `json:"calls,omitempty"` // of tools
	Time     Duration `json:"time,omitempty"`
}

// BudgetKind is a kind of amount, as facts name it.
type BudgetKind string

// The kinds, in the order in which amounts are shown.
const (
	BudgetCost   BudgetKind = "cost"
	BudgetTokens BudgetKind = "tokens"
	BudgetCalls  BudgetKind = "calls"
	BudgetTime   BudgetKind = "time"
)

// BudgetKinds are all kinds.
func BudgetKinds() [4]BudgetKind {
	return [...]BudgetKind{BudgetCost, BudgetTokens, BudgetCalls, BudgetTime}
}

// Of is the amount of one kind; that of Time is in nanoseconds.
func (a *Amounts) Of(k BudgetKind) *int64 {
	switch k {
	case BudgetCost:
		return &a.MicroUSD
	case BudgetTokens:
		return &a.Tokens
	case BudgetCalls:
		return &a.Calls
	}
	return (*int64)(&a.Time)
}

// Amount is so much of one kind.
func (k BudgetKind) Amount(n int64) (a Amounts) {
	*a.Of(k) = n
	return a
}

// merge is f of each kind.
func (a Amounts) merge(b Amounts, f func(x, y int64) int64) Amounts {
	for _, k := range BudgetKinds() {
		*a.Of(k) = f(*a.Of(k), *b.Of(k))
	}
	return a
}

// Add is the sum of both.
func (a Amounts) Add(b Amounts) Amounts { return a.merge(b, add) }

// Sub is what is left without b; it is negative where b is more.
func (a Amounts) Sub(b Amounts) Amounts {
	return a.merge(b, func(x, y int64) int64 {
		if y == math.MinInt64 {
			return add(add(x, math.MaxInt64), 1)
		}
		return add(x, -y)
	})
}

// Min is the smaller one of each kind.
func (a Amounts) Min(b Amounts) Amounts {
	return a.merge(b, func(x, y int64) int64 { return min(x, y) })
}

// Max is the larger one of each kind.
func (a Amounts) Max(b Amounts) Amounts {
	return a.merge(b, func(x, y int64) int64 { return max(x, y) })
}

// Only are the amounts of the kinds that a limit limits.
func (a Amounts) Only(limit Amounts) Amounts {
	return a.merge(limit, func(x, y int64) int64 {
		if y == 0 {
			return 0
		}
		return x
	})
}

// Short is the first kind of which there is less than in b; empty if there is none.
func (a Amounts) Short(b Amounts) BudgetKind {
	for _, k := range BudgetKinds() {
		if *a.Of(k) < *b.Of(k) {
			return k
		}
	}
	return ""
}

// Covers reports whether there is at least as much of each kind as in b.
func (a Amounts) Covers(b Amounts) bool { return a.Min(b) == b }

func add(x, y int64) int64 {
	switch sum := x + y; {
	case x > 0 && y > 0 && sum < 0:
		return math.MaxInt64
	case x < 0 && y < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// String is how people write them, without the kinds that are zero: 2.50usd,500ktok,300calls,4h.
func (a Amounts) String() string {
	var parts []string
	for _, k := range BudgetKinds() {
		if n := *a.Of(k); n != 0 {
			parts = append(parts, k.text(n))
		}
	}
	return strings.Join(parts, ",")
}

// text is an amount with its unit: the largest of which it is a whole number.
func (k BudgetKind) text(n int64) string {
	switch k {
	case BudgetCost:
		s := strings.TrimRight(big.NewRat(n, 1_000_000).FloatString(6), "0")
		if point := strings.IndexByte(s, '.'); len(s)-point == 2 {
			s += "0" // 2.50usd
		}
		return strings.TrimSuffix(s, ".") + "usd"
	case BudgetTokens:
		switch {
		case n%1_000_000 == 0:
			return big.NewInt(n/1_000_000).String() + "mtok"
		case n%1000 == 0:
			return big.NewInt(n/1000).String() + "ktok"
		}
		return big.NewInt(n).String() + "tok"
	case BudgetCalls:
		if n == 1 {
			return "1call"
		}
		return big.NewInt(n).String() + "calls"
	}
	s := time.Duration(n).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// BudgetAsk is a thread's request for a part of its session's budget.
type BudgetAsk struct {
	ID       string  `json:"id"`
	Least    Amounts `json:"least"`              // less is of no use
	Most     Amounts `json:"most"`               // more isn't needed
	Priority int     `json:"priority,omitempty"` // among the threads that wait; higher is first
}

// BudgetGrant is a part of a session's budget that a thread may spend, or the
// answer that there is none.
type BudgetGrant struct {
	ID      string  `json:"id,omitempty"`     // empty: it only tells the limit
	Limit   Amounts `json:"limit"`            // of the session
	Counted Amounts `json:"counted,omitzero"` // kinds that quotas count and nothing limits; how much says nothing
	Amount  Amounts `json:"amount,omitzero"`
	Refused bool    `json:"refused,omitempty"` // not as things are
	Left    Amounts `json:"left,omitzero"`     // refused: what no thread has

	Quota *QuotaWindow `json:"quota,omitempty"` // refused: for this one
	Low   []QuotaLeft  `json:"low,omitempty"`   // quotas that are nearly used up
}

// BudgetReturn is what became of the budget that a thread was given: it spent a
// part, keeps a part, and gives back the rest.
type BudgetReturn struct {
	Closed []string `json:"closed"`       // the grants that this is about, and requests that it takes back
	ID     string   `json:"id,omitempty"` // the one of them that what it keeps belongs to; empty: it keeps nothing

	Spent Amounts `json:"spent,omitzero"`
	Back  Amounts `json:"back,omitzero"`
	Kept  Amounts `json:"kept,omitzero"`
	Waits bool    `json:"waits,omitempty"` // what is kept doesn't come back before other threads end, or a person answers
}

// Quota limits what all sessions of a tenant or of a user may use in a window of
// time.
type Quota struct {
	Of    string     `json:"of"` // tenant, user
	Kind  BudgetKind `json:"kind"`
	Limit int64      `json:"limit"`          // as in Amounts
	Per   string     `json:"per"`            // hour, day, week, month
	Zone  string     `json:"zone,omitempty"` // whose days they are, by its name in the IANA database; empty is UTC
	Warn  bool       `json:"warn,omitempty"` // nothing is blocked
}

// QuotaWindow is a quota with the window that it counts in.
type QuotaWindow struct {
	Quota
	From  time.Time `json:"from"`
	Until time.Time `json:"until"` // the next one begins
}

// QuotaLeft is what a quota has left in its window.
type QuotaLeft struct {
	QuotaWindow
	Left int64 `json:"left"`
}
