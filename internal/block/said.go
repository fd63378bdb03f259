package block

import (
	"slices"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Flow takes text or output between the facts. What comes before the fact of its
// request waits for that; what comes after the answer is passed over.
func (f *Fold) Flow(d event.Delta) {
	if _, started := f.agents[d.Stream]; started {
		return
	}
	switch d.Kind {
	case "progress":
		f.printed(d)
	case "text":
		a := f.answers[d.Stream]
		if a.is(d.IDs.Step, d.Attempt) {
			f.grow(a, d)
			return
		}
		fallthrough
	default:
		if a := f.answers[d.Stream]; d.Kind == "reasoning" && a.is(d.IDs.Step, d.Attempt) {
			f.thinks(d)
		} else if len(f.early) < maxEarly {
			f.early = append(f.early, d)
		}
	}
}

// grow adds a piece of text to the answer that it is of.
func (f *Fold) grow(a *answer, d event.Delta) {
	b := f.find(KindAnswer, string(d.IDs.Step))
	if b == nil {
		b = f.begin(event.Envelope{Stream: d.Stream, IDs: d.IDs}, KindAnswer, string(d.IDs.Step))
	}
	f.say(b, a.put(d.Offset, d.Text))
}

// say finishes parts of an answer.
func (f *Fold) say(b *Block, parts []string) {
	a := f.answers[b.Thread.Stream()]
	f.out = slices.Grow(f.out, len(parts))
	for i, part := range parts {
		done := *b
		done.ID += "/" + strconv.Itoa(a.attempt) + "/" + strconv.Itoa(a.parts-len(parts)+i+1)
		done.Done, done.Text = true, part
		f.out = append(f.out, done)
	}
}

// maxThought is how much of a reasoning that flows is held.
const maxThought = 4 << 10

// thinks shows the end of a reasoning.
func (f *Fold) thinks(d event.Delta) {
	b := f.find(KindReasoning, string(d.IDs.Step))
	if b == nil {
		b = f.begin(event.Envelope{Stream: d.Stream, IDs: d.IDs}, KindReasoning, string(d.IDs.Step))
	}
	b.Text = lastBytes(b.Text+d.Text, maxThought)
}

// model takes what a model said.
func (f *Fold) model(ev event.Envelope) {
	switch p := ev.Data.(type) {
	case event.ModelRequested:
		f.requested(ev, p)
	case event.ModelDelta:
		if a := f.answers[ev.Stream]; a.is(ev.IDs.Step, p.Attempt) {
			f.grow(a, event.Delta{Stream: ev.Stream, IDs: ev.IDs, Attempt: p.Attempt, Offset: p.Offset, Text: p.Text})
		}
	case event.ReasoningSummary:
		f.drop(f.find(KindReasoning, string(ev.IDs.Step)))
		if text := f.text(p.Text); trimmed(text) != "" {
			f.once(ev, KindReasoning, string(ev.IDs.Step)).Text = text
		}
	case event.ModelCompleted:
		f.turn(ev.IDs.Turn).hint = ""
		f.completed(ev, p)
	case event.TaskProgress:
		f.checked(ev, p)
	case event.ModelFailed:
		f.stopped(ev)
		f.turn(ev.IDs.Turn).hint = p.Problem.Hint
		f.notice(ev, false, "no answer: "+p.Problem.Message+again(p.RetryAt, ev.Time))
	}
}

// requested begins an answer.
func (f *Fold) requested(ev event.Envelope, p event.ModelRequested) {
	f.stopped(ev)
	if f.answers == nil {
		f.answers = map[belay.StreamID]*answer{}
	}
	f.answers[ev.Stream] = &answer{step: ev.IDs.Step, attempt: p.Attempt}
	if p.Attempt == 1 && p.Note != "" {
		f.notice(ev, true, "told: "+p.Note)
	}
	early := f.early
	f.early = nil
	for _, d := range early {
		if d.Stream != ev.Stream || d.IDs.Step == ev.IDs.Step && d.Attempt >= p.Attempt {
			f.Flow(d)
		}
	}
}

// stopped ends an answer that isn't completed. What came of it stays.
func (f *Fold) stopped(ev event.Envelope) {
	a := f.answers[ev.Stream]
	if a == nil {
		return
	}
	f.drop(f.find(KindReasoning, string(a.step)))
	if b := f.find(KindAnswer, string(a.step)); b != nil {
		f.say(b, a.over())
		f.drop(b)
	}
	delete(f.answers, ev.Stream)
}

// completed ends an answer: what didn't flow of it comes from the fact.
func (f *Fold) completed(ev event.Envelope, p event.ModelCompleted) {
	a := f.answers[ev.Stream]
	if !a.is(ev.IDs.Step, p.Attempt) {
		f.requested(ev, event.ModelRequested{Attempt: p.Attempt})
		a = f.answers[ev.Stream]
	}
	size := int64(len(p.Text.Text))
	if p.Text.Ref != nil {
		size = p.Text.Ref.Size
	}
	if a.end < size {
		if text := f.text(p.Text); int64(len(text)) > a.end {
			f.grow(a, event.Delta{Stream: ev.Stream, IDs: ev.IDs, Offset: a.end, Text: text[a.end:]})
		}
	}
	f.turn(ev.IDs.Turn).last = p.Text
	f.stopped(ev)
	for _, s := range p.Searches {
		f.notice(ev, false, s.String())
	}
	if n := len(p.Images); n > 0 {
		f.notice(ev, false, "answered with "+Plural(n, "picture"))
	}
	f.wanted(ev)
}

// wanted takes the calls that a fact announces.
func (f *Fold) wanted(ev event.Envelope) {
	for _, c := range event.Calls(ev.Data) {
		b := f.begin(ev, KindCall, string(c.ID))
		b.Call = &Call{ID: c.ID, Tool: c.Name, Args: c.Args, What: what(c), State: Wanted}
	}
}

// checked takes what became of a check that the task must pass.
func (f *Fold) checked(ev event.Envelope, p event.TaskProgress) {
	switch {
	case p.Check == nil || p.Check.Status == event.CheckNoted:
	case p.Check.Call != nil:
		f.wanted(ev)
	default:
		f.notice(ev, false, f.text(belay.Content{Text: p.Check.Text()}))
	}
}

// again says when something is tried once more.
func again(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "; again in " + at.Sub(now).Round(100*time.Millisecond).String()
}
