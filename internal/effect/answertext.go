package effect

import (
	"context"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
)

// answerText is the text of an answer. A long one goes to the store while it comes: what
// is held of it is its beginning and what is in no checkpoint.
type answerText struct {
	st    store.Blobs
	open  []byte           // behind the last checkpoint
	saved int              // bytes before that
	held  []byte           // of them: all of a short text, the beginning of a long one
	out   store.BlobWriter // has them; nil: the text is short
	err   error            // why out has less
	count tokens.Sum       // of them
	whole belay.Content    // that out became
}

// Write takes a piece. It can't fail.
func (t *answerText) Write(p []byte) (int, error) {
	t.open = append(t.open, p...)
	return len(p), nil
}

// len is how many bytes came.
func (t *answerText) len() int { return t.saved + len(t.open) }

// from is what came behind an offset, which is behind the last checkpoint.
func (t *answerText) from(offset int) string { return string(t.open[offset-t.saved:]) }

// settle yields what is in no checkpoint, in pieces that fit into one, each with its
// offset.
func (t *answerText) settle(ctx context.Context) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		rest := string(t.open)
		t.open = t.open[:0]
		for rest != "" {
			piece := event.CutText(rest, 2*deltaBytes)
			rest = rest[len(piece):]
			at := t.saved
			t.keep(ctx, piece)
			if !yield(at, piece) {
				return
			}
		}
	}
}

// keep takes what comes next into what is held, or to the store.
func (t *answerText) keep(ctx context.Context, piece string) {
	t.count.Add(piece)
	t.saved += len(piece)
	if t.out == nil && t.err == nil {
		if t.held = append(t.held, piece...); len(t.held) <= inlineText {
			return
		}
		piece = string(t.held)
		t.held = append([]byte(nil), event.CutText(piece, history.Preview)...)
		t.out, t.err = t.st.Writer(context.WithoutCancel(ctx), "text/plain")
	}
	if t.err == nil {
		_, t.err = t.out.Write([]byte(piece))
	}
}

// content is the text as a fact has it. Nothing follows it.
func (t *answerText) content(ctx context.Context, e *Performers) (belay.Content, error) {
	for range t.settle(ctx) { // what is behind the last checkpoint needs none
	}
	switch {
	case t.err != nil:
		return belay.Content{}, t.err
	case t.out == nil:
		return e.content(ctx, string(t.held), "text/plain")
	case t.whole.Ref == nil:
		ref, err := t.out.Commit()
		if err != nil {
			t.err = err
			return belay.Content{}, err
		}
		t.whole = belay.Content{Text: string(t.held) + " …", Ref: &ref, Tokens: t.count.Text()}
	}
	return t.whole, nil
}

// close drops what was not made a content.
func (t *answerText) close() {
	if t.out != nil {
		_ = t.out.Close() // what is left is swept
	}
}
