package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
)

// pagePolicy is what a page of the console may do: use what comes from here, and make
// nothing of texts.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// pages are the addresses that show the page; where its script finds the rest.
var pages = []string{"/{$}", "/sessions", "/sessions/{id}", "/approvals", "/approvals/{id}", "/programs", "/programs/{id}", "/policies", "/costs", "/health", "/access", "/settings"}

// page is the file that the addresses of the page show.
const page = "/index.html"

// kinds are those of the console's files.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// console is the page with its files, by path. It has no data: what the page shows, it
// reads with a token as any client does.
type console struct {
	again func(context.Context) (fs.FS, error) // makes them anew for each load of the page; nil: they stay
	under *http.ServeMux                       // the addresses of the page

	mu    sync.RWMutex
	files map[string]asset
}

type asset struct {
	body []byte
	kind string
	tag  string
}

// newConsole reads the files; nil where there are none.
func newConsole(from fs.FS, again func(context.Context) (fs.FS, error)) (*console, error) {
	if from == nil {
		return nil, nil
	}
	c := &console{again: again, under: http.NewServeMux()}
	if err := c.read(from); err != nil {
		return nil, err
	}
	c.mount(c.under)
	return c, nil
}

// read takes the files over.
func (c *console) read(from fs.FS) error {
	files := map[string]asset{}
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(from, name)
		sum := sha256.Sum256(b)
		files["/"+name] = asset{b, kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:16]) + `"`}
		return err
	})
	if err == nil && files["/index.html"].body == nil {
		err = fmt.Errorf("server: the console has no index.html")
	}
	if err == nil {
		c.mu.Lock()
		c.files = files
		c.mu.Unlock()
	}
	return err
}

// file is a file as it is now. The page is made anew, where it is made of sources.
func (c *console) file(ctx context.Context, name string) (asset, error) {
	if c.again != nil && name == page {
		from, err := c.again(ctx)
		if err == nil {
			err = c.read(from)
		}
		if err != nil {
			return asset{}, err
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.files[name], nil
}

// has reports whether an address is the console's. It is read as the routes read it: a
// slash or a dot that is written with % is a part of a name.
func (c *console) has(at *url.URL) bool {
	if c == nil || !plain(at.EscapedPath()) {
		return false
	}
	_, pattern := c.under.Handler(&http.Request{Method: "GET", URL: at})
	return pattern != ""
}

// mount adds the console's routes.
func (c *console) mount(mux *http.ServeMux) {
	if c == nil {
		return
	}
	for _, p := range pages {
		mux.HandleFunc("GET "+p, c.serve(page))
	}
	for name := range c.files {
		mux.HandleFunc("GET "+name, c.serve(name))
	}
}

// serve answers with a file, or with nothing to one who has it.
func (c *console) serve(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := c.file(r.Context(), name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("ETag", a.tag)
		if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write(a.body) //nolint:errcheck // the client is gone
	}
}
