package event

import (
	"time"

	"github.com/belay-run/belay"
)

// LimitChanged moves budget: between scopes, or into one from outside.
type LimitChanged struct {
	fact
	Op      string    `json:"op"`                // set, granted, returned, reclaimed
	Kind    string    `json:"kind"`              // cost, tokens, time, calls, steps
	Scope   string    `json:"scope"`             // tenant, session, task, thread, turn
	GrantID string    `json:"grantId,omitempty"` // what is returned or reclaimed is what was granted
	From    string    `json:"from,omitempty"`    // the scope that gave it
	Amount  int64     `json:"amount"`            // in Unit
	Left    int64     `json:"left,omitempty"`
	Unit    string    `json:"unit"` // microUSD, token, ms, call, step
	Until   time.Time `json:"until,omitzero"`
	Reason  string    `json:"reason,omitempty"`
}

// Cost is an amount of money and what it is for.
type Cost struct {
	Amount   int64       `json:"amount"`   // millionths of the currency
	Currency string      `json:"currency"` // USD
	Provider string      `json:"provider,omitempty"`
	Model    string      `json:"model,omitempty"`
	Usage    belay.Usage `json:"usage,omitzero"`
	GrantID  string      `json:"grantId,omitempty"`
}

// CostSum is the known cost of answers. It is empty when no price is known,
// which isn't zero.
type CostSum struct {
	MicroUSD int64 `json:"microUsd,omitempty"` // millionths of a US dollar
	Priced   int   `json:"priced,omitempty"`   // answers whose price is known
	Unpriced int   `json:"unpriced,omitempty"` // answers whose price isn't
}

// Add is the sum of two.
func (c CostSum) Add(d CostSum) CostSum {
	return CostSum{c.MicroUSD + d.MicroUSD, c.Priced + d.Priced, c.Unpriced + d.Unpriced}
}

// State is known, at_least or unknown.
func (c CostSum) State() string {
	switch {
	case c.Priced == 0:
		return "unknown"
	case c.Unpriced > 0:
		return "at_least"
	}
	return "known"
}

// CostEstimated reserves the likely cost of a request.
type CostEstimated struct {
	fact
	Cost
}

// CostRecorded is what a request cost.
type CostRecorded struct {
	fact
	Cost
	Source string `json:"source"` // reported, computed, estimated
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
	Kind  string    `json:"kind"` // cost, tokens, time, calls, steps
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
