package price

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

var day = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func rate(v int64) *int64 { return &v }

// Guarantee: M1.
func TestCost(t *testing.T) {
	p := &List{
		Rates: Rates{Input: 2_000_000, Output: 10_000_000, CacheRead: rate(100_000), CacheWrite: rate(2_500_000)},
		Long:  []Tier{{1000, Rates{Input: 4_000_000, Output: 15_000_000}}},
		Until: "2026-12-31", Next: &List{Rates: Rates{Input: 3_000_000, Output: 3_000_000}},
	}
	ends := time.Date(2027, 1, 1, 0, 59, 59, 0, time.FixedZone("", 3600)) // the last second of 2026
	for _, x := range []struct {
		name string
		u    belay.Usage
		at   time.Time
		want int64
		ok   bool
	}{
		{"plain", belay.Usage{Input: 1000, Output: 100, Reported: true}, day, 2000 + 1000, true},
		{"cached and written", belay.Usage{Input: 1000, Cached: 600, CacheWrite: 300, Output: 0, Reported: true}, day, 200 + 60 + 750, true},
		{"rounded up", belay.Usage{Input: 1, Cached: 1, Reported: true}, day, 1, true},
		{"reasoning is part of the answer", belay.Usage{Output: 10, Reasoning: 9, Reported: true}, day, 100, true},
		{"nothing", belay.Usage{Reported: true}, day, 0, true},
		{"a long request is dearer as a whole", belay.Usage{Input: 1001, Output: 1, Reported: true}, day, 4004 + 15, true},
		{"a long request whose cache has no price", belay.Usage{Input: 1001, Cached: 1, Reported: true}, day, 0, false},
		{"more cached than asked", belay.Usage{Input: 1, Cached: 1000, Reported: true}, day, 100, true},
		{"not reported", belay.Usage{Input: 1000}, day, 0, false},
		{"negative", belay.Usage{Input: -1, Reported: true}, day, 0, false},
		{"the last moment of the old price", belay.Usage{Input: 1, Reported: true}, ends, 2, true},
		{"the first of the new", belay.Usage{Input: 1, Reported: true}, ends.Add(time.Second), 3, true},
	} {
		if got, ok := p.Cost(x.u, x.at); got != x.want || ok != x.ok {
			t.Errorf("%s: got %d %v, want %d %v", x.name, got, ok, x.want, x.ok)
		}
	}
	p.Next = nil
	if got, ok := p.Cost(belay.Usage{Reported: true}, ends.Add(time.Second)); ok || got != 0 {
		t.Errorf("a price that ended still counts: %d", got)
	}
	if got, ok := (*List)(nil).Cost(belay.Usage{Reported: true}, day); ok || got != 0 {
		t.Errorf("an unknown price is %d", got)
	}
	if got, ok := new(List).Cost(belay.Usage{Input: 1 << 40, Output: 5, Reported: true}, day); !ok || got != 0 {
		t.Errorf("what is free costs %d, %v", got, ok)
	}
}

// drawPrices are any prices: with and without those of caches, of long requests, and
// of the days that follow.
func drawPrices(t *rapid.T, day int) *List {
	price := rapid.Int64Range(0, maxRate)
	maybe := rapid.Ptr(price, true)
	rates := rapid.Custom(func(t *rapid.T) Rates {
		return Rates{Input: price.Draw(t, "in"), Output: price.Draw(t, "out"), CacheRead: maybe.Draw(t, "read"), CacheWrite: maybe.Draw(t, "write")}
	})
	p := &List{Rates: rates.Draw(t, "rates")}
	for over := range rapid.IntRange(0, 3).Draw(t, "tiers") {
		p.Long = append(p.Long, Tier{int64(over+1) * 100_000, rates.Draw(t, "tier")})
	}
	if day < 24 && rapid.Bool().Draw(t, "ends") {
		p.Until = time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		if rapid.Bool().Draw(t, "next") {
			p.Next = drawPrices(t, day+1)
		}
	}
	return p
}

// drawUsage is what a request with at most so many tokens may be reported as.
func drawUsage(t *rapid.T, input, output int64) belay.Usage {
	u := belay.Usage{Reported: true, Input: rapid.Int64Range(0, input).Draw(t, "input"), Output: rapid.Int64Range(0, output).Draw(t, "output")}
	if rapid.Bool().Draw(t, "caches") {
		u.Cached = rapid.Int64Range(0, u.Input).Draw(t, "cached")
		u.CacheWrite = rapid.Int64Range(0, u.Input-u.Cached).Draw(t, "written")
	}
	return u
}

