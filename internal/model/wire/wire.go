// Package wire is what the adapters of HTTP providers share: one request, the
// reading of its stream, deadlines, what a failure means, and the gateway in front
// of all of them. It knows no vendor's JSON.
//
// It promises that a stream that goes silent ends, that memory doesn't follow
// what a server sends, and that no error has the key in it.
package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Endpoint is where a provider is reached.
type Endpoint struct {
	Name   string // of the provider, for messages
	Base   *url.URL
	Key    string              // goes to Base's host only, and into no message
	Header http.Header         // sent with every request besides the protocol's own
	Scrub  func(string) string // removes secrets from a text; nil knows only the key
	Client *http.Client
	First  time.Duration // until the answer begins; 0 is two minutes
	Idle   time.Duration // between two pieces of it; 0 is one minute
}

const (
	defaultFirst = 2 * time.Minute
	defaultIdle  = time.Minute
)

// Answer is a stream that has begun. Close ends it.
type Answer struct {
	Body io.Reader
	e    *Endpoint
	resp *http.Response
	stop context.CancelCauseFunc
	idle *time.Timer
}

var (
	errFirst = errors.New("the provider didn't begin to answer")
	errIdle  = errors.New("the provider went silent in the middle of its answer")
)

// Post sends a body and returns the answer if it is a stream of events. Any
// other answer is a *model.Error.
func (e *Endpoint) Post(ctx context.Context, path string, header http.Header, body *Body) (*Answer, error) {
	ctx, stop := context.WithCancelCause(ctx)
	first := time.AfterFunc(cmp.Or(e.First, defaultFirst), func() { stop(errFirst) })
	defer first.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Base.String()+path, body.Reader())
	if err != nil {
		stop(nil)
		return nil, &model.Error{Class: "bad_request", Code: "BAD_ADDRESS", Message: "the request can't be made: " + e.clean(err)}
	}
	req.ContentLength = body.Len()
	req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
	req.Header = header.Clone()
	for name, values := range e.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := e.Client.Do(req)
	if err != nil {
		defer stop(nil)
		return nil, e.unsent(ctx, err)
	}
	a := &Answer{e: e, resp: resp, stop: stop}
	a.idle = time.AfterFunc(cmp.Or(e.Idle, defaultIdle), func() { stop(errIdle) })
	a.Body = &awake{a, ctx}
	if err := a.check(ctx); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// What is left of an answer after its last event is read, if it is little and
// comes soon: only a connection whose answer was read to its end serves the next
// request, and making one costs what a step takes.
const (
	drainBytes = 4 << 10
	drainTime  = 50 * time.Millisecond
)

// Close ends the stream, whatever is left of it.
func (a *Answer) Close() {
	a.idle.Stop()
	late := time.AfterFunc(drainTime, func() { a.stop(nil) })
	io.CopyN(io.Discard, a.resp.Body, drainBytes) //nolint:errcheck // there may be less, or nothing
	late.Stop()
	a.stop(nil)
	a.resp.Body.Close() //nolint:errcheck // nothing more is wanted of it
}

// awake reads the body and notes that something came.
type awake struct {
	a   *Answer
	ctx context.Context
}

func (w *awake) Read(p []byte) (int, error) {
	n, err := w.a.resp.Body.Read(p)
	if n > 0 {
		w.a.idle.Reset(cmp.Or(w.a.e.Idle, defaultIdle))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, w.a.e.broken(w.ctx, err)
	}
	return n, err
}

// unsent is the error of a request that got no answer.
func (e *Endpoint) unsent(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errFirst):
		return &model.Error{Class: "transient", Code: "NO_ANSWER", Message: fmt.Sprintf("%s: no answer within %s", e.Name, cmp.Or(e.First, defaultFirst))}
	case cause != nil:
		return cause
	case belay.CodeOf(err) == belay.CodeAddress:
		return &model.Error{Class: "bad_request", Code: "ADDRESS_REFUSED", Message: e.Name + ": " + e.clean(err)}
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // another try meets the same certificate
		return &model.Error{Class: "bad_request", Code: "TLS", Message: e.Name + ": " + e.clean(err)}
	}
	return &model.Error{Class: "transient", Code: "UNREACHABLE", Message: e.Name + ": " + e.clean(err)}
}

// broken is the error of a stream that ended before its end.
func (e *Endpoint) broken(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		return &model.Error{Class: "transient", Code: "SILENT", Message: fmt.Sprintf("%s: nothing came for %s in the middle of the answer", e.Name, cmp.Or(e.Idle, defaultIdle))}
	case cause != nil:
		return cause
	}
	return &model.Error{Class: "transient", Code: "CUT", Message: e.Name + ": the answer broke off: " + e.clean(err)}
}

