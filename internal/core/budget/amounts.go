package budget

import (
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Amounts are what was, or may be, used of each kind. Sums and differences
// saturate.
type Amounts struct {
	MicroUSD int64          `json:"microUsd,omitempty"` // millionths of a US dollar
	Tokens   int64          `json:"tokens,omitempty"`
	Calls    int64          `json:"calls,omitempty"` // of tools
	Time     belay.Duration `json:"time,omitempty"`
}

// Kind is a kind of amount, as facts name it.
type Kind string

// The kinds, in the order in which amounts are shown.
const (
	Cost   Kind = "cost"
	Tokens Kind = "tokens"
	Calls  Kind = "calls"
	Time   Kind = "time"
)

// Kinds are all kinds.
func Kinds() [4]Kind { return [...]Kind{Cost, Tokens, Calls, Time} }

// Of is the amount of one kind; that of Time is in nanoseconds.
func (a *Amounts) Of(k Kind) *int64 {
	switch k {
	case Cost:
		return &a.MicroUSD
	case Tokens:
		return &a.Tokens
	case Calls:
		return &a.Calls
	}
	return (*int64)(&a.Time)
}

// merge is f of each kind.
func (a Amounts) merge(b Amounts, f func(x, y int64) int64) Amounts {
	for _, k := range Kinds() {
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

// String is the form that Parse reads, of the kinds that aren't zero.
func (a Amounts) String() string {
	var parts []string
	for _, k := range Kinds() {
		if n := *a.Of(k); n != 0 {
			parts = append(parts, k.text(n))
		}
	}
	return strings.Join(parts, ",")
}

// text is an amount with its unit: the largest of which it is a whole number.
func (k Kind) text(n int64) string {
	switch k {
	case Cost:
		s := strings.TrimRight(big.NewRat(n, perMillion).FloatString(6), "0")
		if point := strings.IndexByte(s, '.'); len(s)-point == 2 {
			s += "0" // 2.50usd
		}
		return strings.TrimSuffix(s, ".") + "usd"
	case Tokens:
		switch {
		case n%1_000_000 == 0:
			return big.NewInt(n/1_000_000).String() + "mtok"
		case n%1000 == 0:
			return big.NewInt(n/1000).String() + "ktok"
		}
		return big.NewInt(n).String() + "tok"
	case Calls:
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

// Limit is how much may be used of some kinds. A kind that is zero has no limit.
type Limit struct {
	Amounts
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
func (l Limit) Over(old Limit) Limit {
	old.Amounts = old.merge(l.Amounts, func(was, n int64) int64 {
		switch {
		case n == 0 || l.Raise && was == 0:
			return was
		case l.Raise:
			return add(was, n)
		}
		return n
	})
	return old
}

// Left is how much may still be used after some was: less than nothing if it was too
// much, and of a kind without a limit as much as there can be.
func (l Limit) Left(used Amounts) Amounts {
	left := l.Sub(used)
	for _, k := range Kinds() {
		if *l.Of(k) == 0 {
			*left.Of(k) = math.MaxInt64
		}
	}
	return left
}

const (
	parseHint  = "such as 2usd,500ktok,300calls,4h; +5usd raises a limit that there is"
	maxAmount  = 1_000_000_000_000_000 // a thousand million dollars
	maxWritten = 100                   // bytes of a limit
)

// Parse reads a limit such as "2usd,500ktok,300calls,4h", or a raise such as "+5usd".
// Its units are usd, tok, ktok, mtok, calls, and h, m and s. An error is a
// belay.Error with CodeUsage.
func Parse(s string) (Limit, error) {
	bad := func(format string, args ...any) (Limit, error) {
		return Limit{}, belay.Errorf(belay.CodeUsage, "budget: "+format, args...).WithHint(parseHint)
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
func parse(s string) (k Kind, n int64, why string) {
	end := strings.LastIndexAny(s, "0123456789.") + 1
	scale := int64(1)
	switch s[end:] {
	case "usd":
		k, scale = Cost, perMillion
	case "mtok":
		k, scale = Tokens, 1_000_000
	case "ktok":
		k, scale = Tokens, 1000
	case "tok":
		k = Tokens
	case "calls":
		k = Calls
	case "h", "m", "s":
		d, err := time.ParseDuration(s)
		if err != nil || d%time.Second != 0 {
			return k, 0, "is no time of whole seconds"
		}
		return Time, int64(d), ""
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
