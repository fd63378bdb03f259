package app_test

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
)

// TestWhatCanBeSentAlong: a file's content says what it is, whatever its name; what no
// model takes, or is too large, is refused by its name.
func TestWhatCanBeSentAlong(t *testing.T) {
	of := func(encode func(*bytes.Buffer, image.Image) error, w, h int) string {
		var b bytes.Buffer
		if err := encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	asPNG := func(b *bytes.Buffer, i image.Image) error { return png.Encode(b, i) }
	asJPEG := func(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) }
	asGIF := func(b *bytes.Buffer, i image.Image) error { return gif.Encode(b, i, nil) }
	dot := of(asPNG, 1, 1)
	for name, c := range map[string]struct {
		content string
		media   string
		code    belay.Code
	}{
		"PNG":           {dot, "image/png", ""},
		"JPEG":          {of(asJPEG, 2, 2), "image/jpeg", ""},
		"GIF":           {of(asGIF, 2, 2), "image/gif", ""},
		"WebP":          {"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp", ""},
		"PDF":           {"%PDF-1.4\n", belay.MediaPDF, ""},
		"text":          {"<html>grüße</html>", "text/plain", ""},
		"nothing":       {"", "text/plain", ""},
		"bitmap":        {"BM\xff\xff\x00\x00", "", belay.CodeUsage},
		"half a PNG":    {dot[:20], "", belay.CodeUsage},
		"NUL":           {"a\x00b", "", belay.CodeUsage},
		"another code":  {"gr\xfc\xdfe", "", belay.CodeUsage},
		"wide":          {of(asPNG, belay.MaxImageSide+1, 1), "", belay.CodeTooLarge},
		"large image":   {dot + strings.Repeat("x", belay.MaxImageBytes), "", belay.CodeTooLarge},
		"long document": {"%PDF-1.4\n" + strings.Repeat("x", 20<<20), "", belay.CodeTooLarge},
		"long text":     {strings.Repeat("x", app.MaxText+1), "", belay.CodeTooLarge},
	} {
		a, err := app.NewAttachment("it.txt", []byte(c.content))
		if err != nil && belay.CodeOf(err) != c.code || (err == nil) != (c.code == "") || a.Media != c.media {
			t.Errorf("%s: %q, %v; want %q, code %q", name, a.Media, err, c.media, c.code)
		}
		if err != nil && !strings.Contains(err.Error(), "it.txt") {
			t.Errorf("%s: %v doesn't name it", name, err)
		}
	}
}
