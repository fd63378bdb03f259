package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/sse"
)

// Types of events of a stream that are no facts.
const (
	TypeText    = "text"    // text that flows: Event.Text
	TypeOutput  = "output"  // what a running call prints: Event.Output
	TypeResync  = "resync"  // the reader was too slow, or the store was put back: what is before Cursor is in the snapshot of Event.Resync
	TypeDeleted = "deleted" // the session is gone; the stream ends
	typeEnd     = "end"     // of a run's stream
)

// Event is one event of a stream.
type Event struct {
	Type   string          // a type of the standard, or one of the types above
	Cursor string          // a stream that begins here continues behind this event
	Data   json.RawMessage // the fact in the standard's form
}

// Fact reads an event that is a fact.
func (e Event) Fact() (event.Envelope, error) {
	var f event.Envelope
	err := json.Unmarshal(e.Data, &f)
	return f, err
}

// Text is text that flows; it is no fact. Put behind the first Offset bytes of
// what came of this attempt before, it makes a beginning of the answer's text.
type Text struct {
	Stream  belay.StreamID  `json:"stream"`
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId"`
	Turn    belay.TurnID    `json:"turnId"`
	Run     belay.RunID     `json:"runId"`
	Step    belay.StepID    `json:"stepId"`
	Attempt int             `json:"attempt"`
	Kind    string          `json:"kind"` // text, reasoning
	Offset  int64           `json:"offset"`
	Text    string          `json:"text"`
}

// Text reads an event of TypeText.
func (e Event) Text() (Text, error) {
	var t Text
	err := json.Unmarshal(e.Data, &t)
	return t, err
}

// Output is what a running call prints; it is no fact, and the call's end has what was
// kept of it. Offset is its place in all that the call prints, in bytes: of what comes
// too fast pieces are left out.
type Output struct {
	Stream  belay.StreamID  `json:"stream"`
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId"`
	Turn    belay.TurnID    `json:"turnId"`
	Run     belay.RunID     `json:"runId"`
	Step    belay.StepID    `json:"stepId"`
	Call    belay.CallID    `json:"toolCallId"`
	Attempt int             `json:"attempt"`
	Offset  int64           `json:"offset"`
	Text    string          `json:"text"`
}

// Output reads an event of TypeOutput.
func (e Event) Output() (Output, error) {
	var o Output
	err := json.Unmarshal(e.Data, &o)
	return o, err
}

// Resync is what a reader begins with again.
type Resync struct {
	Position int64           `json:"position"` // facts up to here are in the snapshot
	Snapshot json.RawMessage `json:"snapshot"` // of the session; absent for the stream of the whole store
}

// Resync reads an event of TypeResync.
func (e Event) Resync() (Resync, error) {
	var r Resync
	err := json.Unmarshal(e.Data, &r)
	return r, err
}

// StreamOptions say what to follow.
type StreamOptions struct {
	Since string // a cursor, "start", "now", or the position of a command's answer; empty is the route's default
	Types string // types with commas between them; "model.*" is a family, "text" and "output" what flows; empty is all
	Tries int    // connections in a row that bring nothing before it gives up; 0: until the context ends

	Broke  func(error) // called for each connection that broke, before the next one is made; may be nil
	Opened func()      // called for each connection that the server accepted; may be nil
}

// silence is how long a connection may bring nothing, not even a sign of life.
const silence = 45 * time.Second

// Stream follows a route such as /v1/sessions/ID/stream. When the connection
// breaks it connects again behind the last event that was handed over, so that
// there is neither gap nor repetition of facts; streamed text is repeated from
// its beginning. It ends when the context does, with its error; when the server
// refuses, with a *belay.Error; and without an error when the stream is
// complete.
func (c *Client) Stream(ctx context.Context, path string, o StreamOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := follower{c: c, path: path, o: o, yield: yield}
		for failed := 0; ; {
			over, err := s.connect(ctx)
			if over {
				return
			}
			wait := rand.N(50 * time.Millisecond) // it worked; most likely it works again
			if s.got {
				failed = 0
			} else {
				failed++
				wait = max(backoff(failed-1), s.wish)
			}
			if ctx.Err() == nil && !permanent(err) && (o.Tries <= 0 || failed < o.Tries) {
				if o.Broke != nil {
					o.Broke(err)
				}
				if err = pause(ctx, wait); err == nil {
					continue
				}
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			yield(Event{}, err)
			return
		}
	}
}

// permanent reports whether asking again is no use.
func permanent(err error) bool {
	switch belay.CodeOf(err) {
	case belay.CodeUnreachable, belay.CodeDraining, belay.CodeTooMany, belay.CodeStoreBusy, belay.CodeInternal:
		return false
	}
	return true
}

// follower is a stream over its connections.
type follower struct {
	c      *Client
	path   string
	o      StreamOptions
	yield  func(Event, error) bool
	cursor string
	got    bool          // the connection brought something
	wish   time.Duration // how long the server wants it to wait
}

// connect follows over one connection. Over: nothing more is wanted or will come.
func (s *follower) connect(ctx context.Context) (over bool, err error) {
	s.got = false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := url.Values{}
	for name, v := range map[string]string{"since": s.o.Since, "types": s.o.Types} {
		if v != "" {
			query.Set(name, v)
		}
	}
	r, err := s.c.request(ctx, http.MethodGet, s.path, query, nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if s.cursor != "" {
		r.Header.Set("Last-Event-ID", s.cursor)
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	resp, err := s.c.http.Do(r)
	if err != nil {
		return false, unreachable(err)
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return false, err
	}
	if s.o.Opened != nil {
		s.o.Opened()
	}
	if resp.StatusCode == http.StatusNoContent {
		return true, nil
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		return false, belay.Errorf(belay.CodeUsage, "%s is no stream", s.path)
	}
	return s.events(sse.NewReader(alive{resp.Body, quiet}, maxEvent))
}

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 8 << 20

// events hands over what comes.
func (s *follower) events(r *sse.Reader) (over bool, err error) {
	r.ID = s.cursor
	for {
		e, err := r.Next()
		s.wish = r.Retry
		switch {
		case errors.Is(err, sse.ErrTooLong):
			return false, belay.Errorf(belay.CodeTooLarge, "an event of the stream has more than %d bytes", maxEvent)
		case err != nil:
			return false, unreachable(err)
		}
		s.got = true
		if e.Name == typeEnd {
			return true, nil
		}
		if !s.yield(Event{Type: e.Name, Cursor: r.ID, Data: e.Data}, nil) {
			return true, nil
		}
		if s.cursor = r.ID; e.Name == TypeDeleted {
			return true, nil
		}
	}
}

// alive puts off the end of a connection whenever something comes.
type alive struct {
	io.Reader
	quiet *time.Timer
}

func (a alive) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.quiet.Reset(silence)
	}
	return n, err
}
