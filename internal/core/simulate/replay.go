package simulate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// Change is a recorded decision that other rules would make differently.
type Change struct {
	Case *Case
	Row
	Cause string // rules; build: the rules of its day say the same today as the new ones
}

// Row counts changes that have tool, decisions and rules in common.
type Row struct {
	Tool    string          `json:"tool"`
	Old     policy.Decision `json:"old"`
	OldRule string          `json:"oldRule"`
	New     policy.Decision `json:"new"`
	NewRule string          `json:"newRule"`
}

// Counted is a row and how often it happened.
type Counted struct {
	Row
	Count int `json:"count"`
}

// Tally is the outcome of recorded decisions under other rules. Decisions is the
// sum of Same, OtherRule, Changed and Lost.
type Tally struct {
	Decisions int            `json:"decisions"`
	Same      int            `json:"same"`      // same decision by the same rule
	OtherRule int            `json:"otherRule"` // same decision by another rule
	Changed   int            `json:"changed"`
	Lost      map[string]int `json:"lost,omitempty"` // not judged again, by reason
	Others    int            `json:"others,omitempty"`
	rows      map[Row]int
}

// maxRows bounds the rows of a tally: names of tools come from models. Changes
// beyond are in Changed and in Others.
const maxRows = 10_000

// Take judges a recorded decision under a set and counts the result. It returns
// the change, or nil.
func (t *Tally) Take(c *Case, set *policy.Set) *Change {
	t.Decisions++
	if c.Lost != "" {
		if t.Lost == nil {
			t.Lost = map[string]int{}
		}
		t.Lost[c.Lost]++
		return nil
	}
	old, oldRule := c.RecordedDecision()
	v := policy.Evaluate(set, &c.Request)
	switch {
	case v.Decision == old && v.Rule == oldRule:
		t.Same++
		return nil
	case v.Decision == old:
		t.OtherRule++
		return nil
	}
	t.Changed++
	row := Row{c.Recorded.Tool, old, oldRule, v.Decision, v.Rule}
	ch := &Change{c, row, "rules"}
	if policy.Evaluate(c.Gate, &c.Request).Decision == v.Decision {
		ch.Cause = "build"
	}
	if t.rows == nil {
		t.rows = map[Row]int{}
	}
	if _, known := t.rows[row]; !known && len(t.rows) >= maxRows {
		t.Others++
		return ch
	}
	t.rows[row]++
	return ch
}

// Unjudged is how many decisions couldn't be made again.
func (t *Tally) Unjudged() (n int) {
	for _, k := range t.Lost {
		n += k
	}
	return n
}

// Rows are the changes, the most frequent first.
func (t *Tally) Rows() []Counted {
	out := make([]Counted, 0, len(t.rows))
	for r, n := range t.rows {
		out = append(out, Counted{r, n})
	}
	slices.SortFunc(out, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Tool, b.Tool), strings.Compare(a.OldRule, b.OldRule), strings.Compare(a.NewRule, b.NewRule), cmp.Compare(a.New, b.New))
	})
	return out
}

// Needed reports whether facts of a type say anything about what the gate is
// asked. What isn't known is needed.
func Needed(factType string) bool {
	switch factType {
	case "model.delta", "reasoning.delta", "reasoning.summary", "cost.recorded", "cost.estimated", "sandbox.applied", "sandbox.violation", "tool.progress", "tool.catalog.resolved",
		"permission.requested", "permission.resolved", "task.profile.resolved", "rate_limit.hit", "output.truncated", "output.spilled", "output.redacted", "process.started", "process.output",
		"process.input", "process.completed", "process.failed", "process.terminated", "runtime.warning":
		return false
	}
	return !strings.HasPrefix(factType, "routing.")
}
