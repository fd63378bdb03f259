package belay

// ContextUse is how much of what a model was given it used, as far as its answers
// show: a lower bound. An item is the result of a call, or a chunk of a long text.
type ContextUse struct {
	Given   int64       `json:"given"`             // tokens of all items
	Cited   int64       `json:"cited"`             // tokens of those that an answer or an argument cites
	Uncited []GivenItem `json:"uncited,omitempty"` // the largest of the others
	Newest  int         `json:"newest,omitempty"`  // threads that were looked at, if there are more
}

// GivenItem is something that a model was given.
type GivenItem struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

// Bounds of a use that is told.
const (
	LeastGiven = 5000 // tokens; what is less says nothing
	LowUse     = 0.5  // below it the largest uncited items are named
	MaxUncited = 3
)

// Efficiency is the share of what was given that was cited; false: too little was given
// to know.
func (u ContextUse) Efficiency() (float64, bool) {
	if u.Given < LeastGiven {
		return 0, false
	}
	return float64(u.Cited) / float64(u.Given), true
}
