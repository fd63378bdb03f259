package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"image"
	_ "image/gif"  // its size
	_ "image/jpeg" // its size
	_ "image/png"  // its size
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
)

// Given is what a turn is given: a text and what comes with it.
type Given struct {
	Text     string
	Attached []Attachment
	From     []string // origins of what in it others wrote, as kind:origin
}

// Attachment is a file, or standard input, that is sent along.
type Attachment struct {
	Name    string // as the person named it
	Media   string
	Content []byte
}

// Bounds of what is sent along with a text.
const (
	MaxAttached = 16       // files
	maxDocument = 20 << 20 // bytes of a PDF
)

// images are the media types of images that models take.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// NewAttachment makes a file one that can be sent along: its content says whether it is
// an image, a PDF or text.
func NewAttachment(name string, content []byte) (Attachment, error) {
	bad := func(c belay.Code, hint, format string, args ...any) (Attachment, error) {
		return Attachment{}, belay.Errorf(c, format, args...).At(name).WithHint("%s", hint)
	}
	media := http.DetectContentType(content)
	switch {
	case media == belay.MediaPDF:
		if len(content) > maxDocument {
			return bad(belay.CodeTooLarge, "attach the pages that matter", "the document has more than %d MiB", maxDocument>>20)
		}
	case slices.Contains(images, media):
		is, _, err := image.DecodeConfig(bytes.NewReader(content))
		switch {
		case err != nil && !errors.Is(err, image.ErrFormat): // WebP isn't looked into
			return bad(belay.CodeUsage, "attach an image that is whole", "the image can't be read: %s", err)
		case len(content) > belay.MaxImageBytes:
			return bad(belay.CodeTooLarge, "make the image smaller", "the image has more than %d MiB", belay.MaxImageBytes>>20)
		case max(is.Width, is.Height) > belay.MaxImageSide:
			return bad(belay.CodeTooLarge, "make the image smaller", "the image has %d x %d pixels; a side may have %d", is.Width, is.Height, belay.MaxImageSide)
		}
	case len(content) > MaxText:
		return bad(belay.CodeTooLarge, "name it in the text without @: the agent can read it in parts", "the file has more than %d MiB", MaxText>>20)
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return bad(belay.CodeUsage, "attach UTF-8 text, PNG, JPEG, GIF, WebP or PDF; name other files without @", "it is neither text nor an image or document that models take")
	default:
		media = "text/plain"
	}
	return Attachment{Name: name, Media: media, Content: content}, nil
}

// CheckTaken refuses images and documents where none of the models takes them to which a
// turn's requests may go, the session's own first. Of no routes nothing is known.
func (g Given) CheckTaken(routes []core.Candidate) error {
	if len(routes) == 0 {
		return nil
	}
	for _, f := range g.Attached {
		need, what := core.Files, "document"
		switch {
		case f.IsText():
			continue
		case strings.HasPrefix(f.Media, "image/"):
			need, what = core.Images, "image"
		}
		if !slices.ContainsFunc(routes, func(c core.Candidate) bool { return c.Lacks == "" && slices.Contains(c.Capabilities, need) }) {
			return belay.Errorf(belay.CodeUsage, "%s takes no %ss", routes[0].Provider, what).At(f.Name).
				WithHint("leave the %s out, or name a model that takes %ss, as the session's or as its fallback", what, what)
		}
	}
	return nil
}

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
	c := belay.Content{Text: text, From: g.From}
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

// priorities are words for what comes first among what waits.
var priorities = map[string]int{"low": -1, "": 0, "normal": 0, "high": 1}

// PriorityOf is the number of a word for a priority.
func PriorityOf(word string) (int, error) {
	n, ok := priorities[word]
	if !ok {
		return 0, belay.Errorf(belay.CodeBadCommand, "%q is none of low, normal, high", input.Shown(word))
	}
	return n, nil
}

// FirstThread is a session's default thread.
func FirstThread(id belay.SessionID) belay.ThreadID {
	return belay.ThreadID(belay.DeriveID(belay.PrefixThread, id.Stream(), 0, 0))
}
