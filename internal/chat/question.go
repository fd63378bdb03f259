package chat

import (
	"fmt"
	"strconv"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
)

// unnoticed is how long a question takes no keys after it was drawn: they were meant
// for what was there before.
const unnoticed = 400 * time.Millisecond

// question is the one on the screen.
type question struct {
	block.Preview
	printed bool               // else its text is drawn with its choices
	budget  *event.BudgetAsked // of a question about a budget: what a yes raises it by
	of      int                // how many wait
	alike   int                // of other agents that ask the same
	drawn   time.Time
	direct  bool // Tab was pressed: the next key is for it, whatever is composed
}

// choice is a key that a question takes, and what it does.
type choice struct{ key, label string }

// takes reports whether keys are for the question now.
func (q *question) takes(now time.Time, composed bool) bool {
	return q.direct || !composed && now.Sub(q.drawn) >= unnoticed
}

// choices are the keys that answer it, in the order in which they are shown.
func (q *question) choices() []choice {
	no, explain := choice{"n", "no, and say why"}, choice{"?", "explain"}
	switch q.Kind {
	case "question":
		var all []choice
		for i, o := range q.Options[:min(len(q.Options), 9)] {
			all = append(all, choice{strconv.Itoa(i + 1), block.Line(o)})
		}
		all = append(all, choice{"t", "type an answer"})
		if q.alike > 0 {
			all = append(all, choice{"l", fmt.Sprintf("type one for all %d that ask it", q.alike+1)})
		}
		return append(all, choice{"n", "give no answer"})
	case "form":
		return []choice{{"t", "type the fields, as a JSON object"}, {"n", "decline"}}
	case "budget":
		raise := "raise it"
		if q.budget != nil {
			raise += " by " + q.budget.Raise.String()
		}
		return []choice{{"y", raise}, {"+", "by another amount"}, {"n", "no"}}
	case "continue":
		return []choice{{"y", "go on"}, {"n", "no"}}
	case "acceptance":
		return []choice{{"y", "yes, it is done"}, no}
	}
	all := []choice{{"y", "once"}}
	if q.Wider {
		all[0].label = "run it again"
	}
	if q.alike > 0 && !q.Wider {
		all = append(all, choice{"l", fmt.Sprintf("once for all %d that ask it", q.alike+1)})
	}
	command := q.Shows == block.PreviewCommand
	prefix, session := q.Offer("prefix"), q.Offer("session")
	switch {
	case prefix == nil, session != nil && session.Covers == prefix.Covers:
	case command:
		all = append(all, choice{"a", prefix.What(q.Tool, command)})
	default:
		all = append(all, choice{"a", prefix.What(q.Tool, command) + ", this session"})
	}
	if session != nil {
		all = append(all, choice{"s", session.What(q.Tool, command) + ", this session"})
	}
	if len(q.Taint) > 0 {
		all = append(all, choice{"t", "trust what was read, and allow it once"})
	}
	if !q.Wider {
		all = append(all, choice{"e", "edit"})
	}
	return append(all, no, explain)
}

// choose returns the choice of a key; false: the key answers nothing.
func (q *question) choose(key string) (choice, bool) {
	for _, c := range q.choices() {
		if c.key == key {
			return c, true
		}
	}
	return choice{}, false
}

// lines are the choices as they are drawn.
func (q *question) lines(l look, width int) []string {
	var parts []string
	for i, c := range q.choices() {
		key := c.key
		if l.ScreenReader && q.Kind != "question" {
			key = fmt.Sprintf("%d or %s", i+1, key)
		}
		parts = append(parts, l.key(key)+" "+c.label)
	}
	if q.of > 1 {
		parts = append(parts, l.dim(fmt.Sprintf("1 of %d", q.of)))
	}
	if q.Kind == "question" || q.Kind == "form" || l.ScreenReader {
		for i := range parts {
			parts[i] = "  " + parts[i]
		}
		return parts
	}
	return l.flow("  ", parts, l.pick(" · ", " | "), width)
}
