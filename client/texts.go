package client

import (
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Answer names the text of one request to a model.
type Answer struct {
	Stream  belay.StreamID
	Step    belay.StepID
	Attempt int
}

// Texts puts the texts of a stream together: what flows, the checkpoints in the
// log, and the answers. It promises that what it has of an answer is at every
// moment a beginning of it. The zero value is ready. It keeps the newest answer
// of each stream.
type Texts struct {
	last map[belay.StreamID]*growing
}

type growing struct {
	of   Answer
	text strings.Builder
}

// Of is what there is of a stream's newest answer, and which one that is.
func (t *Texts) Of(stream belay.StreamID) (Answer, string) {
	g := t.last[stream]
	if g == nil {
		return Answer{Stream: stream}, ""
	}
	return g.of, g.text.String()
}

// Take takes an event, and says of which answer it is, if it brought text.
// Events that are not of answers are passed over. Of an answer whose text is too
// long for a fact the end comes from the text that flows, or not at all.
func (t *Texts) Take(e Event) (Answer, bool, error) {
	if e.Type == TypeText {
		x, err := e.Text()
		if err != nil || x.Kind != "text" {
			return Answer{}, false, err
		}
		return t.put(Answer{x.Stream, x.Step, x.Attempt}, x.Offset, x.Text)
	}
	if e.Type != "model.requested" && e.Type != "model.delta" && e.Type != "model.completed" {
		return Answer{}, false, nil
	}
	f, err := e.Fact()
	if err != nil {
		return Answer{}, false, err
	}
	switch p := f.Data.(type) {
	case event.ModelRequested:
		return t.put(Answer{f.Stream, f.IDs.Step, p.Attempt}, 0, "")
	case event.ModelDelta:
		return t.put(Answer{f.Stream, f.IDs.Step, p.Attempt}, p.Offset, p.Text)
	case event.ModelCompleted:
		if p.Text.Ref == nil {
			return t.put(Answer{f.Stream, f.IDs.Step, p.Attempt}, 0, p.Text.Text)
		}
	}
	return Answer{}, false, nil
}

// put adds what is behind the end of the text. A piece behind a hole, of an
// answer whose beginning was never seen, is not taken.
func (t *Texts) put(of Answer, offset int64, text string) (Answer, bool, error) {
	if t.last == nil {
		t.last = map[belay.StreamID]*growing{}
	}
	g := t.last[of.Stream]
	if g == nil || g.of != of {
		g = &growing{of: of}
		t.last[of.Stream] = g
	}
	have := int64(g.text.Len()) - offset
	if have < 0 || have >= int64(len(text)) {
		return of, false, nil
	}
	g.text.WriteString(text[have:])
	return of, true, nil
}
