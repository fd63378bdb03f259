//go:build unix

package file

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // its size
	_ "image/jpeg" // its size
	_ "image/png"  // its size
	"net/http"
	"path"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// shownMedia are the types that a model can be shown as they are.
var shownMedia = []string{"image/png", "image/jpeg", "image/gif", "image/webp", belay.MediaPDF}

// mediaOfStart is the type of what begins so, if it can be shown; empty: it can't.
func mediaOfStart(head []byte) string {
	if media := http.DetectContentType(head); slices.Contains(shownMedia, media) {
		return media
	}
	return ""
}

// picture is a file that is shown as it is.
func (p *place) picture(c tool.Call, media string) (r tool.Result, err error) {
	content, err := p.upTo(belay.MaxImageBytes, "shown")
	if err != nil {
		return r, err
	}
	a, about, err := attach(c, path.Base(p.name), media, content)
	if err != nil {
		return r, err
	}
	return tool.Result{Text: fmt.Sprintf("[%s: %s, %s]", show(p.name), about, size(int64(len(content)))), Attached: []belay.Attachment{a}, Files: p.seen(digestOf(content))}, nil
}

// attach keeps a picture or a document for the model, and says what it is.
func attach(c tool.Call, name, media string, content []byte) (a belay.Attachment, about string, err error) {
	about = media
	if is, _, err := image.DecodeConfig(bytes.NewReader(content)); err == nil {
		about = fmt.Sprintf("%s of %d x %d pixels", media, is.Width, is.Height)
		if max(is.Width, is.Height) > belay.MaxImageSide {
			return a, "", tool.Failf(tool.Denied, CodeTooLarge, "%s is a picture of %d x %d pixels; a side may have %d", show(name), is.Width, is.Height, belay.MaxImageSide).
				WithHint("make it smaller with a program, and read that")
		}
	}
	ref, err := c.Sink.Keep(content, media)
	if errors.Is(err, tool.ErrHoldsSecret) {
		err = tool.Failf(tool.Denied, CodeSecret, "%s holds a secret of this machine", show(name))
	}
	return belay.Attachment{Name: name, Ref: ref}, about, err
}
