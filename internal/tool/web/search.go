package web

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/tool"
)

// Engines that web_search can ask.
const (
	Brave   = "brave"
	Serper  = "serper"
	Tavily  = "tavily"
	Searxng = "searxng"
	Native  = "native" // the model's vendor searches
)

// Search is the engine that a person has set.
type Search struct {
	Engine string                 // empty: there is none
	Base   *url.URL               // nil: the vendor's
	Key    func() (string, error) // finds its key when it is needed; nil: it wants none
}

//go:embed web_search.md
var searchDoc string

type searchArgs struct {
	Query   string   `json:"query" jsonschema:"words"`
	Count   int      `json:"count,omitempty" jsonschema:"default 8, at most 20"`
	Domains []string `json:"domains,omitempty" jsonschema:"only these"`
}

const (
	countDefault = 8
	countMost    = 20
	maxQuery     = 400 // characters
	maxAnswer    = 2 << 20
	maxExcerpt   = 600 // characters of one result
)

type searcher struct {
	c      Config
	client http.RoundTripper
}

func newSearcher(c Config) *searcher {
	// Whoever names a server of this machine or network as an engine means it: the name
	// comes from the person's own file.
	return &searcher{c: c, client: c.client(netdial.Rules{Loopback: c.Search.Base != nil, Private: c.Search.Base != nil})}
}

func (s *searcher) tool() tool.Tool {
	of := spec("web_search", searchDoc)
	of.Native = s.c.Search.Engine == Native
	return tool.New(of, s.run)
}

func (s *searcher) run(ctx context.Context, _ tool.Call, in searchArgs) (r tool.Result, err error) {
	if s.c.Search.Engine == Native {
		return r, tool.Failf(tool.NotFound, CodeSearchNative, "web-search is native: the model's vendor searches, within an answer").WithHint("a person can set an engine that is called: web-search: brave")
	}
	in.Query = strings.TrimSpace(in.Query)
	if n := len([]rune(in.Query)); n == 0 || n > maxQuery {
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "the query has 1 to %d characters", maxQuery)
	}
	if in.Count = cmp.Or(in.Count, countDefault); in.Count < 0 || in.Count > countMost {
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "count is at most %d", countMost)
	}
	for i, d := range in.Domains {
		in.Domains[i] = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(d), "*."))
		if len(in.Domains) > 10 || in.Domains[i] == "" || strings.ContainsAny(in.Domains[i], " /:()\"") {
			return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "domains are at most 10 names such as example.com")
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, errTime)
	defer cancel()
	found, err := s.ask(ctx, in)
	if err != nil {
		return r, err
	}
	r.Text = framed("web_search", listed(found, in))
	return r, nil
}

// hit is one result.
type hit struct{ Title, URL, Text string }

