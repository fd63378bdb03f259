package web

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/temoto/robotstxt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

//go:embed web_fetch.md
var fetchDoc string

type fetchArgs struct {
	URL    string `json:"url" jsonschema:"http or https"`
	Page   int    `json:"page,omitempty" jsonschema:"from 1"`
	Format string `json:"format,omitempty" jsonschema:"markdown (default), text or raw"`
}

type fetcher struct {
	c      Config
	client http.RoundTripper
	kept   cache
}

func newFetcher(c Config) *fetcher {
	return &fetcher{c: c, client: c.client(c.rules()), kept: cache{now: c.Now}}
}

func (f *fetcher) tool() tool.Tool {
	s := spec("web_fetch", fetchDoc)
	s.HostArg = "url"
	return tool.New(s, f.run)
}

func (f *fetcher) run(ctx context.Context, c tool.Call, in fetchArgs) (r tool.Result, err error) {
	switch in.Format {
	case "":
		in.Format = formatMarkdown
	case formatMarkdown, formatText, formatRaw:
	default:
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "format is markdown, text or raw")
	}
	if in.Page < 0 {
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "pages are counted from 1")
	}
	u, err := f.c.parseURL(in.URL)
	if err != nil {
		return r, err
	}
	key := string(c.Session) + "\x00" + in.Format + "\x00" + u.String()
	p := f.kept.get(key)
	if p == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, maxTime, errTime)
		defer cancel()
		if p, err = f.load(ctx, string(c.Session), u, in.Format, c.Sink.Progress); err != nil {
			return r, err
		}
		f.kept.put(key, p)
	}
	return p.result(c, max(in.Page, 1))
}

// load gets a page that isn't kept.
func (f *fetcher) load(ctx context.Context, session string, u *url.URL, format string, told func(tool.Progress)) (*page, error) {
	if err := f.obeyed(ctx, session, u); err != nil {
		return nil, err
	}
	a, err := get(ctx, &f.c, f.client, u, maxBody, told)
	if err != nil {
		return nil, err
	}
	if a.moved == nil && (a.url.Host != u.Host || a.url.Scheme != u.Scheme || a.url.Path != u.Path) {
		if err := f.obeyed(ctx, session, a.url); err != nil {
			return nil, err
		}
	}
	p, err := read(ctx, a, format)
	if a.moved != nil || a.status < 300 {
		return p, err
	}
	return nil, refused(a, p, err)
}

// refused is a server's answer that has no page. What it says is shown in part.
func refused(a *answer, p *page, unread error) error {
	class := tool.NotFound
	if a.status == http.StatusTooManyRequests || a.status >= 500 {
		class = tool.Transient
	}
	e := tool.Failf(class, fmt.Sprintf("HTTP_%d", a.status), "%s answers %d %s", plainHost(a.url), a.status, http.StatusText(a.status))
	if unread == nil && p.text != "" {
		text := p.text
		if len(text) > 2<<10 {
			text = strings.ToValidUTF8(text[:2<<10], "") + "…"
		}
		e.Text = framed("web_fetch", text)
	}
	return e
}

// maxRobots bounds a robots.txt that is read, in bytes, as RFC 9309 asks at least.
const maxRobots = 512 << 10

// obeyed refuses what a host's robots.txt forbids, where that is set. One that can't
// be had forbids all.
func (f *fetcher) obeyed(ctx context.Context, session string, u *url.URL) error {
	if !f.c.Robots {
		return nil
	}
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	key := session + "\x00robots\x00" + at.String()
	p := f.kept.get(key)
	if p == nil {
		a, err := get(ctx, &f.c, f.client, at, maxRobots, func(tool.Progress) {})
		if e, ok := errors.AsType[*tool.Error](err); ok && e.Code == CodeTooLarge {
			a, err = &answer{url: at, status: http.StatusInternalServerError}, nil
		}
		if err != nil {
			return err
		}
		p = &page{url: at, text: string(a.body), media: fmt.Sprint(a.status)}
		if a.moved != nil {
			p.media = "500" // the other host wasn't judged
		}
		f.kept.put(key, p)
	}
	status := 0
	if _, err := fmt.Sscan(p.media, &status); err != nil {
		return err
	}
	rules, err := robotstxt.FromStatusAndBytes(status, []byte(p.text))
	if err != nil || !rules.TestAgent(u.RequestURI(), agent) {
		return tool.Failf(tool.Denied, CodeRobots, "the robots.txt of %s forbids it, or can't be read", plainHost(u)).WithHint("a person can set web-robots: ignore in their own belay.yaml")
	}
	return nil
}

// result is a piece of a page, counted from 1.
func (p *page) result(c tool.Call, n int) (r tool.Result, err error) {
	if p.moved != nil {
		r.Text = framed("web_fetch", fmt.Sprintf("%s redirects to %s\nThat is another place: call web_fetch with it if you want what is there.", p.url, p.moved))
		return r, nil
	}
	head := fmt.Sprintf("%s (%s", p.url, p.media)
	if p.bytes != nil {
		ref, err := c.Sink.Keep(p.bytes, p.media)
		if errors.Is(err, tool.ErrHoldsSecret) {
			return r, tool.Failf(tool.Denied, CodeHoldsSecret, "what %s returned holds a secret of this machine", plainHost(p.url))
		}
		if err != nil {
			return r, err
		}
		at := belay.Attachment{Name: p.fileName(), Ref: ref}
		r.Attached = []belay.Attachment{at}
		r.Text = framed("web_fetch", fmt.Sprintf("%s, %d bytes): %s", head, len(p.bytes), at.Name))
		return r, nil
	}
	pieces := split(p.text)
	if n > len(pieces) {
		return r, tool.Failf(tool.BadArguments, CodeNoPage, "there is no page %d; the last one is %d", n, len(pieces))
	}
	if len(pieces) > 1 {
		head += fmt.Sprintf(", page %d of %d", n, len(pieces))
	}
	head += ")\n"
	if p.title != "" && n == 1 {
		head += fmt.Sprintf("%.200s\n", p.title)
	}
	text := pieces[n-1]
	if text == "" {
		text = "[empty]"
	}
	r.Text = framed("web_fetch", head+"\n"+text)
	return r, nil
}