// clean is a text without the key.
func (e *Endpoint) clean(err error) string { return e.Clean(err.Error()) }

// Clean takes the key out of a text, bounds it and makes it valid.
func (e *Endpoint) Clean(s string) string {
	return e.excerpt(s, maxMessage)
}

// excerpt is Clean with a bound of its own. Secrets are removed first: half a
// key is a key as well.
func (e *Endpoint) excerpt(s string, limit int) string {
	if e.Scrub != nil {
		s = e.Scrub(s)
	}
	if len(e.Key) >= minKey {
		s = strings.ReplaceAll(s, e.Key, "[key]")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > limit {
		s = s[:limit]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += " …"
	}
	return s
}

const (
	minKey     = 6        // bytes of a key that is taken out of texts; a shorter one is a stand-in
	maxMessage = 1000     // bytes of a message that is passed on
	maxProblem = 64 << 10 // bytes of an error's body that are read
)

// check turns an answer that is no stream into an error.
func (a *Answer) check(ctx context.Context) error {
	r := a.resp
	if r.StatusCode == http.StatusOK {
		if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(strings.ToLower(media)) != "text/event-stream" {
			head, _ := io.ReadAll(io.LimitReader(a.Body, maxProblem))
			return &model.Error{Class: "bad_request", Code: "NO_STREAM", Message: a.e.Clean(fmt.Sprintf("%s: the answer is %q and no stream: %s", a.e.Name, r.Header.Get("Content-Type"), a.e.excerpt(string(head), 200)))}
		}
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(a.Body, maxProblem))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return a.e.Failure(r.StatusCode, r.Header, body, time.Now())
}

// Failure is what an answer with a status other than 200 means.
func (e *Endpoint) Failure(status int, h http.Header, body []byte, now time.Time) *model.Error {
	body = first(body)
	text, code := messageOf(body)
	reason, wait := detailsOf(body)
	if reason == badKey {
		code = reason
	}
	limit, long := overflow(status, code, text, body)
	class := "overflow"
	if !long {
		class = classOf(status, code, text)
	}
	f := &model.Error{Class: class, Limit: limit, Code: fmt.Sprintf("HTTP_%d", status), RetryAfter: cmp.Or(retryAfter(h, now), wait)}
	if text == "" {
		text = http.StatusText(status)
	}
	f.Message = e.Clean(fmt.Sprintf("%s: %d %s", e.Name, status, text))
	if status >= 300 && status < 400 {
		f.Code = "REDIRECT"
		f.Message = e.Clean(fmt.Sprintf("%s: %d: the server sends the request elsewhere; it isn't followed, because the key belongs to this host", e.Name, status))
	}
	return f
}

// classOf is the class of a failure that is no overflow, by its status, then by what
// the body says.
func classOf(status int, code, text string) string {
	switch {
	case status == 401 || status == 402 || status == 403 || code == badKey:
		return "auth"
	case code == "insufficient_quota": // with 429, or inside a stream
		return "auth"
	case status == 429 || code == "rate_limit_exceeded":
		return "rate_limited"
	case status == 408 || status == 409 || status >= 500:
		return "transient"
	case code == "content_filter" || code == "content_policy_violation" || strings.Contains(text, "content filtering policy"):
		return "refused"
	}
	return "bad_request"
}

// badKey is what Google calls a key that isn't one; the status is 400.
const badKey = "API_KEY_INVALID"

// messageOf finds the message and the code in an error's body: the shapes of
// the vendors, and those of servers that imitate them. An error may have either
// without the other.
func messageOf(body []byte) (text, code string) {
	type failure struct {
		Message json.RawMessage `json:"message"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
		Status  json.RawMessage `json:"status"`
	}
	var shape struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &shape) != nil {
		return strings.TrimSpace(string(body)), ""
	}
	kind := ""
	for _, raw := range []json.RawMessage{shape.Error, shape.Detail, body} {
		var f failure
		s := wordOf(raw) // some have nothing but the code
		if s == "" && json.Unmarshal(raw, &f) != nil {
			continue
		}
		text = cmp.Or(text, s, wordOf(f.Message))
		code = cmp.Or(code, s, wordOf(f.Code))
		kind = cmp.Or(kind, wordOf(f.Status), wordOf(f.Type))
	}
	return cmp.Or(text, strings.TrimSpace(string(body))), cmp.Or(code, kind)
}

// wordOf is a string of a body; empty for anything else, such as the number that
// some send as a code.
func wordOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // nothing and other kinds leave it empty
	return s
}

// retryAfter is how long the server asks to wait: seconds or a date. Source:
// RFC 9110, section 10.2.3. Milliseconds are said by some in a field of their own.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 64); err == nil && ms > 0 && ms < 1<<40 {
		return time.Duration(ms) * time.Millisecond
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e8 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
