// Package model is the seam to language models: one method that yields chunks.
// What differs between vendors is data. A provider doesn't retry, doesn't log
// and doesn't know of policy or sessions.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/belay-run/belay"
)

// Request is what a provider sends. Its slices are shared: read only.
type Request struct {
	Model     string
	System    string
	Messages  []belay.Message
	Note      string // a last instruction of the runtime, after the messages
	Tools     []ToolDef
	ForceTool string          // the tool that must be called, where the provider can force it
	MaxOutput int             // tokens; 0 is the provider's default
	Effort    string          // how much to reason: low, medium, high; empty is the provider's default
	Output    json.RawMessage // JSON Schema that the answer's text must fit; nil is none
	Attempt   int             // from 1
	Failures  int             // attempts of this request that failed; a crash between two attempts is none
	Key       string          // the same for every attempt of one request

	// Content reads what a part of a message names by digest: the bytes of an
	// image or a file.
	Content func(ctx context.Context, d belay.Digest) ([]byte, error) `json:"-"`
}

// ToolDef is a tool as a model sees it.
type ToolDef struct {
	Name   string          `json:"name"`
	Doc    string          `json:"description"`
	Schema json.RawMessage `json:"parameters"`
	Native bool            `json:"-"` // the vendor's own search of the web
}

// Chunk is a piece of an answer. Text comes in pieces; a call, an image and an
// echo come whole. The last chunk has Stop set.
type Chunk struct {
	Text      string
	Reasoning string
	Call      *Call
	Image     *Image
	Echo      *belay.Echo // to be sent back before the rest of this answer, in this order
	Search    *Search
	Usage     *belay.Usage
	Stop      string // stop, tool_calls, length, refused
}

// Size is how many bytes of the answer came with the chunk, without pictures.
func (c *Chunk) Size() int {
	n := len(c.Text) + len(c.Reasoning) + c.Echo.Size()
	if c.Call != nil {
		n += len(c.Call.ID) + len(c.Call.Name) + len(c.Call.Args) + c.Call.Echo.Size()
	}
	if c.Search != nil {
		n += c.Search.Size()
	}
	return n
}

// Call is a tool call as the model wrote it: Args may be broken JSON.
type Call struct {
	ID   string // the provider's
	Name string
	Args string
	Echo *belay.Echo // to be sent back with the call
}

// Search is a search of the web that the vendor made within an answer.
type Search struct {
	Query   string
	Found   []Page
	Problem string // the vendor's word for why it failed; empty: it didn't
}

// Size is how many bytes it has.
func (s *Search) Size() int {
	n := len(s.Query) + len(s.Problem)
	for _, p := range s.Found {
		n += len(p.Title) + len(p.URL)
	}
	return n
}

// Page is what a search found.
type Page struct {
	Title string // may be empty
	URL   string
}

// Image is a picture that a model made.
type Image struct {
	Media string // such as image/png
	Data  []byte
}

// Provider talks to one vendor. Stream yields chunks until the one with Stop,
// or an error; a stream that ends without either is broken and the consumer
// treats it as a transient failure. Breaking the loop or ending ctx stops it.
type Provider interface {
	Stream(ctx context.Context, r Request) iter.Seq2[Chunk, error]
}

// Abilities are what a model can do that not every model can.
type Abilities struct {
	Images bool // takes pictures; a request to another model has none
	Files  bool // takes documents such as PDF
	Search bool // its vendor can search the web for it
}

// Able is a provider that knows what its models can do. One that isn't Able
// takes text only.
type Able interface {
	Abilities(model string) Abilities
}

// AbilitiesOf are a provider's abilities with a model.
func AbilitiesOf(p Provider, model string) Abilities {
	if a, ok := p.(Able); ok {
		return a.Abilities(model)
	}
	return Abilities{}
}

// Error is a failure of a provider.
type Error struct {
	Class      string // transient, rate_limited, overflow, bad_request, auth, refused, internal
	Code       string // stable, upper case, more exact than the class: HTTP_503, SILENT; empty: the class says all
	Message    string // without secrets
	RetryAfter time.Duration
	Hint       string // what a person can do about it; may be empty
	Limit      int64  // of class overflow: the model's context in tokens, as its server named it; 0: it didn't
}

// Error is the class and the message.
func (e *Error) Error() string { return e.Class + ": " + e.Message }

// TooLarge is the error of an answer that is longer than anybody takes. Whoever sends so much
// is not asked again.
func TooLarge(format string, args ...any) *Error {
	return &Error{Class: "internal", Code: "TOO_LARGE", Message: fmt.Sprintf(format, args...)}
}

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool { return e.Class == "transient" || e.Class == "rate_limited" }

// AsError is err as an *Error: unknown errors are transient, except the
// context's own.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: "transient", Message: err.Error()}
}
