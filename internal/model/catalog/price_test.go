package catalog

import (
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
	m := Model{Name: "m", Context: 1000, Prices: &Prices{
		Rates: Rates{Input: 2_000_000, Output: 10_000_000, CacheRead: rate(100_000), CacheWrite: rate(2_500_000)},
		Long:  []Tier{{1000, Rates{Input: 4_000_000, Output: 15_000_000}}},
		Until: "2026-12-31", Next: &Prices{Rates: Rates{Input: 3_000_000, Output: 3_000_000}},
	}}
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
		if got, ok := Cost(m, x.u, x.at); got != x.want || ok != x.ok {
			t.Errorf("%s: got %d %v, want %d %v", x.name, got, ok, x.want, x.ok)
		}
	}
	m.Prices.Next = nil
	if got, ok := Cost(m, belay.Usage{Reported: true}, ends.Add(time.Second)); ok || got != 0 {
		t.Errorf("a price that ended still counts: %d", got)
	}
	if got, ok := Cost(Model{}, belay.Usage{Reported: true}, day); ok || got != 0 {
		t.Errorf("an unknown price is %d", got)
	}
	free := Model{Prices: &Prices{}}
	if got, ok := Cost(free, belay.Usage{Input: 1 << 40, Output: 5, Reported: true}, day); !ok || got != 0 {
		t.Errorf("what is free costs %d, %v", got, ok)
	}
}

// What a request costs is what big numbers say, rounded up.
// Guarantee: M6.
func TestCostIsExact(t *testing.T) {
	c := open(t)
	var priced []Model
	for _, m := range c.Models("") {
		if m.Prices.At(day) != nil {
			priced = append(priced, m)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(priced).Draw(t, "model")
		u := belay.Usage{Reported: true, Input: rapid.Int64Range(0, 2_000_000).Draw(t, "input"), Output: rapid.Int64Range(0, m.Output).Draw(t, "output")}
		u.Cached = rapid.Int64Range(0, u.Input).Draw(t, "cached")
		r := m.Prices.At(day).rates(u.Input)
		if r.CacheWrite != nil {
			u.CacheWrite = rapid.Int64Range(0, u.Input-u.Cached).Draw(t, "written")
		}
		got, ok := Cost(m, u, day)
		if !ok {
			t.Fatalf("%s: no cost", m.Name)
		}
		sum := new(big.Int)
		add := func(n, rate int64) { sum.Add(sum, new(big.Int).Mul(big.NewInt(n), big.NewInt(rate))) }
		add(u.Input-u.Cached-u.CacheWrite, r.Input)
		add(u.Output, r.Output)
		add(u.Cached, *r.CacheRead)
		if r.CacheWrite != nil {
			add(u.CacheWrite, *r.CacheWrite)
		}
		want := new(big.Int).Div(new(big.Int).Add(sum, big.NewInt(999_999)), big.NewInt(1_000_000))
		if want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("%s: got %d, want %s", m.Name, got, want)
		}
	})
}

// Guarantee: M6.
func TestCostDoesNotOverflow(t *testing.T) {
	huge := int64(1) << 62
	m := Model{Output: huge, Prices: &Prices{Rates: Rates{Input: maxUSD * perMillion, Output: maxUSD * perMillion, CacheRead: rate(maxUSD * perMillion)}}}
	for _, n := range []int64{1, 1 << 20, 1 << 40, huge} {
		got, ok := Cost(m, belay.Usage{Input: n, Output: n, Reported: true}, day)
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(2*maxUSD))
		if ok != want.IsInt64() && ok || ok && want.Cmp(big.NewInt(got)) != 0 || got < 0 {
			t.Errorf("%d tokens: got %d, %v, want %s", n, got, ok, want)
		}
	}
}
