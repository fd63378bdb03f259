package budget

import (
	"cmp"
	"slices"
)

// Request is what one asks for of a total.
type Request struct {
	ID       string
	Priority int   // the higher one is served first; of two that are equal the first
	Min      int64 // less is of no use
	Optimal  int64 // more isn't needed
}

// Share is what one gets.
type Share struct {
	ID     string
	Amount int64
}

// Allocate shares a total by priority: each gets what is optimal if it fits, else
// the rest if that is enough, else nothing. The shares are in the order of the
// requests.
func Allocate(total int64, requests []Request) []Share {
	order := make([]int, len(requests))
	shares := make([]Share, len(requests))
	for i, r := range requests {
		order[i], shares[i].ID = i, r.ID
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(requests[b].Priority, requests[a].Priority) })
	for _, i := range order {
		r := requests[i]
		if n := min(total, max(r.Min, r.Optimal)); n > 0 && n >= r.Min {
			shares[i].Amount = n
			total -= n
		}
	}
	return shares
}
