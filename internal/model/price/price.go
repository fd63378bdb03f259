// Package price says what requests cost, and what they can cost at most, by the
// prices of their model. It is exact and it saturates: no number of tokens makes a
// sum wrap.
package price

import (
	"math/big"
	"time"

	"github.com/belay-run/belay"
)

// List is what a provider takes for a model, in millionths of a US dollar for a million
// tokens: 2,000,000 is two dollars. A nil rate is not known.
type List struct {
	Rates
	Long  []Tier `json:"long,omitempty"`  // of long requests, the shortest first
	Until string `json:"until,omitempty"` // the last day on which they hold, in UTC: 2026-12-31; empty is until the data changes
	Next  *List  `json:"next,omitempty"`  // what holds after that day; nil is not known
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
func (p *List) At(t time.Time) *List {
	for p != nil && p.Until != "" && t.UTC().Format(time.DateOnly) > p.Until {
		p = p.Next
	}
	return p
}

// rates are those of a request with so many tokens of input.
func (p *List) rates(input int64) Rates {
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
func (p *List) Cost(u belay.Usage, at time.Time) (microUSD int64, ok bool) {
	p = p.At(at)
	if p == nil || !u.Reported || u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.CacheWrite < 0 {
		return 0, false
	}
	r := p.rates(u.Input)
	if u.Cached > 0 && r.CacheRead == nil || u.CacheWrite > 0 && r.CacheWrite == nil {
		return 0, false
	}
	s := sum{{max(0, u.Input-u.Cached-u.CacheWrite), r.Input}, {u.Output, r.Output}}
	if u.Cached > 0 {
		s = append(s, part{u.Cached, *r.CacheRead})
	}
	if u.CacheWrite > 0 {
		s = append(s, part{u.CacheWrite, *r.CacheWrite})
	}
	return s.microUSD()
}

// Bound is the most that a request can cost that is answered within a day and has
// at most so many tokens of input and output, at the dearest of the rates that
// may apply to it. It is not ok where the prices are not known.
func (p *List) Bound(input, output int64, at time.Time) (microUSD int64, ok bool) {
	if p.At(at) == nil {
		return 0, false
	}
	var in, out int64
	for _, p := range []*List{p.At(at), p.At(at.Add(24 * time.Hour))} {
		if p == nil {
			continue // what it costs then isn't known; what it costs now is
		}
		for _, t := range append([]Tier{{Over: -1, Rates: p.Rates}}, p.Long...) {
			if t.Over >= input {
				continue
			}
			in, out = max(in, t.Input), max(out, t.Output)
			for _, cache := range []*int64{t.CacheRead, t.CacheWrite} {
				if cache != nil {
					in = max(in, *cache)
				}
			}
		}
	}
	most, _ := sum{{max(0, input), in}, {max(0, output), out}}.microUSD()
	return most, true
}

// sum is a list of tokens with their rates.
type sum []part

type part struct{ tokens, rate int64 }

// microUSD is what all parts cost, rounded up; a sum that is too large is maxCost
// and not ok.
func (s sum) microUSD() (int64, bool) {
	var all big.Int // no product of tokens and rates is too large for it
	for _, p := range s {
		all.Add(&all, new(big.Int).Mul(big.NewInt(p.tokens), big.NewInt(p.rate)))
	}
	all.Add(&all, big.NewInt(perMillion-1)) // rounds up
	all.Quo(&all, big.NewInt(perMillion))
	if all.Cmp(big.NewInt(maxCost)) > 0 {
		return maxCost, false
	}
	return all.Int64(), true
}

const (
	perMillion = 1_000_000
	maxCost    = 1 << 62
)
