package wire

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Contents reads what a part of a message names.
type Contents = func(context.Context, belay.Digest) ([]byte, error)

// Closed ends the list of messages and adds the fields that follow it.
func Closed(b []byte, fields any) ([]byte, error) {
	b = append(b, ']')
	rest, err := JSON(fields)
	if len(rest) > 2 {
		b = append(append(b, ','), rest[1:len(rest)-1]...)
	}
	return append(b, '}'), err
}

// TextOf is the text of a message.
func TextOf(m *belay.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Text != "" && b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// Blank reports whether a text says nothing: vendors refuse one of spaces.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

// Lines puts two texts below each other.
func Lines(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// Said is what a user's part is sent as: a text, or the bytes of a picture or a
// document in base64. A file of a media type that the model doesn't take becomes a
// text that names it.
func Said(ctx context.Context, p *belay.Part, images, files []string, content Contents) (text string, a *belay.Attachment, data string, err error) {
	a, takes := p.Image, images
	if a == nil {
		a, takes = p.File, files
	}
	switch {
	case a == nil:
		return p.Text, nil, "", nil
	case !slices.Contains(takes, a.Ref.Media):
		return "[belay] " + a.Withheld("this model doesn't take it"), nil, "", nil
	}
	b, err := content(ctx, a.Ref.Digest)
	return "", a, base64.StdEncoding.EncodeToString(b), err
}

// Own is what an echo of a dialect holds; those of others are left out.
func Own[T any](e *belay.Echo, by string) (v T, ok bool) {
	ok = e != nil && e.By == by && json.Unmarshal(e.Data, &v) == nil
	return v, ok
}
