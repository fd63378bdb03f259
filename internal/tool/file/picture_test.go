//go:build unix

package file_test

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

func pngOf(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReadShowsPicturesAndDocuments, by what the file begins with and not by its name.
func TestReadShowsPicturesAndDocuments(t *testing.T) {
	b := tooltest.NewBench(t)
	for name, c := range map[string]struct{ content, media, says string }{
		"a/dot.png":  {pngOf(t, 3, 2), "image/png", "[a/dot.png: image/png of 3 x 2 pixels, "},
		"lying.txt":  {pngOf(t, 1, 1), "image/png", "image/png of 1 x 1 pixels"},
		"photo.jpg":  {"\xff\xd8\xff\xe0rest", "image/jpeg", "image/jpeg, 8 bytes]"},
		"moving.gif": {"GIF89arest", "image/gif", "image/gif"},
		"new.webp":   {"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp", "image/webp"},
		"paper.pdf":  {"%PDF-1.7 and more", belay.MediaPDF, "application/pdf"},
	} {
		b.Put(name, c.content)
		r, err := b.Run(t.Context(), file.Read(), args{"path": name})
		if err != nil || !strings.Contains(r.Text, c.says) || len(r.Attached) != 1 || r.Attached[0].Ref.Media != c.media || r.Attached[0].Ref.Digest != belay.DigestOf([]byte(c.content)) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if b.Expect[name] != string(belay.DigestOf([]byte(c.content))) {
			t.Errorf("%s isn't known to the thread: %v", name, b.Expect)
		}
	}
	b.Put("wide.png", pngOf(t, belay.MaxImageSide+1, 1))
	b.Put("big.pdf", "%PDF-"+strings.Repeat("x", belay.MaxImageBytes))
	for _, name := range []string{"wide.png", "big.pdf"} {
		if r, err := b.Run(t.Context(), file.Read(), args{"path": name}); tooltest.CodeOf(err) != file.CodeTooLarge {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	b.Sink.Refuse = tool.ErrHoldsSecret
	if r, err := b.Run(t.Context(), file.Read(), args{"path": "paper.pdf"}); tooltest.CodeOf(err) != file.CodeSecret {
		t.Errorf("a document with a secret: %+v, %v", r, err)
	}
}

const book = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aaaa",
   "metadata": {},
   "source": [
    "# Title\n",
    "ümlaut <b>"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "bbbb",
   "metadata": {
    "zeta": 1,
    "alpha": 2
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "printed\n"
     ]
    },
    {
     "data": {
      "image/png": "PICTURE",
      "text/plain": [
       "<Figure>"
      ]
     },
     "metadata": {},
     "output_type": "display_data"
    },
    {
     "ename": "ValueError",
     "evalue": "bad",
     "output_type": "error",
     "traceback": []
    }
   ],
   "source": "print(1)"
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
`

// TestReadShowsTheCellsOfANotebook with their outputs and pictures.
func TestReadShowsTheCellsOfANotebook(t *testing.T) {
	b := tooltest.NewBench(t)
	content := strings.Replace(book, "PICTURE", "iVBORw0KGgo=\\n", 1)
	b.Put("a.ipynb", content)
	r, err := b.Run(t.Context(), file.Read(), args{"path": "a.ipynb"})
	want := "[cell 1, markdown]\n# Title\nümlaut <b>\n[cell 2, code]\nprint(1)\n[output]\nprinted\n[output]\n<Figure>\n[image/png]\n[output]\nValueError: bad\n" +
		"[a notebook, cells 1-2 of 2; offset and limit are cells, notebook_edit changes them]"
	if err != nil || r.Text != want || len(r.Attached) != 1 || r.Attached[0].Name != "cell-2-1" || r.Attached[0].Ref.Media != "image/png" || b.Expect["a.ipynb"] == "" {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = b.Run(t.Context(), file.Read(), args{"path": "a.ipynb", "offset": 1, "limit": 1})
	if err != nil || !strings.HasSuffix(r.Text, "[a notebook, cells 1-1 of 2; offset and limit are cells, notebook_edit changes them]") || len(r.Attached) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err = b.Run(t.Context(), file.Read(), args{"path": "a.ipynb", "offset": 3}); tooltest.CodeOf(err) != file.CodeBeyondEnd {
		t.Error(err)
	}
	b.Put("long.ipynb", strings.Replace(content, "print(1)", strings.Repeat("x", 100<<10), 1))
	r, err = b.Run(t.Context(), file.Read(), args{"path": "long.ipynb", "offset": 2})
	if err != nil || len(r.Text) > 49<<10 || !strings.Contains(r.Text, "can't be shown by read") {
		t.Errorf("%d bytes, %v", len(r.Text), err)
	}
	for name, none := range map[string]string{"three.ipynb": `{"nbformat":3,"cells":[]}`, "torn.ipynb": `{"nbformat":4,"cells":[`, "null.ipynb": `{"nbformat":4,"cells":[null]}`} {
		b.Put(name, none)
		if r, err := b.Run(t.Context(), file.Read(), args{"path": name}); err != nil || r.Text != none {
			t.Errorf("%s is shown as %q, %v", name, r.Text, err)
		}
	}
}
