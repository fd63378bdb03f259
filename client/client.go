// Package client speaks to a server of Belay over HTTP: commands, reads, and
// streams that go on by themselves after a break. It promises that a command is
// done once however often it had to be sent, that a stream has neither gap nor
// repetition, and that what the server refuses is a *belay.Error with the
// server's code. It needs the standard library and the nouns only.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Options of a client.
type Options struct {
	Token string       // the bearer token; empty sends none
	HTTP  *http.Client // nil is one without a total timeout, which streams need

	Channel string // the channel that requests come through; reconnect_channel registers one
}

// Client is a server as its users see it. It may be used at the same time.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client

	channel string
}

// New makes a client of the server at an address such as http://127.0.0.1:8420.
// An address that is none is belay.CodeUsage.
func New(address string, o Options) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%q is no address of a server", address).WithHint("http://127.0.0.1:PORT")
	}
	c := &Client{base: u, token: o.Token, http: o.HTTP, channel: o.Channel}
	if c.http == nil {
		c.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c, nil
}

// Bounds of answers and of repetitions.
const (
	maxAnswer  = 32 << 20
	maxProblem = 64 << 10
	sendTries  = 4
)

// Command sends a command and reads its answer into out, which may be nil. The
// command is done once: it is sent again under the same key when the connection
// broke or the server is about to end. Key is the caller's; empty makes one.
func (c *Client) Command(ctx context.Context, name, key string, in, out any) error {
	return c.post(ctx, "/v1/commands/"+url.PathEscape(name), key, in, out)
}

// post sends a body under a key, more than once if it must.
func (c *Client) post(ctx context.Context, path, key string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return belay.Errorf(belay.CodeBadCommand, "the command can't be written as JSON").Wrap(err)
	}
	if key == "" {
		key = belay.NewID("key")
	}
	for try := 0; ; try++ {
		var again bool
		if again, err = c.once(ctx, path, key, body, out); !again || try == sendTries-1 {
			return err
		}
		if err := pause(ctx, backoff(try)); err != nil {
			return err
		}
	}
}

// once sends a body; again reports whether it may be sent again.
func (c *Client) once(ctx context.Context, path, key string, body []byte, out any) (again bool, err error) {
	r, err := c.request(ctx, http.MethodPost, path, nil, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	status, err := c.do(r, out)
	return status == http.StatusServiceUnavailable || status == 0 && ctx.Err() == nil, err
}

// Submit is what POST /v1/runs takes.
type Submit struct {
	Agent    string `json:"agentId"`
	Key      string `json:"sessionKey"` // names the session: a new key makes a new one
	Message  string `json:"message"`
	Priority string `json:"priority,omitempty"`
}

// Run gives an agent something to do and reads the answer into out. Key is as
// for Command.
func (c *Client) Run(ctx context.Context, key string, s Submit, out any) error {
	return c.post(ctx, "/v1/runs", key, s, out)
}

// Get reads a path into out.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	r, err := c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	_, err = c.do(r, out)
	return err
}

// Document copies what a path answers with, which need not be JSON.
func (c *Client) Document(ctx context.Context, path string, query url.Values, w io.Writer) error {
	r, err := c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return unreachable(err)
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return err
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return unreachable(err)
	}
	return nil
}

// do sends a request and reads its answer into out. The status is 0 where the server
// didn't answer.
func (c *Client) do(r *http.Request, out any) (status int, err error) {
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, unreachable(err)
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return resp.StatusCode, err
	}
	return resp.StatusCode, answer(resp, out)
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, error) {
	at := *c.base
	at = *at.JoinPath(path)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%q is no path", path).Wrap(err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.channel != "" {
		r.Header.Set("Belay-Channel", c.channel)
	}
	return r, nil
}

func answer(resp *http.Response, out any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return unreachable(err)
	}
	if len(body) > maxAnswer {
		return belay.Errorf(belay.CodeTooLarge, "the answer has more than %d bytes", maxAnswer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return belay.Errorf(belay.CodeInternal, "the answer is not what was asked for").Wrap(err)
	}
	return nil
}

// Refusal is why the server didn't do what it was asked for.
type Refusal struct {
	Code   belay.Code `json:"code"`
	Detail string     `json:"detail"`
	Field  string     `json:"field,omitempty"`
	Hint   string     `json:"hint,omitempty"`
}

func (r *Refusal) error() error {
	return &belay.Error{Code: r.Code, Message: r.Detail, Where: r.Field, Hint: r.Hint}
}

// refusal is the error that an answer is; nil for one that isn't.
func refusal(resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return unreachable(err)
	}
	var p Refusal
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "application/problem+json" && json.Unmarshal(body, &p) == nil && p.Code != "" {
		return p.error()
	}
	return belay.Errorf(belay.CodeInternal, "the server answered %s", strings.TrimSpace(resp.Status)).
		WithHint("is it a server of belay, and is the address its own?")
}

// unreachable is the error of a server that didn't answer.
func unreachable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return belay.Errorf(belay.CodeUnreachable, "the server didn't answer").Wrap(err).WithHint("does it run? belay serve")
}

// backoff grows from a tenth of a second to ten seconds; half of it is chance,
// so that many clients don't come back together.
func backoff(try int) time.Duration {
	d := min(100*time.Millisecond<<min(try, 10), 10*time.Second)
	return d/2 + rand.N(d/2)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
