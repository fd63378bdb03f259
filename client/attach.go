package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/belay-run/belay"
)

// AttachTo names the program, the offset to start from, and callbacks for what
// isn't output.
type AttachTo struct {
	Session  belay.SessionID
	Process  belay.ProcessID
	Offset   int64 // of the first byte; a negative one counts from what there is
	ReadOnly bool  // the server takes no input from this client
	Tries    int   // connections in a row that fail before Read gives up; 0: until its context ends

	Missing func(from, to int64) // these bytes aren't kept
	Refused func(error)          // the server didn't do what was asked for: a *belay.Error with its code
}

// Frame is a text frame of the server to an attached client: one of its fields.
// Binary frames are output.
type Frame struct {
	Hello     *Attached `json:"hello,omitempty"`
	Truncated *Gap      `json:"truncated,omitempty"`
	Exit      *Exit     `json:"exit,omitempty"`
	Error     *Refusal  `json:"error,omitempty"`
}

// Attached is the server's greeting to an attached client.
type Attached struct {
	Process belay.ProcessID `json:"processId"`
	Session belay.SessionID `json:"sessionId"`
	Argv    []string        `json:"argv"`
	PID     int             `json:"pid"`
	Offset  int64           `json:"offset"`         // of the first byte that comes
	Size    int64           `json:"size"`           // bytes there are so far
	Input   string          `json:"input"`          // open, closed, or read_only: not for this client
	Live    bool            `json:"live"`           // the output comes as it is printed; else as it is recorded
	Rows    int             `json:"rows,omitempty"` // of its terminal; 0: it has none
	Cols    int             `json:"cols,omitempty"`
}

// Gap is a part of the output that isn't kept.
type Gap struct {
	From   int64 `json:"from"`
	Offset int64 `json:"offset"` // of the first byte behind it
}

// Exit is how a program ended.
type Exit struct {
	Code     int    `json:"code"`
	Signal   string `json:"signal,omitempty"`
	Reason   string `json:"reason"`          // exited, timeout, idle, output, cancelled, shutdown, lost, …
	Limit    string `json:"limit,omitempty"` // of its boundary, that it met
	Position int64  `json:"position"`        // of the fact
}

// Ask is a text frame of an attached client: one of its fields. Binary frames are
// input.
type Ask struct {
	Resize *Size `json:"resize,omitempty"`
	EOF    bool  `json:"eof,omitempty"`
}

// Size is that of a terminal.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Terminal is a program that a client is attached to. One goroutine may read
// while others write, resize and close.
type Terminal struct {
	c  *Client
	to AttachTo

	at     int64  // bytes that came
	left   []byte // of those, the ones that Read hasn't given yet
	hello  Attached
	exit   *Exit
	last   error // reported by the server
	failed int   // connections in a row that brought nothing

	mu     sync.Mutex
	conn   *websocket.Conn // nil: there is none at the moment
	quiet  *time.Timer     // cuts it off when the server says nothing for long
	closed bool
}

// Bounds of frames, in bytes.
const (
	maxTypedAtOnce = 16 << 10
	maxShownAtOnce = 1 << 20
)

// AttachProtocol is what an attachment speaks over WebSocket.
const AttachProtocol = "belay.v1"

// Codes of a close that aren't the standard's; connecting again is useless.
const (
	CloseToken websocket.StatusCode = 4401 // the token isn't good any more
	CloseIdle  websocket.StatusCode = 4408 // there was no input or output for too long
)

// Attach attaches to a program of a session. What the server refuses is a
// *belay.Error with its code.
func (c *Client) Attach(ctx context.Context, to AttachTo) (*Terminal, error) {
	t := &Terminal{c: c, to: to, at: to.Offset}
	err := t.connect(ctx)
	for err == nil && t.hello.Input == "" {
		err = t.frame(ctx)
	}
	if err != nil {
		t.Close() //nolint:errcheck // it isn't used
		return nil, err
	}
	return t, nil
}

// Attached is what the server said last when the client was attached.
func (t *Terminal) Attached() Attached { return t.hello }

// Offset is that of the next byte that Read gives.
func (t *Terminal) Offset() int64 { return t.at - int64(len(t.left)) }

// Exit is how the program ended, once Read has returned io.EOF; else nil.
func (t *Terminal) Exit() *Exit { return t.exit }

// Read returns what the program printed, in order; gaps are reported to Missing.
// When the connection breaks it is made again behind the last byte that came. It
// returns io.EOF when the program has ended and all of its output was given, a
// *belay.Error when the server refuses, and the context's error; after the
// latter it may be called again.
func (t *Terminal) Read(ctx context.Context, p []byte) (int, error) {
	for len(t.left) == 0 {
		if t.exit != nil {
			return 0, io.EOF
		}
		if err := t.frame(ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.left)
	t.left = t.left[n:]
	return n, nil
}

// connect makes a connection and reads the greeting.
func (t *Terminal) connect(ctx context.Context) error {
	query := url.Values{"offset": {strconv.FormatInt(t.at, 10)}}
	if t.to.ReadOnly {
		query.Set("readOnly", "true")
	}
	path := "/v1/sessions/" + url.PathEscape(string(t.to.Session)) + "/processes/" + url.PathEscape(string(t.to.Process)) + "/attach"
	r, err := t.c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	var quiet *time.Timer
	conn, resp, err := websocket.Dial(ctx, r.URL.String(), &websocket.DialOptions{HTTPClient: t.c.http, HTTPHeader: r.Header, Subprotocols: []string{AttachProtocol},
		OnPingReceived: func(context.Context, []byte) bool { quiet.Reset(silence); return true }})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return refusal(resp)
		}
		return unreachable(err)
	}
	conn.SetReadLimit(maxShownAtOnce)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		conn.CloseNow() //nolint:errcheck // the connection is closing
		return belay.Errorf(belay.CodeBadState, "the terminal is closed")
	}
	quiet = time.AfterFunc(silence, func() { conn.CloseNow() }) //nolint:errcheck // reads return it
	t.conn, t.quiet = conn, quiet
	return nil
}

