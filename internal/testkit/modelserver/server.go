// Package modelserver is the far end of providers, for tests: a server that
// speaks the vendors' protocols, answers as scripted and fails as scripted. It
// follows the vendors' descriptions of the protocols and shares no code with the
// adapters that it tests.
package modelserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/model/modeltest"
)

// Scene is what the server says to one request, and how it fails.
type Scene struct {
	modeltest.Scene
	Fault Fault
}

// Event is one message of a server-sent stream.
type Event struct {
	Name string // empty: the stream has no names
	Data string
}

// Asked is a request as the server has read it.
type Asked struct {
	Protocol string
	N        int // which request of its key it is, from 1
	Model    string
	Key      string   // that was sent with it
	System   string   // instructions
	Tools    []string // names, in order
	Texts    []string // of the messages, in order, the results of calls included
	Results  int      // results of calls among the messages
	Echoes   []string // what the vendor gave with its answers and got back
	Images   int
	Files    int
	Force    string // the tool that must be called
	Header   http.Header
	Body     []byte
}

// Protocol is how a vendor's server hears and speaks.
type Protocol struct {
	Name string
	// Path reports whether a request is of this protocol.
	Path func(r *http.Request) bool
	// Read takes a request apart; an error is one that the vendor would refuse.
	Read func(r *http.Request, body []byte) (Asked, error)
	// Events are a scene as a stream: reasoning, text, calls, usage and stop, or
	// text only where the scene fails, breaks off or hangs after it.
	Events func(a Asked, s modeltest.Scene) []Event
	// Problem is the body of a failure with a status.
	Problem func(status int, class, message string) string
	// Broken is an event that says that the answer failed, inside a stream.
	Broken func(class, message string) Event
}

// Protocols lists all.
var Protocols = []Protocol{chat, responses, messages, gemini}

// Server answers requests of every protocol.
type Server struct {
	// Answer says what comes; it may be called by several requests at once.
	Answer func(a Asked) Scene

	mu    sync.Mutex
	asked map[string]int
	heard []Asked
	keep  bool
}

// New is a server that says what answer tells and remembers what it was asked.
func New(answer func(a Asked) Scene) *Server {
	return &Server{Answer: answer, asked: map[string]int{}, keep: true}
}

// Heard are the requests so far.
func (s *Server) Heard() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Asked(nil), s.heard...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	for i := range Protocols {
		if p := &Protocols[i]; p.Path(r) {
			s.serve(w, r, p, body)
			return
		}
	}
	http.Error(w, `{"error":{"message":"no such path: `+r.URL.Path+`"}}`, http.StatusNotFound)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, p *Protocol, body []byte) {
	a, err := p.Read(r, body)
	if err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, p.Problem(http.StatusBadRequest, "bad_request", err.Error()))
		return
	}
	a.Protocol, a.Header, a.Body = p.Name, r.Header, body
	s.note(&a)
	scene := s.Answer(a)
	if f := &scene.Fault; f.Status == 0 && scene.Fail != "" && scene.Text == "" {
		f.Status = statusOf(scene.Fail)
		f.Class = scene.Fail
	}
	play(r.Context(), w, p, a, scene)
}

// note counts the request and remembers it.
func (s *Server) note(a *Asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[a.Model]++
	a.N = s.asked[a.Model]
	if s.keep {
		s.heard = append(s.heard, *a)
	}
}

// statusOf is the status that a vendor answers a class of failures with.
func statusOf(class string) int {
	return map[string]int{"transient": 503, "rate_limited": 429, "overflow": 400, "bad_request": 422, "auth": 401, "refused": 400, "internal": 500}[class]
}

// play answers with a scene.
func play(ctx context.Context, w http.ResponseWriter, p *Protocol, a Asked, s Scene) {
	f := s.Fault
	if f.Before != 0 && !wait(ctx, f.Before) {
		return
	}
	if f.Kind == NoHTTP {
		stranger(w)
		return
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	if s.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(s.RetryAfter/time.Second)))
	}
	if f.Status != 0 {
		body := f.Body
		if body == "" {
			body = p.Problem(f.Status, f.Class, "it failed")
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(f.Status)
		io.WriteString(w, body) //nolint:errcheck // the client may have left
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	f.send(ctx, w, frames(p, a, s))
}

// frames are the events of a scene as they are sent.
func frames(p *Protocol, a Asked, s Scene) [][]byte {
	events := p.Events(a, s.Scene)
	if s.Fail != "" && s.Text != "" {
		events = append(events, p.Broken(s.Fail, "it failed"))
	}
	var out [][]byte
	for _, e := range events {
		var b bytes.Buffer
		if e.Name != "" {
			fmt.Fprintf(&b, "event: %s\n", e.Name)
		}
		fmt.Fprintf(&b, "data: %s\n\n", e.Data)
		out = append(out, b.Bytes())
	}
	if s.Cut {
		out = append(out, nil) // here the connection is cut
	}
	if s.Hang {
		out = append(out, hang)
	}
	return out
}

// hang stands for a stream that stays open without a word.
var hang = []byte{}

func wait(ctx context.Context, d time.Duration) bool {
	if d < 0 {
		<-ctx.Done()
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
