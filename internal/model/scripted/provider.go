// Package scripted is a model that plays a file. It needs no network and no
// key, so demos, tests and evaluations run on it.
//
// It promises that an answer follows from the request alone: the messages, the
// attempt, the note and the forced tool. It keeps nothing between requests, so
// a run that was killed and resumed by another process gets the same answers.
// docs/scripted.md is the reference of the format.
package scripted

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/belay-run/belay/internal/model"
)

// Provider plays one script.
type Provider struct{ script *Script }

var (
	_ model.Provider = (*Provider)(nil)
	_ model.Able     = (*Provider)(nil)
)

// Abilities are those that the script says its model has.
func (p *Provider) Abilities(string) model.Abilities {
	return model.Abilities{Images: p.script.images, Files: p.script.files}
}

// New is a provider that plays s.
func New(s *Script) *Provider { return &Provider{s} }

// Stream yields the answer to r. A request for which the script has no step is
// an error of class bad_request, which no retry mends.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(model.Chunk{}, err)
			return
		}
		c, ok := p.script.choose(r)
		if !ok {
			yield(model.Chunk{}, p.exhausted(c, r))
			return
		}
		a := answer{ctx: ctx, yield: yield, choice: c}
		if !a.play(r.Attempt) && a.err != nil {
			yield(model.Chunk{}, a.err)
		}
	}
}

func (p *Provider) exhausted(c choice, r model.Request) error {
	text := fmt.Sprintf("the script has no step for answer %d: %q ends after %d", c.answer, p.script.name, p.script.length)
	if r.Note != "" {
		text += " and has no step for the runtime's note"
	}
	return &model.Error{Class: "bad_request", Message: text}
}

// answer is a step being played into one stream.
type answer struct {
	choice
	ctx   context.Context
	yield func(model.Chunk, error) bool
	err   error // of the context, when it ended the play
}

// play says the step. It returns false when the consumer left or the context ended.
func (a *answer) play(attempt int) bool {
	st, failing := a.step, a.step.Fault.strikes(attempt)
	if !a.wait(st.delay) {
		return false
	}
	if st.Reasoning != "" && !a.say(model.Chunk{Reasoning: st.number(st.Reasoning, a.n)}) {
		return false
	}
	text := []rune(st.number(st.Text, a.n))
	limit := len(text)
	if failing {
		limit = min(limit, st.Fault.AfterChars)
	}
	if !a.speak(text, limit) {
		return false
	}
	if failing {
		st.Fault.happen(a.ctx, a.yield)
		return true
	}
	for i, call := range st.calls {
		call.ID = fmt.Sprintf("scripted_%d_%d", a.answer, i+1)
		call.Args = st.number(call.Args, a.n)
		if !a.say(model.Chunk{Call: &call}) {
			return false
		}
	}
	last := model.Chunk{Stop: st.Stop}
	if st.usage != nil {
		u := *st.usage
		last.Usage = &u
	}
	return a.say(last)
}

// speak says text in the step's number of pieces, up to limit characters.
func (a *answer) speak(text []rune, limit int) bool {
	n := min(max(a.step.Chunks, 1), len(text))
	for i := range n {
		from, to := i*len(text)/n, min((i+1)*len(text)/n, limit)
		if from >= to {
			return true
		}
		if i > 0 && !a.wait(a.step.chunkDelay) {
			return false
		}
		if !a.say(model.Chunk{Text: string(text[from:to])}) {
			return false
		}
	}
	return true
}

func (a *answer) say(c model.Chunk) bool {
	if a.err = a.ctx.Err(); a.err != nil {
		return false
	}
	return a.yield(c, nil)
}

func (a *answer) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.ctx.Done():
		a.err = a.ctx.Err()
		return false
	}
}
