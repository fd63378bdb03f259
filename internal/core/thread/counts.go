package thread

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// What a message has besides its texts, in tokens, and the bytes of a token where a
// fact doesn't say how many a text has.
const (
	perMessage   = 4
	perCall      = 10
	perResult    = 6
	perPicture   = 40 // the note in place of one that the model made
	bytesPer     = 3
	bytesPerEcho = 4
)

// Bounds of the factor that reports teach.
const (
	leastFactor = 0.5
	mostFactor  = 2.0
	leastTaught = 64   // tokens; a shorter request teaches nothing
	newest      = 0.25 // weight of the newest request, once there are some
)

// mostReported is the most that is believed of a report, so that no sum wraps.
const mostReported = 1 << 50

// counts are how many tokens the conversation has: what facts say of what was made
// for the model. They begin with the first fact that says so; whatever has no
// count in its fact counts by its bytes.
type counts struct {
	All  int64 `json:"all,omitempty"`
	Base int64 `json:"base,omitempty"` // of that, what the thread began with; -1: it wasn't counted
	Gap  bool  `json:"gap,omitempty"`  // something wasn't counted, so All is too low

	Asked  event.Route `json:"asked,omitzero"`   // the model that answered last
	Sealed int64       `json:"sealed,omitempty"` // besides All: what it gave to get back, which no other model is sent

	Used  int64 `json:"used,omitempty"`  // its last input that was reported
	Fixed int64 `json:"fixed,omitempty"` // of its instructions and tools
	At    int64 `json:"at,omitempty"`    // All and Sealed in it

	Factor float64 `json:"factor,omitempty"` // of that model: input that was reported by what was counted, a moving average
	Taught int     `json:"taught,omitempty"` // reports that it is made of, as far as that matters
	Most   int64   `json:"most,omitempty"`   // largest input that it reported
	Doubt  doubt   `json:"doubt,omitzero"`   // its last report, if it was much too small
	Thinks int64   `json:"thinks,omitempty"` // most tokens of reasoning that it reported of an answer

	Learned []contextSize `json:"learned,omitempty"` // contexts of models, the latest last
}

// contextSize is how much a model reads: as its server said when it refused more, or
// as much as it read of requests that it cut.
type contextSize struct {
	event.Route
	Tokens int64 `json:"tokens"`         // 0: its reports are no sizes, so they don't tell
	Cut    bool  `json:"cut,omitempty"`  // by its reports; a refusal's words are better
	Seen   doubt `json:"seen,omitzero"`  // what showed that it cuts
	Told   bool  `json:"told,omitempty"` // a person was
}

// doubt is a report of much less than was sent: the server may have left out the rest, or
// have counted otherwise.
type doubt struct {
	Sent int64 `json:"sent"`
	Read int64 `json:"read"`
}

// maxContextSizes bounds the models whose context is remembered.
const maxContextSizes = 16

// codeContextCut is the code of a warning that a server leaves out what is too long. Earlier
// releases failed a request with it on a single report.
const codeContextCut = "CONTEXT_CUT"

// learnContext folds the context that a failed request taught, as the counts have it:
// where a request was refused that was estimated to be shorter, they are too low.
func (c *counts) learnContext(st *Step, p event.ModelFailed) {
	tokens := p.Limit
	if st.Tokens > 0 {
		tokens = min(tokens, max(st.Tokens, tokens/2))
	}
	if tokens > 0 && p.Problem.Code != codeContextCut {
		c.keepContext(contextSize{Route: st.Asked, Tokens: tokens})
	}
}

func (c *counts) keepContext(size contextSize) {
	c.Learned = slices.DeleteFunc(c.Learned, func(s contextSize) bool { return s.Route == size.Route })
	c.Learned = keep(append(c.Learned, size), maxContextSizes)
}

// learned is what is known of a model's context; nil: nothing.
func (c *counts) learned(of event.Route) *contextSize {
	return find(c.Learned, func(s *contextSize) bool { return s.Route == of })
}

// contextOf is how many tokens a model reads: as many as the catalogue says, or its
// server, which knows better if it takes less; 0 if nothing says it.
func (c *counts) contextOf(m core.Candidate) int64 {
	switch size := c.learned(m.Route); {
	case size == nil || size.Tokens == 0:
		return m.Context
	case m.Context == 0:
		return size.Tokens
	default:
		return min(size.Tokens, m.Context)
	}
}

// leastCut is the smallest context, in tokens, that a server is thought to be set to.
const leastCut = 512

