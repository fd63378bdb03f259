package web

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/golden"
)

// TestPagesOfDocumentationAsMarkdown holds the text that is made of pages as they are
// published. Their sources are in testdata/pages/SOURCES.md.
func TestPagesOfDocumentationAsMarkdown(t *testing.T) {
	pages, err := filepath.Glob("testdata/pages/*.html")
	if err != nil || len(pages) < 10 {
		t.Fatal(len(pages), "pages", err)
	}
	for _, name := range pages {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse("https://docs.example/dir/" + filepath.Base(name))
		p, err := read(t.Context(), &answer{url: u, status: 200, media: "text/html", body: b}, formatMarkdown)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden.Compare(t, strings.TrimSuffix(name, ".html")+".md", p.title+"\n\n"+p.text+"\n")
	}
}
