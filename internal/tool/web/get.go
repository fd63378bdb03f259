package web

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// answer is what a server said, read to its end.
type answer struct {
	url    *url.URL // that answered, after redirects
	status int
	media  string // as the server says
	body   []byte
	moved  *url.URL // it is at another host; the rest is empty
}

// get asks for a page and follows redirects on its host. most bounds the body.
func get(ctx context.Context, c *Config, client http.RoundTripper, u *url.URL, most int64, told func(tool.Progress)) (*answer, error) {
	for range maxRedirects + 1 {
		a, next, err := ask(ctx, client, u, most, told)
		if err != nil || next == "" {
			return a, err
		}
		to, err := u.Parse(next)
		if err == nil {
			to, err = c.parseURL(to.String())
		}
		if err != nil {
			return nil, tool.Failf(tool.NotFound, CodeBadRedirect, "%s redirects to what is no address of a page", plainHost(u))
		}
		if !sameHost(u, to) || u.Scheme == "https" && to.Scheme == "http" {
			return &answer{url: u, moved: to}, nil
		}
		u = to
	}
	return nil, tool.Failf(tool.NotFound, CodeRedirects, "%s redirects more than %d times", plainHost(u), maxRedirects)
}

// ask makes one request. next is where a redirect leads; empty: it is none.
func ask(ctx context.Context, client http.RoundTripper, u *url.URL, most int64, told func(tool.Progress)) (a *answer, next string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, "", tool.Failf(tool.BadArguments, CodeBadURL, "this is no URL that can be asked for")
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, */*;q=0.8")
	resp, err := client.RoundTrip(req)
	if err != nil {
		return nil, "", problem(ctx, plainHost(u), err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if next := resp.Header.Get("Location"); next != "" {
			return nil, next, nil
		}
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, "", tool.Failf(tool.NotFound, CodeBroken, "%s packs the page in a way that wasn't asked for", plainHost(u))
	}
	loaded := &loading{Reader: io.LimitReader(resp.Body, most+1), told: told, p: tool.Progress{Total: max(0, resp.ContentLength), Text: "bytes of " + plainHost(u)}}
	body, err := io.ReadAll(loaded)
	switch {
	case err != nil:
		return nil, "", problem(ctx, plainHost(u), err)
	case int64(len(body)) > most:
		return nil, "", tool.Failf(tool.NotFound, CodeTooLarge, "the page of %s has more than %d MiB", plainHost(u), most>>20).WithHint("look for a smaller one, or for a part of it")
	}
	return &answer{url: u, status: resp.StatusCode, media: resp.Header.Get("Content-Type"), body: body}, "", nil
}

// loading tells how much of a body has come.
type loading struct {
	io.Reader
	told func(tool.Progress)
	p    tool.Progress
}

func (l *loading) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if l.p.Done += int64(n); n > 0 {
		l.told(l.p)
	}
	return n, err
}

// problem is why a host gave no answer. It omits the address, which can hold private
// data.
func problem(ctx context.Context, host string, err error) error {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	var timeout interface{ Timeout() bool }
	switch {
	case belay.CodeOf(err) == belay.CodeAddress:
		e, _ := errors.AsType[*belay.Error](err)
		return tool.Failf(tool.Denied, CodeAddress, "%s: %s", host, e.Message).WithHint("%s", reachHint)
	case errors.Is(context.Cause(ctx), errTime):
		return tool.Failf(tool.Timeout, CodeTimeout, "%s took longer than %s", host, maxTime)
	case ctx.Err() != nil:
		return ctx.Err()
	case isDNS && dns.IsNotFound:
		return tool.Failf(tool.NotFound, CodeNoHost, "there is no host %s", host)
	case isTLS(err):
		return tool.Failf(tool.NotFound, CodeUnreachable, "%s can't prove who it is, or speaks no TLS: %s", host, last(err))
	case errors.As(err, &timeout) && timeout.Timeout():
		return tool.Failf(tool.Timeout, CodeTimeout, "%s didn't answer in time", host)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), strings.Contains(err.Error(), "malformed"), strings.Contains(err.Error(), "flate:"):
		return tool.Failf(tool.Transient, CodeBroken, "the answer of %s broke off, or isn't what it says", host)
	}
	return tool.Failf(tool.Transient, CodeUnreachable, "%s can't be reached: %s", host, last(err))
}

// errTime is why a call's context ends after maxTime.
var errTime = errors.New("the time of the request is up")

func isTLS(err error) bool {
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	return cert || record || name
}

// last is the innermost reason, which names no address of a page.
func last(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%.200s", err.Error())
		}
		err = inner
	}
}