// learnCut folds what a report says of a server that leaves out what is too long without a
// word. One report of less than half of what was sent is no sign of it: the server may count
// otherwise, or only what is new to it. The next one is, if it is no larger although more was
// sent. What is less than half of the instructions and tools is no size to rely on.
func (c *counts) learnCut(st *Step, read, sent int64) {
	size, before := c.learned(st.Asked), c.Doubt
	least := scaled(st.Fixed, leastFactor)
	c.Doubt = doubt{}
	switch {
	case size != nil && !size.Cut || c.All == 0:
		return
	case size != nil && size.Tokens > 0 && read > size.Tokens:
		size.Tokens = read
	case read < least && size == nil:
		c.keepContext(contextSize{Route: st.Asked, Cut: true})
		size = c.learned(st.Asked)
	case read < least:
		size.Tokens = 0
	}
	if read < leastCut || read >= sent/2 || read < c.Most/4*3 || size != nil && size.Seen != (doubt{}) {
		return
	}
	c.Doubt = doubt{sent, read}
	if more := sent - before.Sent; before.Read == 0 || more <= 0 || read-before.Read >= more/4 {
		return
	}
	if size == nil {
		c.keepContext(contextSize{Route: st.Asked, Tokens: max(read, before.Read), Cut: true})
		size = c.learned(st.Asked)
	}
	size.Seen = c.Doubt
}

// tellCut tells a person, once, that a server leaves out what is too long.
func tellCut(d *decision) bool {
	if s := d.Counts.learned(d.Counts.Asked); s != nil && s.Seen.Read > 0 && !s.Told {
		d.record(d.fact(event.RuntimeWarning{Code: codeContextCut, Message: fmt.Sprintf(
			"%s says that it read %d of about %d tokens, and no more than before: its server seems to leave out what is longer than "+
				"the context it is set to. Set a larger one there (num_ctx of Ollama, --ctx-size of llama.cpp)", s.Model, s.Seen.Read, s.Seen.Sent)}))
	}
	return false
}

// total is All; 0 if it isn't known.
func (c *counts) total() int64 {
	if c.Gap {
		return 0
	}
	return c.All
}

// sent is how much of the conversation a model is sent.
func (c *counts) sent(to event.Route) int64 {
	if to != c.Asked {
		return c.All
	}
	return c.All + c.Sealed
}

// estimate is about how many tokens the input of the next request has, with a note
// to the model: the input that its model reported last and what came since, else
// everything by the model's factor. whole is false where something of it was never
// counted: then it has more. tokens is 0 if nothing was.
func (d *decision) estimate(note string) (tokens int64, reported, whole bool) {
	to, c := d.to(), d.Counts
	factor := cmp.Or(to.Factor, 1)
	if c.Taught > 0 && c.Asked == to.Route {
		factor = c.Factor
	}
	fresh := plain(len(note))
	for _, f := range d.ready.Decided { // facts that stand before the request
		fresh += d.adds(f.IDs, f.Data)
	}
	switch {
	case c.Used > 0 && c.Asked == to.Route:
		return max(1, c.Used+scaled(c.sent(to.Route)-c.At+d.fixed()-c.Fixed+fresh, factor)), true, true
	case c.All+d.fixed() == 0:
		return 0, false, false
	}
	return scaled(c.sent(to.Route)+d.fixed()+fresh, factor), false, c.All > 0 && !c.Gap && d.fixed() > 0
}

func scaled(n int64, factor float64) int64 { return int64(math.Ceil(float64(n) * factor)) }

// count folds what a fact adds to the conversation, or takes from it.
func (s *State) count(e event.Envelope) {
	c := &s.Counts
	n := s.adds(e.IDs, e.Data)
	begun := c.All > 0
	switch p := e.Data.(type) {
	case event.ThreadStarted:
		if c.All, c.Base = n, n; n == 0 && len(p.Base) > 0 {
			c.Base, c.Gap = -1, true
		}
		return
	case event.TurnStarted:
		begun = c.begins(n, s.Prev != nil)
	case event.QueueChanged:
		if p.Op == event.QueueJoined {
			begun = c.begins(n, true)
		}
	case event.HistoryRollbackCompleted:
		if p.Scope == event.ScopeThread {
			s.countsBack(p.Target)
		}
	case event.RuntimeWarning:
		if size := c.learned(c.Asked); size != nil && p.Code == codeContextCut {
			size.Told = true
		}
	case event.ModelFailed:
		if s.step() != nil {
			c.learnContext(s.Turn.Step, p)
		}
	case event.ModelCompleted:
		if st := s.step(); st != nil && st.Tokens > 0 && st.From >= s.from() { // a report about a longer window says nothing of this one
			c.learn(st, p.Usage, n, sealed(p))
			return
		}
	}
	if begun {
		c.All += n
	}
}

// begins folds the text of a turn, with which counts can begin, and reports whether
// they have; before is whether something stands before it that wasn't counted then.
func (c *counts) begins(n int64, before bool) bool {
	begun := c.All > 0
	c.Gap = c.Gap || begun && n == 0 || !begun && n > 0 && before
	return begun || n > 0
}

