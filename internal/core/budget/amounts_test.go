package budget

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

func TestParse(t *testing.T) {
	hours := belay.Duration(4 * time.Hour)
	for _, x := range []struct {
		in   string
		want Limit
		form string // empty: as it was written
	}{
		{"2usd,500ktok,300calls,4h", Limit{Amounts: belay.Amounts{MicroUSD: 2_000_000, Tokens: 500_000, Calls: 300, Time: hours}}, ""},
		{"4h,300calls,500ktok,2usd", Limit{Amounts: belay.Amounts{MicroUSD: 2_000_000, Tokens: 500_000, Calls: 300, Time: hours}}, "2usd,500ktok,300calls,4h"},
		{"0.5usd", Limit{Amounts: belay.Amounts{MicroUSD: 500_000}}, "0.50usd"},
		{"2.50usd", Limit{Amounts: belay.Amounts{MicroUSD: 2_500_000}}, ""},
		{"0.000001usd", Limit{Amounts: belay.Amounts{MicroUSD: 1}}, ""},
		{"10usd", Limit{Amounts: belay.Amounts{MicroUSD: 10_000_000}}, ""},
		{"1mtok", Limit{Amounts: belay.Amounts{Tokens: 1_000_000}}, ""},
		{"1.5mtok", Limit{Amounts: belay.Amounts{Tokens: 1_500_000}}, "1500ktok"},
		{"20tok", Limit{Amounts: belay.Amounts{Tokens: 20}}, ""},
		{"1call", Limit{Amounts: belay.Amounts{Calls: 1}}, ""},
		{"1calls", Limit{Amounts: belay.Amounts{Calls: 1}}, "1call"},
		{"+1call,+2ktok", Limit{Amounts: belay.Amounts{Calls: 1, Tokens: 2000}, Raise: true}, "+2ktok,+1call"},
		{"21calls", Limit{Amounts: belay.Amounts{Calls: 21}}, ""},
		{"90m", Limit{Amounts: belay.Amounts{Time: belay.Duration(90 * time.Minute)}}, "1h30m"},
		{"1h0m5s", Limit{Amounts: belay.Amounts{Time: belay.Duration(time.Hour + 5*time.Second)}}, ""},
		{"+5usd", Limit{Amounts: belay.Amounts{MicroUSD: 5_000_000}, Raise: true}, ""},
		{"+5usd,+100ktok", Limit{Amounts: belay.Amounts{MicroUSD: 5_000_000, Tokens: 100_000}, Raise: true}, ""},
	} {
		if got, err := Parse(x.in); err != nil || got != x.want {
			t.Errorf("%s: got %+v, %v, want %+v", x.in, got, err, x.want)
		} else if form := got.String(); form != x.form && (x.form != "" || form != x.in) {
			t.Errorf("%s prints as %s", x.in, form)
		}
	}
	for in, want := range map[string]string{
		"5":                                `"5" has no unit`,
		"":                                 `"" has no unit`,
		"2usd,":                            `"" has no unit`,
		"1h30":                             `"1h30" has no unit`,
		"-1usd":                            `"-1usd" is less than nothing`,
		"-4h":                              `"-4h" is less than nothing`,
		"1e99usd":                          `"1e99usd" has no plain number`,
		"1/2usd":                           `"1/2usd" has no plain number`,
		"0x1usd":                           `"0x1usd" has no plain number`,
		"usd":                              `"usd" has no plain number`,
		".5usd":                            `".5usd" has no plain number`,
		"5.usd":                            `"5.usd" has no plain number`,
		"1.2.3usd":                         `"1.2.3usd" has no plain number`,
		"--1usd":                           `"--1usd" has no plain number`,
		"++1usd":                           `"++1usd" has no plain number`,
		" 1usd":                            `" 1usd" has no plain number`,
		"5eur":                             `"5eur" has a unit that there isn't`,
		"5 usd":                            `"5 usd" has a unit that there isn't`,
		"5USD":                             `"5USD" has a unit that there isn't`,
		"0usd":                             `"0usd" is nothing`,
		"0h":                               `"0h" is nothing`,
		"0.0000001usd":                     `"0.0000001usd" is a fraction`,
		"0.5calls":                         `"0.5calls" is a fraction`,
		"0.5s":                             `"0.5s" is no time of whole seconds`,
		"9999999999h":                      `"9999999999h" is no time`,
		"1000000001usd":                    `"1000000001usd" is too much`,
		"2usd,3usd":                        `"2usd,3usd" limits cost twice`,
		"2usd,4h,90m":                      `"2usd,4h,90m" limits time twice`,
		"2usd,+1mtok":                      `is a raise beside a limit`,
		"+2usd,1mtok":                      `is a raise beside a limit`,
		strings.Repeat("1", 99) + "calls":  `104 bytes`,
		strings.Repeat("1", 80) + ".00usd": `is too much`,
		"9223372036854775808tok":           `is too much`,
		"2usd;4h":                          `is no time`,
		"1usd\n":                           `has a unit that there isn't`,
	} {
		got, err := Parse(in)
		if err == nil || belay.CodeOf(err) != belay.CodeUsage || !strings.Contains(err.Error(), want) || got != (Limit{}) {
			t.Errorf("%q: got %+v, %v, want %s", in, got, err, want)
		}
	}
}

