package catalog

import (
	"math/big"
	"time"

	"github.com/belay-run/belay"
)

// Prices are what a provider takes, in millionths of a US dollar for a million
// tokens: 2,000,000 is two dollars. A nil rate is not known.
type Prices struct {
	Rates
	Long  []Tier  `json:"long,omitempty"`  // of long requests, the shortest first
	Until string  `json:"until,omitempty"` // the last day on which they hold, in UTC: 2026-12-31; empty is until the data changes
	Next  *Prices `json:"next,omitempty"`  // what holds after that day; nil is not known
}

// Rates are the prices of one kind of request.
type Rates struct {
	Input      int64  `json:"input"`                // that is neither read from the provider's cache nor written to it
	Output     int64  `json:"output"`               // reasoning included
	CacheRead  *int64 `json:"cacheRead,omitempty"`  // input read from the cache
	CacheWrite *int64 `json:"cacheWrite,omitempty"` // input written to the cache
}

// Tier are the rates of a whole request whose input is longer than a number of tokens.
type Tier struct {
	Over int64 `json:"over"`
	Rates
}

// At are the prices that hold at a time; nil is not known.
func (p *Prices) At(t time.Time) *Prices {
	for p != nil && p.Until != "" && t.UTC().Format(time.DateOnly) > p.Until {
		p = p.Next
	}
	return p
}

// rates are those of a request with so many tokens of input.
func (p *Prices) rates(input int64) Rates {
	r := p.Rates
	for _, t := range p.Long {
		if input > t.Over {
			r = t.Rates
		}
	}
	return r
}

// Cost is what a request costs in millionths of a US dollar, rounded up. It is
// not ok, which is unknown and never zero, where the usage wasn't reported or is
// impossible, or where a price that it needs is not known.
func Cost(m Model, u belay.Usage, at time.Time) (microUSD int64, ok bool) {
	p := m.Prices.At(at)
	if p == nil || !u.Reported || u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.CacheWrite < 0 {
		return 0, false
	}
	r := p.rates(u.Input)
	if u.Cached > 0 && r.CacheRead == nil || u.CacheWrite > 0 && r.CacheWrite == nil {
		return 0, false
	}
	var sum big.Int // no product of tokens and rates is too large for it
	add := func(tokens, rate int64) {
		sum.Add(&sum, new(big.Int).Mul(big.NewInt(tokens), big.NewInt(rate)))
	}
	add(max(0, u.Input-u.Cached-u.CacheWrite), r.Input)
	add(u.Output, r.Output)
	if u.Cached > 0 {
		add(u.Cached, *r.CacheRead)
	}
	if u.CacheWrite > 0 {
		add(u.CacheWrite, *r.CacheWrite)
	}
	sum.Add(&sum, big.NewInt(perMillion-1)) // rounds up
	sum.Quo(&sum, big.NewInt(perMillion))
	return sum.Int64(), sum.Cmp(big.NewInt(maxCost)) <= 0
}

const (
	perMillion = 1_000_000
	maxCost    = 1 << 62
)
