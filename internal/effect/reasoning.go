package effect

import (
	"context"
	"strings"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/secret"
)

// maxReasoning bounds what is kept of one answer's reasoning, in bytes.
const maxReasoning = 256 << 10

// reasoning collects what a provider shows of its reasoning. Of an attempt that
// fails nothing is kept: the next one reasons anew.
type reasoning struct {
	text  strings.Builder
	clean *secret.Writer // in front of text: a secret may come in pieces
	shown int            // bytes of text that were shown live
	cut   bool           // there was more
}

// think takes a piece of reasoning.
func (a *answer) think(piece string) {
	t := &a.thoughts
	if t.cut {
		return
	}
	_, _ = t.clean.Write([]byte(strings.ToValidUTF8(piece, "\uFFFD"))) // into memory: can't fail
	if text := t.text.String()[t.shown:]; text != "" {
		a.v.e.c.Live(event.Delta{Stream: a.v.stream, IDs: a.eff.IDs, Kind: "reasoning", Attempt: a.eff.Attempt, Offset: int64(t.shown), Text: text})
		t.shown += len(text)
	}
	t.cut = t.text.Len() > maxReasoning
}

// reasoned is the fact of the reasoning behind an answer; none if nothing was
// shown.
func (a *answer) reasoned(ctx context.Context) ([]core.Fact, error) {
	_ = a.thoughts.clean.Close() // into memory: can't fail
	text := strings.TrimSpace(a.thoughts.text.String())
	if text == "" {
		return nil, nil
	}
	if a.thoughts.cut {
		text = event.CutText(text, maxReasoning) + " …"
	}
	p := event.ReasoningSummary{Attempt: a.eff.Attempt, Tokens: a.usage.Reasoning}
	var err error
	p.Text, err = a.v.e.content(ctx, text, "text/plain")
	return []core.Fact{{IDs: a.eff.IDs, Data: p}}, err
}
