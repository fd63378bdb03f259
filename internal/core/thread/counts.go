package thread

import (
	"cmp"
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

	Used  int64       `json:"used,omitempty"`  // input and output of the last request that was reported
	Asked event.Route `json:"asked,omitzero"`  // its model
	Fixed int64       `json:"fixed,omitempty"` // of its instructions and tools
	At    int64       `json:"at,omitempty"`    // All after its answer

	Factor float64 `json:"factor,omitempty"` // of that model: input that was reported by what was counted, a moving average
	Taught int     `json:"taught,omitempty"` // reports that it is made of, as far as that matters
	Most   int64   `json:"most,omitempty"`   // largest input that it reported
	MostAt int64   `json:"mostAt,omitempty"` // All then

	Learned []contextSize `json:"learned,omitempty"` // contexts of models, the latest last
}

// contextSize is how much a model reads: as its server said when it refused more, or
// as much as it read of a request that it cut.
type contextSize struct {
	event.Route
	Tokens int64 `json:"tokens"`        // 0: its reports are no sizes, so they don't tell
	Cut    bool  `json:"cut,omitempty"` // by its reports; a refusal's words are better
}

// maxContextSizes bounds the models whose context is remembered.
const maxContextSizes = 16

// learnContext folds the context that a failed request taught, as the counts have it:
// where a request was refused that was estimated to be shorter, they are too low.
func (c *counts) learnContext(st *Step, p event.ModelFailed) {
	tokens := p.Limit
	if st.Tokens > 0 {
		tokens = min(tokens, max(st.Tokens, tokens/2))
	}
	if tokens > 0 {
		c.keepContext(contextSize{st.Asked, tokens, p.Usage.Reported})
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

// cut is which reports mean that the server left out a part of the request: those of
// less than half of the estimate, but not of much less than it read before, as some
// report only what is new to them. So may less than half of the instructions and tools
// be: it teaches nothing, and neither does any other report of that model, before it or
// after. A server is told so once.
func (d *decision) cut() core.Cut {
	to, c := d.to(), &d.Counts
	fixed := scaled(d.rules.Tokens, leastFactor)
	reported, expected := int64(0), d.Turn.Step.Tokens
	if c.Asked == to.Route {
		reported = c.Most
		expected = max(expected, c.Most+c.All-c.MostAt) // a server that cuts reports the same again and again
	}
	if c.All == 0 || c.learned(to.Route) != nil {
		return core.Cut{}
	}
	cut := core.Cut{From: max(leastCut, fixed, reported/4*3), Below: expected / 2}
	if reported == 0 {
		cut.Doubted = leastCut
	}
	return cut
}

// total is All; 0 if it isn't known.
func (c *counts) total() int64 {
	if c.Gap {
		return 0
	}
	return c.All
}

// estimate is about how many tokens the input of the next request has, with a note
// to the model: the input and output that its model reported last and what came
// since, else everything by the model's factor. whole is false where something of
// it was never counted: then it has more. tokens is 0 if nothing was.
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
		return max(1, c.Used+scaled(c.All-c.At+d.fixed()-c.Fixed+fresh, factor)), true, true
	case c.All+d.fixed() == 0:
		return 0, false, false
	}
	return scaled(c.All+d.fixed()+fresh, factor), false, c.All > 0 && !c.Gap && d.fixed() > 0
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
	case event.ModelFailed:
		if s.step() != nil {
			c.learnContext(s.Turn.Step, p)
		}
	case event.ModelCompleted:
		if st := s.step(); st != nil && st.Tokens > 0 && st.From >= s.from() { // a report about a longer window says nothing of this one
			c.learn(s.Turn.Step, p.Usage, n)
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

// learn folds an answer of so many tokens to a request that had an estimate. What
// its provider reported is better than any count, and corrects them.
func (c *counts) learn(st *Step, u belay.Usage, answer int64) {
	counted := c.All + st.Fixed + plain(len(st.Note))
	if !u.Reported || u.Input <= 0 || u.Output < 0 {
		if c.All > 0 {
			c.All += answer
		}
		return
	}
	if c.Asked != st.Asked {
		c.Asked, c.Factor, c.Taught, c.Most = st.Asked, 0, 0, 0
	}
	if size := c.learned(st.Asked); u.Input < scaled(st.Fixed, leastFactor) && (size == nil || size.Cut) {
		c.keepContext(contextSize{Route: st.Asked, Cut: true})
	}
	if input := min(u.Input, mostReported); input > c.Most {
		c.Most, c.MostAt = input, c.All
	}
	switch {
	case c.All == 0 || c.Gap:
		c.All, c.Gap = max(1, min(u.Input, mostReported)-st.Fixed), false
	case counted >= leastTaught:
		ratio := min(max(float64(u.Input)/float64(counted), leastFactor), mostFactor)
		c.Taught = min(c.Taught+1, int(1/newest))
		c.Factor += (ratio - c.Factor) / float64(c.Taught)
	}
	c.All += answer
	c.Used, c.Fixed, c.At = min(u.Total(), mostReported), st.Fixed, c.All
}

// countsBack makes the counts what they were when the last turn ended that stays.
func (s *State) countsBack(target int64) {
	c := &s.Counts
	if c.All == 0 {
		return
	}
	c.All, c.Gap, c.Used, c.Most, c.MostAt = max(c.Base, 0), c.Base < 0, 0, 0, 0
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

// answered is how many tokens an answer has as the model reads it later.
func answered(p event.ModelCompleted) int64 {
	n := said(p.Text) + int64(size(p.Echo.Text, p.Echo.Ref)/bytesPerEcho+perPicture*len(p.Images))
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
