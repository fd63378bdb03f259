package app

import (
	"cmp"
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
)

// Given is what a turn is given: a text and what comes with it.
type Given struct {
	Text     string
	Attached []Attachment
}

// Attachment is a file, or standard input, that is sent along.
type Attachment struct {
	Name    string // as the person named it
	Media   string
	Content []byte
}

// Image reports whether it is an image.
func (f Attachment) Image() bool { return strings.HasPrefix(f.Media, "image/") }

// IsText reports whether it is text, which every model takes.
func (f Attachment) IsText() bool { return strings.HasPrefix(f.Media, "text/") }

// Bounds of what a fact holds itself, in bytes.
const (
	maxInline = 4 << 10 // of a text
	maxName   = 200     // of an attachment's name
)

// Keep makes it content without secrets, counted for a model: in a blob what is long,
// and what is attached always. What isn't text is kept as it is. Of a text that is too
// long for a model an excerpt is kept besides, by how the settings choose it.
func (g Given) Keep(ctx context.Context, st store.Blobs, secrets *secret.Scrubber, counts tokens.Profile, s belay.Settings) (belay.Content, error) {
	e := excerpts{st: st, least: cmp.Or(s.Relevance, belay.DefaultRelevance), question: window.Ask(g.Text)}
	text := secrets.String(g.Text)
	c := belay.Content{Text: text}
	if len(text) > maxInline {
		ref, err := st.Put(ctx, []byte(text), "text/plain")
		if err != nil {
			return c, err
		}
		c.Text, c.Ref = Cut(strings.ReplaceAll(event.CutText(text, 800), "\n", " "), 200), &ref
		if c.Shown, text, err = e.of(ctx, ref, text, true); err != nil {
			return c, err
		}
	}
	c.Tokens = tokens.Text(text)
	for _, f := range g.Attached {
		a := belay.Attachment{Name: event.CutText(secrets.String(f.Name), maxName)}
		b := f.Content
		if f.IsText() {
			b = secrets.Bytes(b)
		}
		var err error
		if a.Ref, err = st.Put(ctx, b, f.Media); err != nil {
			return c, err
		}
		if f.IsText() {
			shown := ""
			if a.Shown, shown, err = e.of(ctx, a.Ref, string(b), false); err != nil {
				return c, err
			}
			b = []byte(shown)
		}
		c.Tokens += counts.Attached(a.Ref, b)
		c.Attached = append(c.Attached, a)
	}
	return c, nil
}

// excerpts are what a model is given of long texts.
type excerpts struct {
	st       store.Blobs
	least    float64 // relevance of what is shown
	question string
}

// of is what a model is given of a text, kept as content where that isn't all of it. A
// person may have put the question at the end of a text.
func (e excerpts) of(ctx context.Context, ref belay.Ref, text string, end bool) (*belay.Ref, string, error) {
	if tokens.Rough(text) <= window.Long {
		return nil, text, nil
	}
	text = window.NewIndex(text, window.ChunkTokens).Excerpt(ref.Digest.Short(), text, e.question, e.least, end)
	shown, err := e.st.Put(ctx, []byte(text), "text/plain")
	return &shown, text, err
}
