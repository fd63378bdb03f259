// Package grant is the protocol by which a session lends its threads what they
// share: the workspace that they change, and the budget that they spend.
//
// A thread asks, the session gives, the thread gives back. The session may recall
// what it gave: then the thread gives back what it doesn't need at once. Each
// step is a fact of the sender, and a command to the other with it, so each side
// has a book of the same grants. A step is done once however often it is told,
// because a grant has an id. A grant ends by being given back, never by a timeout:
// the end of the work that took it gives it back, in the same append.
package grant

import (
	"slices"

	"github.com/belay-run/belay"
)

// Grant is one that was asked for. T is the type of the takers.
type Grant[T ~string] struct {
	ID      string `json:"id"`           // the taker's: unique among its own
	To      T      `json:"to,omitempty"` // the taker; empty in the taker's own book
	Given   bool   `json:"given,omitempty"`
	Refused bool   `json:"refused,omitempty"` // it can't be given as things are; it may be later

	Whole bool `json:"whole,omitempty"` // of the workspace: all of it

	Least    belay.Amounts `json:"least,omitzero"` // of a budget: without which it is of no use
	Most     belay.Amounts `json:"most,omitzero"`  // more isn't needed
	Amount   belay.Amounts `json:"amount,omitzero"`
	Recalled bool          `json:"recalled,omitempty"` // the taker was told to give it back; of a request: all that it has
	Waits    bool          `json:"waits,omitempty"`    // the taker keeps it until others end, or a person answers
	Priority int           `json:"priority,omitempty"`
	User     string        `json:"user,omitempty"` // of a quota: on whose account
}

// Book is grants of one kind, in the order in which they were asked for.
type Book[T ~string] []Grant[T]

// Find is a taker's grant by its id; nil: there is none.
func (b Book[T]) Find(to T, id string) *Grant[T] {
	if i := slices.IndexFunc(b, func(g Grant[T]) bool { return g.To == to && g.ID == id }); i >= 0 {
		return &b[i]
	}
	return nil
}

// Ask notes that a grant was asked for. Asking again changes nothing.
func (b *Book[T]) Ask(g Grant[T]) {
	if b.Find(g.To, g.ID) == nil {
		*b = append(*b, g)
	}
}

// Give notes that a grant was given, asked for or not.
func (b *Book[T]) Give(g Grant[T]) {
	b.Ask(g)
	have := b.Find(g.To, g.ID)
	have.Given, have.Refused, have.Amount = true, false, g.Amount
}

// Return removes a grant.
func (b *Book[T]) Return(to T, id string) {
	*b = slices.DeleteFunc(*b, func(g Grant[T]) bool { return g.To == to && g.ID == id })
}

// Close removes some of a taker's grants, but for an amount that belongs to one of
// them from now on; an empty id keeps none.
func (b *Book[T]) Close(to T, closed []string, id string, amount belay.Amounts) {
	*b = slices.DeleteFunc(*b, func(g Grant[T]) bool { return g.To == to && g.ID != id && slices.Contains(closed, g.ID) })
	if have := b.Find(to, id); have != nil {
		have.Amount = amount
	}
}

// Wait notes whether a taker keeps a grant until others end.
func (b *Book[T]) Wait(to T, id string, waits bool) {
	if have := b.Find(to, id); have != nil {
		have.Waits = waits
	}
}
