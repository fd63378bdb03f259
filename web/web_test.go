package web

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePageIsSmall: what is loaded at once, and what is loaded later.
func TestThePageIsSmall(t *testing.T) {
	for name, most := range map[string]int{"app.js": 60 << 10, "markdown.js": 100 << 10, "app.css": 10 << 10} {
		b, err := fs.ReadFile(Dist(), name)
		if err != nil {
			t.Fatal(err)
		}
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		if _, err := w.Write(b); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		if small.Len() > most || small.Len() < 1000 {
			t.Errorf("%s has %d bytes, at most %d", name, small.Len(), most)
		}
	}
}

// TestOneFileSpeaksToTheServer, and none makes HTML of texts.
// Guarantee: V46, V47.
func TestOneFileSpeaksToTheServer(t *testing.T) {
	speaks := regexp.MustCompile(`\b(fetch\(|XMLHttpRequest|EventSource|WebSocket|sendBeacon)`)
	html := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function`)
	n := 0
	err := filepath.WalkDir("src", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(filepath.Ext(p), ".ts") {
			return err
		}
		n++
		b, err := os.ReadFile(p)
		if at := speaks.Find(b); at != nil && p != filepath.Join("src", "api.ts") {
			t.Errorf("%s speaks to the server: %s", p, at)
		}
		if at := html.Find(b); at != nil {
			t.Errorf("%s makes HTML: %s", p, at)
		}
		return err
	})
	if err != nil || n < 10 {
		t.Errorf("%d files, %v", n, err)
	}
}
