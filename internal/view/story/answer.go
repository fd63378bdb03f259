package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Answer is an explanation. Everything in it follows from the facts it names.
type Answer struct {
	Kind  string   `json:"kind"` // turn, step, call, action, task, run, session, command, event
	ID    string   `json:"id"`
	Head  string   `json:"head"`            // the answer in a sentence
	Says  []string `json:"says,omitempty"`  // how it came to that, in order
	Tree  []string `json:"tree,omitempty"`  // the agents that it started, and those below them, drawn
	Costs []Cost   `json:"costs,omitempty"` // what each step used
	Facts []Fact   `json:"facts"`           // the facts that support the answer
	Next  []Next   `json:"next,omitempty"`  // what would change it
}

// Fact is a fact that supports an answer.
type Fact struct {
	Event  belay.EventID  `json:"event"`
	At     time.Time      `json:"at"`
	Stream belay.StreamID `json:"stream"`
	Seq    int64          `json:"sequence"`
	Text   string         `json:"text"`
}

// Cost is what one step used.
type Cost struct {
	Step     belay.StepID  `json:"step"`
	Number   int           `json:"number"`
	Kind     string        `json:"kind"`
	Attempts int           `json:"attempts"`
	Calls    int           `json:"calls"`
	Usage    belay.Usage   `json:"usage"`
	Price    event.CostSum `json:"price,omitzero"`
	Took     time.Duration `json:"tookNs"` // from the request to the answer, or to the last failure
}

// Next is a command, and what it would change.
type Next struct {
	Command string `json:"command"`
	Effect  string `json:"effect"`
}

// maxCosts is how many steps String lists; Costs has all.
const maxCosts = 20

// String is the answer for people.
func (a Answer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", a.Head)
	for _, s := range a.Says {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	if len(a.Tree) > 0 {
		fmt.Fprintf(&b, "\nAgents:\n")
	}
	for _, l := range a.Tree {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	a.writeCosts(&b)
	if len(a.Facts) > 0 {
		fmt.Fprintf(&b, "\nFacts:\n")
	}
	for _, f := range a.Facts {
		fmt.Fprintf(&b, "  %s  %s\n", short(string(f.Event)), f.Text)
	}
	if len(a.Next) > 0 {
		fmt.Fprintf(&b, "\nNext:\n")
	}
	for _, n := range a.Next {
		fmt.Fprintf(&b, "  %s\n      %s\n", n.Command, n.Effect)
	}
	return b.String()
}

func (a Answer) writeCosts(b *strings.Builder) {
	if len(a.Costs) == 0 {
		return
	}
	var sum belay.Usage
	var price event.CostSum
	calls := 0
	for _, c := range a.Costs {
		sum, price, calls = sum.Add(c.Usage), price.Add(c.Price), calls+c.Calls
	}
	fmt.Fprintf(b, "\nCost: %s\n", join(", ", plural(len(a.Costs), "step"), plural(calls, "call"), tokens(sum), money(price)))
	left := max(len(a.Costs)-maxCosts, 0)
	if left > 0 {
		fmt.Fprintf(b, "  (%s before these)\n", plural(left, "step"))
	}
	for _, c := range a.Costs[left:] {
		line := fmt.Sprintf("  step %-3d %-7s %8s  %s", c.Number, c.Kind, took(c.Took), tokens(c.Usage))
		if m := money(c.Price); m != "" {
			line += ", " + m
		}
		if c.Attempts > 1 {
			line += fmt.Sprintf(", %d attempts", c.Attempts)
		}
		fmt.Fprintln(b, line)
	}
}

// money is a sum for people; of an unknown one it is empty.
func money(c event.CostSum) string {
	s := fmt.Sprintf("$%.4f", float64(c.MicroUSD)/1e6)
	switch c.State() {
	case "known":
		return s
	case "estimated":
		return "about " + s
	case "at_least":
		return "at least " + s
	}
	return ""
}

// price is what the step's answer cost, if that is known.
func (st *step) price() event.CostSum {
	p, ok := payload(st.cost).(event.CostRecorded)
	if !ok {
		return event.CostSum{Unpriced: 1}
	}
	if p.Unpriced {
		return event.CostSum{Unpriced: 1}
	}
	return p.Sum()
}

// say adds a sentence.
func (a *Answer) say(format string, args ...any) {
	a.Says = append(a.Says, Clean(fmt.Sprintf(format, args...)))
}

func (a *Answer) head(format string, args ...any) { a.Head = Clean(fmt.Sprintf(format, args...)) }

// stands adds facts, each once, in the order of the log within a stream.
func (a *Answer) stands(events ...*event.Envelope) {
	for _, e := range events {
		if e == nil {
			continue
		}
		f := Fact{Event: e.ID(), At: e.Time, Stream: e.Stream, Seq: e.Seq, Text: Line(*e)}
		at := slices.IndexFunc(a.Facts, func(o Fact) bool { return o.Stream == f.Stream && o.Seq >= f.Seq })
		switch {
		case at < 0:
			a.Facts = append(a.Facts, f)
		case a.Facts[at].Seq > f.Seq:
			a.Facts = slices.Insert(a.Facts, at, f)
		}
	}
}

// next adds a command. It may be pasted into a shell, and its words come from
// the log, so a word that is more than a name is left for the reader to write.
func (a *Answer) next(effect, format string, words ...any) {
	for i, w := range words {
		if s := fmt.Sprint(w); belay.CheckID("word", s) != nil || s[0] == '-' {
			words[i] = "NAME"
		}
	}
	a.Next = append(a.Next, Next{Command: fmt.Sprintf(format, words...), Effect: effect})
}

// cost adds what the turn's steps used.
func (a *Answer) cost(t *turn) {
	for _, st := range t.steps.list {
		p, from := st.request()
		if from == nil {
			continue
		}
		c := Cost{Step: st.id, Number: len(a.Costs) + 1, Kind: Clean(p.Kind), Attempts: len(st.requests), Calls: len(st.calls)}
		if end := cmp.Or(st.answer, last(st.failures)); end != nil {
			c.Took = end.Time.Sub(from.Time)
		}
		if st.answer != nil {
			c.Usage, c.Price = as[event.ModelCompleted](st.answer).Usage, st.price()
		}
		a.Costs = append(a.Costs, c)
	}
}