// What a request costs is what big numbers say, rounded up.
// Guarantee: M6.
func TestCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, u := drawPrices(t, 24), drawUsage(t, 2_000_000, 2_000_000)
		r := p.Rates
		if u.Input > 100_000 && len(p.Long) > 0 {
			r = p.Long[min((u.Input-1)/100_000, int64(len(p.Long)))-1].Rates
		}
		known := (u.Cached == 0 || r.CacheRead != nil) && (u.CacheWrite == 0 || r.CacheWrite != nil)
		got, ok := p.Cost(u, day)
		if ok != known {
			t.Fatalf("known is %v, want %v", ok, known)
		}
		if !known {
			return
		}
		sum := new(big.Int)
		add := func(n, rate int64) { sum.Add(sum, new(big.Int).Mul(big.NewInt(n), big.NewInt(rate))) }
		add(u.Input-u.Cached-u.CacheWrite, r.Input)
		add(u.Output, r.Output)
		if u.Cached > 0 {
			add(u.Cached, *r.CacheRead)
		}
		if u.CacheWrite > 0 {
			add(u.CacheWrite, *r.CacheWrite)
		}
		want := new(big.Int).Div(new(big.Int).Add(sum, big.NewInt(999_999)), big.NewInt(1_000_000))
		if want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("got %d, want %s", got, want)
		}
	})
}

// No request that stays within its tokens costs more than the bound that was said
// before it, whichever of its tiers it falls in, what it reads from a cache or
// writes to one, and when within a day it is answered.
func TestBoundIsTheMostThatARequestCosts(t *testing.T) {
	tokens := rapid.OneOf(rapid.Int64Range(0, 1_000_000), rapid.Int64Range(0, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		p, input, output := drawPrices(t, 20), tokens.Draw(t, "most input"), tokens.Draw(t, "most output")
		at := day.Add(time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "at")))
		bound, ok := p.Bound(input, output, at)
		if want := p.At(at) != nil; ok != want {
			t.Fatalf("known is %v, want %v", ok, want)
		}
		answered := at.Add(time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "took")))
		cost, known := p.Cost(drawUsage(t, input, output), answered)
		if ok && known && cost > bound || bound < 0 {
			t.Fatalf("it costs %d, the bound is %d", cost, bound)
		}
	})
}

func TestBound(t *testing.T) {
	p := &List{
		Rates: Rates{Input: 2_000_000, Output: 10_000_000, CacheRead: rate(100_000), CacheWrite: rate(2_500_000)},
		Long:  []Tier{{1000, Rates{Input: 4_000_000, Output: 15_000_000}}},
		Until: "2026-11-22", Next: &List{Rates: Rates{Input: 5_000_000}, Until: "2026-11-23"},
	}
	for _, x := range []struct {
		name          string
		input, output int64
		at            time.Time
		want          int64
		ok            bool
	}{
		{"written to the cache", 1000, 100, day, 2500 + 1000, true},
		{"long", 1001, 100, day, 4004 + 1500, true},
		{"the next price is dearer for input, this one for output", 1000, 100, day.AddDate(0, 0, 1), 5000 + 1000, true},
		{"nothing is known of the next day", 1000, 100, day.AddDate(0, 0, 2), 5000, true},
		{"they have ended", 1000, 100, day.AddDate(0, 0, 3), 0, false},
		{"rounded up", 1, 0, day, 3, true},
		{"negative is nothing", -1, -1, day, 0, true},
		{"it doesn't wrap", math.MaxInt64, math.MaxInt64, day, maxCost, true},
	} {
		if got, ok := p.Bound(x.input, x.output, x.at); got != x.want || ok != x.ok {
			t.Errorf("%s: got %d %v, want %d %v", x.name, got, ok, x.want, x.ok)
		}
	}
	if got, ok := (*List)(nil).Bound(1, 1, day); ok || got != 0 {
		t.Errorf("unknown prices have the bound %d", got)
	}
}

// maxRate is the dearest that a file may say: a million dollars for a million tokens.
const maxRate = 1_000_000 * perMillion

// Guarantee: M6.
func TestCostDoesNotOverflow(t *testing.T) {
	huge := int64(1) << 62
	p := &List{Rates: Rates{Input: maxRate, Output: maxRate}}
	for _, n := range []int64{1, 1 << 20, 1 << 40, huge} {
		got, ok := p.Cost(belay.Usage{Input: n, Output: n, Reported: true}, day)
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(2*maxRate/perMillion))
		if ok != (want.Cmp(big.NewInt(maxCost)) <= 0) || ok && want.Cmp(big.NewInt(got)) != 0 || got < 0 {
			t.Errorf("%d tokens: got %d, %v, want %s", n, got, ok, want)
		}
	}
}