// frame takes one frame, over a new connection if there is none.
func (t *Terminal) frame(ctx context.Context) error {
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	var err error
	if conn == nil {
		err = t.connect(ctx)
	} else {
		var kind websocket.MessageType
		var data []byte
		if kind, data, err = conn.Read(ctx); err == nil {
			t.failed = 0
			if kind == websocket.MessageText {
				return t.said(data)
			}
			t.left, t.at = data, t.at+int64(len(data))
			return nil
		}
		t.drop(conn)
		err = t.ended(err)
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	t.failed++
	if permanent(err) || t.to.Tries > 0 && t.failed >= t.to.Tries {
		return err
	}
	if t.failed == 1 { // it worked; most likely it works again
		return pause(ctx, rand.N(50*time.Millisecond))
	}
	return pause(ctx, backoff(t.failed-2))
}

// said is what a text frame means.
func (t *Terminal) said(data []byte) error {
	var f Frame
	if err := json.Unmarshal(data, &f); err != nil {
		return belay.Errorf(belay.CodeInternal, "the server said what isn't understood").Wrap(err)
	}
	switch {
	case f.Hello != nil:
		t.hello, t.at = *f.Hello, f.Hello.Offset
	case f.Truncated != nil:
		t.at = f.Truncated.Offset
		if t.to.Missing != nil {
			t.to.Missing(f.Truncated.From, f.Truncated.Offset)
		}
	case f.Exit != nil:
		t.exit = f.Exit
	case f.Error != nil:
		t.last = f.Error.error()
		if t.to.Refused != nil {
			t.to.Refused(t.last)
		}
	}
	return nil
}

// ended is the error of a connection that ended.
func (t *Terminal) ended(err error) error {
	switch websocket.CloseStatus(err) {
	case CloseToken:
		if t.last != nil {
			return t.last
		}
		return belay.Errorf(belay.CodeUnauthorized, "the token isn't good any more")
	case CloseIdle:
		return belay.Errorf(belay.CodeBadState, "there was no input or output for too long").WithHint("attach again")
	case websocket.StatusMessageTooBig:
		return belay.Errorf(belay.CodeTooLarge, "a frame was too large")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return belay.Errorf(belay.CodeBadState, "the terminal is closed")
	}
	return unreachable(errors.New(err.Error())) // a context that ended here is none of the caller's
}

func (t *Terminal) drop(conn *websocket.Conn) {
	conn.CloseNow() //nolint:errcheck // it is of no use
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == conn {
		t.quiet.Stop()
		t.conn = nil
	}
}

// send sends a frame over the connection that there is. One that breaks is made
// again by Read; what was under way isn't sent again.
func (t *Terminal) send(ctx context.Context, kind websocket.MessageType, data []byte) error {
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	if conn == nil {
		return belay.Errorf(belay.CodeUnreachable, "the connection to the server is broken").WithHint("it is made again by reading")
	}
	if err := conn.Write(ctx, kind, data); err != nil {
		return unreachable(err)
	}
	return nil
}

// Write types on the program. It returns before the program has read the input:
// what the program didn't take is reported to Refused.
func (t *Terminal) Write(ctx context.Context, p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(len(p), n+maxTypedAtOnce)]
		if err := t.send(ctx, websocket.MessageBinary, piece); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// Resize gives the program's terminal another size.
func (t *Terminal) Resize(ctx context.Context, cols, rows int) error {
	return t.ask(ctx, Ask{Resize: &Size{cols, rows}})
}

// CloseInput ends the input; on a terminal it is Ctrl-D.
func (t *Terminal) CloseInput(ctx context.Context) error { return t.ask(ctx, Ask{EOF: true}) }

func (t *Terminal) ask(ctx context.Context, q Ask) error {
	data, err := json.Marshal(q)
	if err != nil {
		return belay.Errorf(belay.CodeBadCommand, "it can't be written as JSON").Wrap(err)
	}
	return t.send(ctx, websocket.MessageText, data)
}

// Close detaches. The program continues.
func (t *Terminal) Close() error {
	t.mu.Lock()
	conn := t.conn
	t.closed = true
	t.mu.Unlock()
	if conn == nil {
		return nil
	}
	defer t.drop(conn)
	err := conn.Close(websocket.StatusNormalClosure, "")
	if websocket.CloseStatus(err) != -1 || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		err = nil // the server has closed, too
	}
	return err
}
