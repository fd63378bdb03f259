package tokens

import (
	"bytes"
	"image"
	"math"

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
	Vocabulary string  // empty is Default
	Factor     float64 // its tokens by those of the vocabulary; 0 is 1
	Pictures   string  // the rule for pictures
}

// Request counts a whole request, with the model's vocabulary, which it loads, and
// with its factor.
func (p Profile) Request(r model.Request) int64 {
	c := counter{func(text string) int { return Count(p.Vocabulary, text) }, p.Pictures}
	texts, media := c.instructions(r.System, r.Tools), 0
	for _, m := range r.Messages {
		t, b := c.message(m)
		texts, media = texts+t, media+b
	}
	if r.Note != "" {
		texts += perMessage + c.text(r.Note)
	}
	return int64(math.Ceil(float64(texts)*p.factor())) + int64(media)
}

func (p Profile) factor() float64 {
	if p.Factor == 0 {
		return 1
	}
	return p.Factor
}

// The counts below are those of facts: made without a vocabulary, so that the same
// content always has the same, and for Default. What a model has its own rule for,
// pictures, is divided by its factor, because the whole is multiplied by it.

// Text is about how many tokens a message of one text has.
func Text(text string) int64 { return perMessage + int64(Rough(text)) }

// Instructions is about how many tokens a request has without messages.
func Instructions(system string, tools []model.ToolDef) int64 {
	return int64(counter{text: Rough}.instructions(system, tools))
}

// Message is about how many tokens a message has, without pictures and documents.
func Message(m belay.Message) int64 {
	texts, _ := counter{text: Rough}.message(m)
	return int64(texts)
}

// Attached is about how many tokens a file has that is sent along with a text. The
// formats of pictures are those that the program knows how to decode; another one
// is taken for as large as a screen. The content of a document isn't needed.
func (p Profile) Attached(ref belay.Ref, content []byte) int64 {
	n := 0
	switch a := (belay.Attachment{Ref: ref}); {
	case a.Image():
		is, _, _ := image.DecodeConfig(bytes.NewReader(content))
		n = pictures(p.Pictures, is.Width, is.Height)
	case a.Document():
		n = document(ref.Size)
	default:
		return Text(string(content))
	}
	return perMessage + int64(math.Ceil(float64(n)/p.factor()))
}

func document(bytes int64) int {
	return int(min(max(bytes/bytesPerToken, documentLeast), documentMost))
}

// counter counts texts by a function, and pictures by a rule.
type counter struct {
	text     func(string) int
	pictures string
}

func (c counter) instructions(system string, tools []model.ToolDef) int {
	n := perRequest + c.text(system)
	for _, t := range tools {
		n += perTool + c.text(t.Name) + c.text(t.Doc) + c.text(string(t.Schema))
	}
	return n
}

// message counts what is text, and what isn't.
func (c counter) message(m belay.Message) (texts, media int) {
	texts = perMessage
	for _, p := range m.Flat().Parts {
		switch {
		case p.Image != nil:
			media += pictures(c.pictures, 0, 0)
		case p.File != nil:
			media += document(p.File.Ref.Size)
		case p.Call != nil:
			texts += perCall + c.text(p.Call.Name) + c.text(string(p.Call.Args)) + sealed(p.Call.Echo)
		case p.Result != nil:
			texts += perResult + c.text(p.Result.Text)
		case p.Echo != nil:
			texts += sealed(p.Echo)
		default:
			texts += c.text(p.Text)
		}
	}
	return texts, media
}

// sealed is what an echo adds: it can't be read, so its length must do.
func sealed(e *belay.Echo) int { return (e.Size() + 3) / 4 }