// listed is what the model reads of results.
func listed(found []hit, in searchArgs) string {
	var b strings.Builder
	n := 0
	for _, h := range found {
		if u, err := url.Parse(h.URL); err != nil || u.Host == "" || n == in.Count || !within(plainHost(u), in.Domains) {
			continue
		}
		n++
		fmt.Fprintf(&b, "%d. %s\n   %s\n", n, cmp.Or(words(h.Title, 200), "(no title)"), h.URL)
		if text := words(h.Text, maxExcerpt); text != "" {
			b.WriteString("   " + text + "\n")
		}
	}
	if n == 0 {
		return "nothing was found"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func within(host string, domains []string) bool {
	return len(domains) == 0 || slices.ContainsFunc(domains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
}

// words are a text without markup, on one line and not longer than n characters.
func words(text string, n int) string {
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken:
			out := []rune(strings.Join(strings.Fields(b.String()), " "))
			if len(out) > n {
				return string(out[:n]) + "…"
			}
			return string(out)
		case html.TextToken:
			b.Write(z.Text())
		}
	}
}

// request is the one that an engine wants.
func (s *searcher) request(ctx context.Context, in searchArgs, key string) (*http.Request, error) {
	query := in.Query
	if s.c.Search.Engine != Tavily && len(in.Domains) > 0 {
		query += " (site:" + strings.Join(in.Domains, " OR site:") + ")"
	}
	get := func(base, path string, q url.Values) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, s.at(base)+path+"?"+q.Encode(), http.NoBody)
	}
	post := func(base, path string, body any) (*http.Request, error) {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at(base)+path, bytes.NewReader(b))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, err
	}
	name, value := "", key
	var req *http.Request
	var err error
	switch s.c.Search.Engine {
	case Brave:
		name = "X-Subscription-Token"
		req, err = get("https://api.search.brave.com", "/res/v1/web/search", url.Values{"q": {query}, "count": {strconv.Itoa(in.Count)}})
	case Serper:
		name = "X-API-KEY"
		req, err = post("https://google.serper.dev", "/search", map[string]any{"q": query, "num": in.Count})
	case Tavily:
		name, value = "Authorization", "Bearer "+key
		body := map[string]any{"query": query, "max_results": in.Count}
		if len(in.Domains) > 0 {
			body["include_domains"] = in.Domains
		}
		req, err = post("https://api.tavily.com", "/search", body)
	default:
		name, value = "Authorization", "Bearer "+key
		req, err = get("", "/search", url.Values{"q": {query}, "format": {"json"}})
	}
	if err == nil {
		req.Header.Set("User-Agent", agent)
		req.Header.Set("Accept", "application/json")
		if key != "" {
			req.Header.Set(name, value)
		}
	}
	return req, err
}

// at is where an engine is.
func (s *searcher) at(vendor string) string {
	if b := s.c.Search.Base; b != nil {
		return strings.TrimSuffix(b.String(), "/")
	}
	return vendor
}

func (s *searcher) ask(ctx context.Context, in searchArgs) ([]hit, error) {
	engine, key := s.c.Search.Engine, ""
	if s.c.Search.Key != nil {
		var err error
		if key, err = s.c.Search.Key(); err != nil {
			return nil, tool.Failf(tool.NotFound, CodeSearchKey, "%s has no key that can be used: %v", engine, err).WithHint("a person must set it: web-search-key")
		}
	}
	req, err := s.request(ctx, in, key)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.RoundTrip(req)
	if err != nil {
		return nil, problem(ctx, engine, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch code := resp.StatusCode; {
	case err != nil:
		return nil, problem(ctx, engine, err)
	case code == http.StatusTooManyRequests:
		return nil, tool.Failf(tool.Transient, CodeSearchLimit, "%s allows no more searches now", engine).WithHint("wait, or go on without searching")
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, tool.Failf(tool.NotFound, CodeSearchKey, "%s doesn't take the key (%d)", engine, code).WithHint("a person must set another one: web-search-key")
	case code >= 500:
		return nil, tool.Failf(tool.Transient, CodeSearchRejected, "%s answers %d", engine, code)
	case code != http.StatusOK || len(body) > maxAnswer:
		return nil, tool.Failf(tool.NotFound, CodeSearchRejected, "%s answers %d with %d bytes, which is no list of results", engine, code, len(body))
	}
	return results(engine, body)
}

// results reads an engine's answer.
func results(engine string, body []byte) (found []hit, err error) {
	type entry struct {
		Title, URL, Link, Description, Snippet, Content string
	}
	var a struct {
		Web struct {
			Results []entry `json:"results"`
		} `json:"web"`
		Organic []entry `json:"organic"`
		Results []entry `json:"results"`
	}
	if json.Unmarshal(body, &a) != nil {
		return nil, tool.Failf(tool.Transient, CodeSearchRejected, "the answer of %s can't be read", engine)
	}
	for _, e := range slices.Concat(a.Web.Results, a.Organic, a.Results) {
		found = append(found, hit{e.Title, cmp.Or(e.URL, e.Link), cmp.Or(e.Description, e.Snippet, e.Content)})
	}
	return found, nil
}