// What is read prints as a form that reads as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"2usd,500ktok,300calls,4h", "+0.000001usd,+1mtok", "1h0m5s", "1e99usd", "0x1usd", "1000000000usd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := Parse(s)
		if err != nil {
			return
		}
		for _, k := range belay.BudgetKinds() {
			if n := *l.Of(k); n < 0 {
				t.Errorf("%q: %s is %d", s, k, n)
			}
		}
		if again, err := Parse(l.String()); err != nil || again != l {
			t.Errorf("%q is %+v and prints as %q, which is %+v, %v", s, l, l, again, err)
		}
	})
}

// Sums and differences are those of big numbers, at most what fits.
func TestAmountsSaturate(t *testing.T) {
	number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64}))
	fits := func(n *big.Int) int64 {
		switch {
		case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
			return math.MaxInt64
		case n.Cmp(big.NewInt(math.MinInt64)) < 0:
			return math.MinInt64
		}
		return n.Int64()
	}
	rapid.Check(t, func(t *rapid.T) {
		var a, b belay.Amounts
		for _, k := range belay.BudgetKinds() {
			*a.Of(k), *b.Of(k) = number.Draw(t, "a"), number.Draw(t, "b")
		}
		sum, diff, covers := a.Add(b), a.Sub(b), true
		for _, k := range belay.BudgetKinds() {
			x, y := big.NewInt(*a.Of(k)), big.NewInt(*b.Of(k))
			covers = covers && x.Cmp(y) >= 0
			if want := fits(new(big.Int).Add(x, y)); *sum.Of(k) != want {
				t.Errorf("%s: %d + %d is %d, want %d", k, x, y, *sum.Of(k), want)
			}
			if want := fits(new(big.Int).Sub(x, y)); *diff.Of(k) != want {
				t.Errorf("%s: %d - %d is %d, want %d", k, x, y, *diff.Of(k), want)
			}
		}
		if a.Covers(b) != covers {
			t.Errorf("%+v covers %+v: %v", a, b, !covers)
		}
	})
}

func TestLimit(t *testing.T) {
	limit := func(s string) (l Limit) {
		l, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, x := range []struct{ set, over, want string }{
		{"3usd", "2usd,4h", "3usd,4h"},
		{"+3usd", "2usd,4h", "5usd,4h"},
		{"+3usd,+10calls", "2usd", "5usd"}, // calls have no limit, and keep none
		{"1mtok", "2usd", "2usd,1mtok"},
	} {
		if got := limit(x.set).Over(limit(x.over).Amounts).String(); got != x.want {
			t.Errorf("%s over %s is %s, want %s", x.set, x.over, got, x.want)
		}
	}
}

func TestAllocate(t *testing.T) {
	got := Allocate(100, []Request{{"low", 1, 10, 50}, {"high", 3, 10, 60}, {"big", 2, 50, 90}, {"also low", 1, 0, 50}})
	want := []Share{{"low", 40}, {"high", 60}, {"big", 0}, {"also low", 0}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// The shares are never more than the total, and each is of use or nothing; who gets
// nothing would not have fitted after those before it.
func TestAllocateProperties(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(-10, 1000), rapid.Int64())
	requests := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Request {
		return Request{ID: rapid.String().Draw(t, "id"), Priority: rapid.IntRange(0, 3).Draw(t, "priority"), Min: amount.Draw(t, "min"), Optimal: amount.Draw(t, "optimal")}
	}))
	rapid.Check(t, func(t *rapid.T) {
		total, all := amount.Draw(t, "total"), requests.Draw(t, "requests")
		shares, left := Allocate(total, all), max(0, total)
		for p := 3; p >= 0; p-- {
			for i, r := range all {
				if r.Priority != p {
					continue
				}
				n := shares[i].Amount
				if shares[i].ID != r.ID || n < 0 || n > left || n > max(0, r.Min, r.Optimal) || n > 0 && n < r.Min {
					t.Errorf("of %d left %+v gets %+v", left, r, shares[i])
				}
				if want := min(left, max(0, r.Min, r.Optimal)); n != want && want >= r.Min {
					t.Errorf("of %d left %+v gets %+v, want %d", left, r, shares[i], want)
				}
				left -= n
			}
		}
	})
}