// learn folds an answer of so many tokens, and of so many that only go back to its model,
// to a request that had an estimate. What its provider reported of the request is better than
// any count, and corrects them. What it reported of the answer isn't: most of it may be
// reasoning that nobody is ever sent.
func (c *counts) learn(st *Step, u belay.Usage, answer, sealed int64) {
	if c.Asked != st.Asked {
		c.Asked, c.Sealed, c.Used, c.Factor, c.Taught, c.Most, c.Doubt, c.Thinks = st.Asked, 0, 0, 0, 0, 0, doubt{}, 0
	}
	note := plain(len(st.Note))
	input := min(u.Input, mostReported)
	if !u.Reported || input <= 0 || u.Output < 0 {
		if c.All > 0 {
			c.All, c.Sealed = c.All+answer, c.Sealed+sealed
		}
		return
	}
	c.learnCut(st, input, c.All+st.Fixed+note)
	c.Most, c.Thinks = max(c.Most, input), max(c.Thinks, min(u.Reasoning, mostOutput))
	switch counted := c.All + st.Fixed + note; {
	case c.All == 0 || c.Gap:
		c.All, c.Gap = max(1, input-st.Fixed), false
	case counted >= leastTaught && c.Sealed == 0: // how long that is can't be told
		ratio := min(max(float64(input)/float64(counted), leastFactor), mostFactor)
		c.Taught = min(c.Taught+1, int(1/newest))
		c.Factor += (ratio - c.Factor) / float64(c.Taught)
	}
	c.Used, c.Fixed, c.At = input, st.Fixed, c.All+c.Sealed+note
	c.All, c.Sealed = c.All+answer, c.Sealed+sealed
}

// countsBack makes the counts what they were when the last turn ended that stays.
func (s *State) countsBack(target int64) {
	c := &s.Counts
	if c.All == 0 {
		return
	}
	c.All, c.Gap, c.Used, c.Sealed, c.Most, c.Doubt = max(c.Base, 0), c.Base < 0, 0, 0, 0, doubt{}
	end := int64(0)
	for _, k := range s.Known {
		if k.End > end && k.End <= target && !k.Back {
			end = k.End
			c.All, c.Gap = k.Tokens, k.Tokens == 0
		}
	}
}

// adds is how many tokens the model reads of a fact from then on.
func (s *State) adds(ids belay.IDs, p event.Payload) int64 {
	if c := s.Turn.call(ids.Call); c != nil && c.Check != "" {
		return 0
	}
	switch p := p.(type) {
	case event.ThreadStarted:
		return p.Tokens
	case event.TurnStarted:
		return s.queued(ids.Turn)
	case event.QueueChanged:
		switch p.Op {
		case event.QueueJoined:
			return s.queued(p.Turn)
		case event.QueueTold:
			return plain(len(p.Note))
		}
	case event.ContextResolved:
		return said(p.Text)
	case event.ToolArgs:
		return plain(size(string(p.Args), p.ArgsRef))
	case event.ToolResult:
		return perResult + said(p.Output)
	case event.ToolFailed:
		if p.Final {
			return perResult + plain(len(p.Problem.Code)+len(p.Problem.Message)+len(p.Problem.Hint)) + said(p.Output)
		}
	case event.ModelCompleted:
		if s.step() != nil {
			return perMessage + plain(len(s.Turn.Step.Note)) + answered(p)
		}
	case event.TurnFailed:
		if s.Turn != nil && s.Turn.Turn == ids.Turn {
			return perMessage + plain(len(p.Reason)+size(p.Partial, p.PartialRef))
		}
	case event.HistoryRollbackCompleted:
		n := perMessage
		for _, k := range slices.Concat(p.Kept, p.Artifacts) {
			n += len(k)
		}
		return plain(n)
	}
	return 0
}

// sealed is how many tokens an answer has that only its own model can read.
func sealed(p event.ModelCompleted) int64 { return int64(size(p.Echo.Text, p.Echo.Ref) / bytesPerEcho) }

// answered is how many tokens an answer has as any model reads it later.
func answered(p event.ModelCompleted) int64 {
	n := said(p.Text) + int64(perPicture*len(p.Images))
	for _, c := range p.Calls {
		n += perCall + plain(len(c.Name)+size(string(c.Args), c.ArgsRef))
	}
	return n
}

// said is how many tokens a content has.
func said(c belay.Content) int64 { return cmp.Or(c.Tokens, plain(size(c.Text, c.Ref))) }

// size is how many bytes a text has that is kept as content if it is long.
func size(text string, ref *belay.Ref) int {
	if ref != nil {
		return int(ref.Size)
	}
	return len(text)
}

// plain counts what has no count in its fact.
func plain(bytes int) int64 { return int64(bytes+bytesPer-1) / bytesPer }

// queued is how many tokens a turn that waits has.
func (s *State) queued(id belay.TurnID) int64 {
	if q := find(s.Queue, func(q *Queued) bool { return q.Turn == id }); q != nil {
		return q.Tokens
	}
	return 0
}

// step is the running step, or nil.
func (s *State) step() *Step {
	if s.Turn == nil {
		return nil
	}
	return s.Turn.Step
}
