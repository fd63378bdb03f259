// Package budget reads and prints limits of money, tokens, calls and time, and
// shares a total.
package budget

import (
	"math/big"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Limit is how much may be used of some kinds. A kind that is zero has no limit.
type Limit struct {
	belay.Amounts
	Raise bool `json:"raise,omitempty"` // add it to the limit that there is
}

// String is the form that Parse reads.
func (l Limit) String() string {
	if s := l.Amounts.String(); l.Raise && s != "" {
		return "+" + strings.ReplaceAll(s, ",", ",+")
	}
	return l.Amounts.String()
}

// Over is the limit that holds after l is set over another: of the kinds that l
// names, l's own or, if it is a raise, the sum. A raise gives no limit to a kind that
// has none.
func (l Limit) Over(old belay.Amounts) belay.Amounts {
	if l.Raise {
		return old.Add(l.Amounts.Only(old))
	}
	for _, k := range belay.BudgetKinds() {
		if n := *l.Of(k); n != 0 {
			*old.Of(k) = n
		}
	}
	return old
}

const (
	parseHint  = "such as 2usd,500ktok,300calls,4h; +5usd raises a limit that there is"
	maxAmount  = 1_000_000_000_000_000 // a thousand million dollars
	maxWritten = 100                   // bytes of a limit
)

// Parse reads a limit such as "2usd,500ktok,300calls,4h", or a raise such as "+5usd".
// Its units are usd, tok, ktok, mtok, calls (or call), and h, m and s. An error is a
// belay.Error with CodeUsage.
func Parse(s string) (Limit, error) {
	bad := func(format string, args ...any) (Limit, error) {
		return Limit{}, belay.Errorf(belay.CodeUsage, format, args...).WithHint(parseHint)
	}
	if len(s) > maxWritten {
		return bad("%d bytes are too many", len(s))
	}
	var l Limit
	for i, part := range strings.Split(s, ",") {
		text, raise := strings.CutPrefix(part, "+")
		k, n, why := parse(text)
		switch {
		case why != "":
			return bad("%q %s", part, why)
		case n < 0:
			return bad("%q is less than nothing", part)
		case n == 0:
			return bad("%q is nothing; leave out what has no limit", part)
		case i > 0 && raise != l.Raise:
			return bad("%q is a raise beside a limit", s)
		case *l.Of(k) != 0:
			return bad("%q limits %s twice", s, k)
		}
		l.Raise, *l.Of(k) = raise, n
	}
	return l, nil
}

// parse reads an amount with its unit; why says what is wrong with it.
func parse(s string) (k belay.BudgetKind, n int64, why string) {
	end := strings.LastIndexAny(s, "0123456789.") + 1
	scale := int64(1)
	switch s[end:] {
	case "usd":
		k, scale = belay.BudgetCost, 1_000_000
	case "mtok":
		k, scale = belay.BudgetTokens, 1_000_000
	case "ktok":
		k, scale = belay.BudgetTokens, 1000
	case "tok":
		k = belay.BudgetTokens
	case "calls", "call":
		k = belay.BudgetCalls
	case "h", "m", "s":
		d, err := time.ParseDuration(s)
		if err != nil || d%time.Second != 0 {
			return k, 0, "is no time of whole seconds"
		}
		return belay.BudgetTime, int64(d), ""
	case "":
		return k, 0, "has no unit"
	default:
		return k, 0, "has a unit that there isn't"
	}
	digits := strings.TrimPrefix(s[:end], "-")
	if rest := strings.Trim(digits, "0123456789"); rest != "" && rest != "." || strings.Trim(digits, ".") != digits || digits == "" {
		return k, 0, "has no plain number before its unit"
	}
	r, _ := new(big.Rat).SetString(s[:end])
	switch r.Mul(r, big.NewRat(scale, 1)); {
	case !r.IsInt():
		return k, 0, "is a fraction of the smallest unit"
	case r.Num().Cmp(big.NewInt(maxAmount)) > 0:
		return k, 0, "is too much"
	case r.Sign() < 0:
		return k, -1, ""
	}
	return k, r.Num().Int64(), ""
}
