package chat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
)

// asked is a question that waits, as listActions tells it.
type asked struct {
	ID       belay.ActionID     `json:"actionId"`
	Version  string             `json:"version"`
	Kind     string             `json:"kind"`
	Session  belay.SessionID    `json:"sessionId"`
	Tool     string             `json:"tool"`
	Args     json.RawMessage    `json:"args"`
	Shown    string             `json:"shown"`
	Again    *event.Again       `json:"again"`
	Budget   *event.BudgetAsked `json:"budget"`
	Boundary string             `json:"boundary"`
	Tags     []string           `json:"tags"`
	Taint    []string           `json:"taint"`
	Prompt   string             `json:"prompt"`
}

// unnoticed is how long a question doesn't take keys after it was drawn: they were
// meant for what was there before.
const unnoticed = 400 * time.Millisecond

// question is the one on the screen. It has been printed whole; its choices are drawn.
type question struct {
	asked
	preview preview
	number  int // among those that wait, from 1
	of      int
	drawn   time.Time
	direct  bool     // Tab was pressed: the next key is for it, whatever the composer has
	options []string // to choose from, of an agent's question
}

// choice is a key that a question takes, and what it does.
type choice struct{ key, label string }

// newQuestion is a question as it is shown from now on.
func newQuestion(a asked, p preview, number, of int, now time.Time) *question {
	q := &question{asked: a, preview: p, number: number, of: of, drawn: now}
	var args struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
	}
	if a.Kind == "question" && json.Unmarshal(a.Args, &args) == nil {
		q.options = args.Options
		if args.Question != "" {
			q.Prompt = args.Question
		}
	}
	return q
}

// takes reports whether a key is for the question.
func (q *question) takes(now time.Time, composed bool) bool {
	return q.direct || !composed && now.Sub(q.drawn) >= unnoticed
}

// choices are the keys that answer it, in the order in which they are shown.
func (q *question) choices() []choice {
	switch q.Kind {
	case "question":
		var all []choice
		for i, o := range q.options {
			all = append(all, choice{strconv.Itoa(i + 1), block.Line(o)})
		}
		return append(all, choice{"t", "type an answer"}, choice{"n", "no answer"})
	case "budget":
		raise := "raise it"
		if q.Budget != nil {
			raise += " by " + q.Budget.Raise.String()
		}
		return []choice{{"y", raise}, {"+", "another amount"}, {"n", "no"}}
	case "continue":
		return []choice{{"y", "go on"}, {"n", "no"}}
	}
	if q.preview.Wider {
		return []choice{{"y", "run it again"}, {"a", "exactly this call, this session"}, {"n", "no, and say why"}, {"?", "explain"}}
	}
	all := []choice{{"y", "once"}}
	switch scope := q.preview.Scope; {
	case scope == "":
	case q.preview.Command:
		all = append(all, choice{"a", fmt.Sprintf("commands that begin with %q", scope)})
	default:
		all = append(all, choice{"a", scope + ", this session"})
	}
	return append(all, choice{"s", "every call of " + q.Tool + ", this session"}, choice{"e", "edit"}, choice{"n", "no, and say why"}, choice{"?", "explain"})
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
	if q.Kind == "question" || l.ScreenReader {
		var out []string
		for _, c := range q.choices() {
			out = append(out, "  "+l.key(c.key)+" "+c.label)
		}
		return out
	}
	var parts []string
	for _, c := range q.choices() {
		parts = append(parts, l.key(c.key)+" "+c.label)
	}
	return l.flow("  ", parts, l.pick(" · ", " | "), width)
}

// head says which question it is, and why it is asked.
func (q *question) head() string {
	s := ""
	if q.of > 1 {
		s = fmt.Sprintf("%d of %d: ", q.number, q.of)
	}
	return s + strings.TrimSpace(q.Prompt)
}

// preview is what answering a question with yes does.
type preview struct {
	Command bool   // it runs programs
	Scope   string // what an answer may cover besides the call; empty: nothing is proposed
	Wider   bool   // the call ran, and asks for more than its boundary allows
}

func previewOf(a asked) preview {
	var args struct {
		Command string `json:"command"`
	}
	json.Unmarshal(a.Args, &args) //nolint:errcheck // then it has none
	words := strings.Fields(args.Command)
	p := preview{Command: len(words) > 0}
	if p.Command {
		p.Scope = strings.Join(words[:min(2, len(words))], " ")
	}
	return p
}
