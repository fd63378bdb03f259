package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// pagePolicy is what a page of the console may do: use what comes from here, and make
// nothing of texts.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// pages are the addresses that show the page; where its script finds the rest.
var pages = []string{"/{$}", "/sessions", "/sessions/{id}", "/approvals", "/approvals/{id}", "/policies", "/access"}

// kinds are those of the console's files.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// console is the page with its files, by path. It has no data: what the page shows, it
// reads with a token as any client does.
type console struct {
	files map[string]asset
	under *http.ServeMux // the addresses of the page
}

type asset struct {
	body []byte
	kind string
	tag  string
}

// newConsole reads the files; nil where there are none.
func newConsole(from fs.FS) (*console, error) {
	if from == nil {
		return nil, nil
	}
	c := &console{files: map[string]asset{}, under: http.NewServeMux()}
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(from, name)
		sum := sha256.Sum256(b)
		c.files["/"+name] = asset{b, kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:16]) + `"`}
		return err
	})
	if err == nil && c.files["/index.html"].body == nil {
		err = fmt.Errorf("server: the console has no index.html")
	}
	c.mount(c.under)
	return c, err
}

// has reports whether a path is the console's.
func (c *console) has(path string) bool {
	if c == nil {
		return false
	}
	_, pattern := c.under.Handler(&http.Request{Method: "GET", URL: &url.URL{Path: path}})
	return pattern != ""
}

// mount adds the console's routes.
func (c *console) mount(mux *http.ServeMux) {
	if c == nil {
		return
	}
	for _, p := range pages {
		mux.HandleFunc("GET "+p, c.serve("/index.html"))
	}
	for name := range c.files {
		mux.HandleFunc("GET "+name, c.serve(name))
	}
}

// serve answers with a file, or with nothing to one who has it.
func (c *console) serve(name string) http.HandlerFunc {
	a := c.files[name]
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("ETag", a.tag)
		if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write(a.body) //nolint:errcheck // the client is gone; there is nobody to tell
	}
}
