package tokens

import (
	"bytes"
	"math"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// What a request has besides its texts: names of fields and roles, which every
// vendor spells another way.
const (
	perMessage = 4
	perCall    = 10
	perResult  = 6
	perTool    = 12
	perRequest = 8
)

// Documents have no rule that their size would tell: these bounds keep a small
// one from counting as nothing and a scan from counting as a library.
const (
	documentLeast = 2_000
	documentMost  = 100_000
	bytesPerToken = 10
)

// Profile is how a model counts. The catalogue has it.
type Profile struct {
	Model      string  // vendor and name: under which corrections are kept
	Vocabulary string  // empty is Default
	Factor     float64 // its tokens by those of the vocabulary; 0 is 1
	Pictures   string  // the rule for pictures
}

// Estimate is what a request will probably have.
type Estimate struct {
	Input int64 // tokens, corrected by what was reported of others
	Raw   int64 // before the correction; for Corrections.Learn
	Exact bool  // texts were counted by the vocabulary, not roughly
}

// Estimator estimates the requests of one conversation. It remembers what it has
// counted, so a request costs what is new since the one before: the messages at
// the end. It isn't safe for concurrent use.
type Estimator struct {
	p    Profile
	c    *Corrections
	size func(belay.Attachment) (width, height int)

	exact  bool
	fixed  float64 // tokens of instructions and tools
	system string
	tools  []model.ToolDef

	counted     int     // messages
	sum         float64 // their tokens
	first, last belay.Message
}

// NewEstimator is an estimator for a conversation with a model. size tells how
// many pixels a picture has; nil, and zero from it, is not known. Corrections are
// shared by all of a process.
func NewEstimator(p Profile, c *Corrections, size func(belay.Attachment) (width, height int)) *Estimator {
	if p.Factor == 0 {
		p.Factor = 1
	}
	if size == nil {
		size = func(belay.Attachment) (int, int) { return 0, 0 }
	}
	return &Estimator{p: p, c: c, size: size}
}

// Estimate is how many tokens a request will have. It loads no vocabulary: until
// Load or Count was called, texts are counted roughly, and everything is counted
// again once it is there. Messages are taken as unchanged where the first and
// the last one of those known are the same.
func (e *Estimator) Estimate(r model.Request) Estimate {
	if exact := loaded(e.p.Vocabulary); exact != e.exact {
		*e = Estimator{p: e.p, c: e.c, size: e.size, exact: exact}
	}
	e.instructions(r)
	e.messages(r.Messages)
	raw := e.fixed + e.sum
	if r.Note != "" {
		raw += e.text(r.Note) + perMessage
	}
	raw = math.Ceil(raw)
	return Estimate{Input: int64(math.Ceil(raw * e.c.factor(e.p.Model))), Raw: int64(raw), Exact: e.exact}
}

// text is what a text adds, in tokens of the model.
func (e *Estimator) text(s string) float64 {
	n := 0
	if e.exact {
		n = Count(e.p.Vocabulary, s)
	} else {
		n = Rough(s)
	}
	return float64(n) * e.p.Factor
}

func (e *Estimator) instructions(r model.Request) {
	same := func(a, b model.ToolDef) bool {
		return a.Name == b.Name && a.Doc == b.Doc && bytes.Equal(a.Schema, b.Schema)
	}
	if e.fixed > 0 && e.system == r.System && slices.EqualFunc(e.tools, r.Tools, same) {
		return
	}
	e.system, e.tools = r.System, slices.Clone(r.Tools)
	e.fixed = perRequest + e.text(r.System)
	for _, t := range r.Tools {
		e.fixed += perTool + e.text(t.Name) + e.text(t.Doc) + e.text(string(t.Schema))
	}
}

func (e *Estimator) messages(ms []belay.Message) {
	if n := e.counted; n > len(ms) || n > 0 && !(alike(e.first, ms[0]) && alike(e.last, ms[n-1])) {
		e.counted, e.sum = 0, 0
	}
	for _, m := range ms[e.counted:] {
		e.sum += e.message(m)
	}
	if e.counted = len(ms); e.counted > 0 {
		e.first, e.last = ms[0], ms[e.counted-1]
	}
}

// alike reports whether two messages are the same one. Texts that are the same
// memory are compared at once.
func alike(a, b belay.Message) bool {
	return a.Role == b.Role && slices.EqualFunc(a.Parts, b.Parts, func(p, q belay.Part) bool {
		switch {
		case p.Call != nil && q.Call != nil:
			return p.Call.ID == q.Call.ID
		case p.Result != nil && q.Result != nil:
			return p.Result.ID == q.Result.ID && p.Result.Text == q.Result.Text
		case p.Image != nil && q.Image != nil:
			return p.Image.Ref == q.Image.Ref
		case p.File != nil && q.File != nil:
			return p.File.Ref == q.File.Ref
		case p.Echo != nil && q.Echo != nil:
			return p.Echo == q.Echo || bytes.Equal(p.Echo.Data, q.Echo.Data)
		}
		return p == q
	})
}

func (e *Estimator) message(m belay.Message) float64 {
	n := float64(perMessage)
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			w, h := e.size(*p.Image)
			n += float64(pictures(e.p.Pictures, w, h))
		case p.File != nil:
			n += float64(min(max(p.File.Ref.Size/bytesPerToken, documentLeast), documentMost))
		case p.Call != nil:
			n += perCall + e.text(p.Call.Name) + e.text(string(p.Call.Args)) + sealed(p.Call.Echo)
		case p.Result != nil:
			n += perResult + e.text(p.Result.Text)
		case p.Echo != nil:
			n += sealed(p.Echo)
		default:
			n += e.text(p.Text)
		}
	}
	return n
}

// sealed is what an echo adds: it can't be read, so its length must do.
func sealed(e *belay.Echo) float64 { return float64(e.Size()) / 4 }
