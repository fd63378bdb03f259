package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// ModelRequested is recorded before a request is sent. From and To name the
// range of this stream that the messages are built from.
type ModelRequested struct {
	fact
	Attempt  int    `json:"attempt"`
	Kind     string `json:"kind"`            // normal, nudge, grace, final
	Limit    string `json:"limit,omitempty"` // why it is final: time, steps, calls, loop
	Provider string `json:"provider"`
	Model    string `json:"model,omitempty"`
	From     int64  `json:"from"`             // first sequence of the range
	To       int64  `json:"to"`               // last sequence of the range
	Note     string `json:"note,omitempty"`   // the runtime's message to the model, after the range
	Tokens   int64  `json:"tokens,omitempty"` // estimate of the input; 0: nothing of it was counted
	Fixed    int64  `json:"fixed,omitempty"`  // of instructions and tools, before the model's own factor
	Room     int64  `json:"room,omitempty"`   // tokens of the model's context that are for the input; 0: not known

	MaxOutput int64 `json:"maxOutput,omitempty"` // tokens that the answer may have; 0: the provider's default

	Search string `json:"search,omitempty"` // the rule by which the model's vendor, if it can, may search the web for the answer; empty: it may not
}

// ModelDelta is a checkpoint of streaming text: the text since the last
// checkpoint.
type ModelDelta struct {
	fact
	Attempt int    `json:"attempt"`
	Offset  int64  `json:"offset,omitempty"` // bytes of the answer's text before this
	Text    string `json:"text"`
}

// ModelCompleted is a whole answer.
type ModelCompleted struct {
	fact
	Attempt int           `json:"attempt"`
	Text    belay.Content `json:"text,omitzero"`
	Calls   []ModelCall   `json:"calls,omitempty"`
	Dropped int           `json:"dropped,omitempty"` // calls over the limit, not taken
	Stop    string        `json:"stop,omitempty"`    // stop, tool_calls, length, refused; cut: the stream broke off after whole calls
	Usage   belay.Usage   `json:"usage,omitzero"`
	Echo    belay.Content `json:"echo,omitzero"` // to send back to the vendor: a JSON list of ModelEcho

	FirstMS int64 `json:"firstMs,omitempty"` // milliseconds from the request to the first piece of the answer
	TookMS  int64 `json:"tookMs,omitempty"`  // milliseconds from the request to the end

	Misfit string             `json:"misfit,omitempty"` // why the text isn't the output that the turn asks for
	Images []belay.Attachment `json:"images,omitempty"` // pictures in the answer, each also published

	Searches []ModelSearch `json:"searches,omitempty"` // what the model's vendor searched the web for
}

// ModelSearch is a search that a model's vendor made within an answer.
type ModelSearch struct {
	Query   string        `json:"query,omitempty"`
	Found   int           `json:"found,omitempty"`   // pages
	Pages   belay.Content `json:"pages,omitzero"`    // each a line: its address, and its title where there is one
	Problem string        `json:"problem,omitempty"` // the vendor's word for why it failed
}

// String says it in a few words.
func (s ModelSearch) String() string {
	if s.Problem != "" {
		return fmt.Sprintf("searched the web for %q: %s", s.Query, s.Problem)
	}
	if s.Found == 1 {
		return fmt.Sprintf("searched the web for %q: 1 page", s.Query)
	}
	return fmt.Sprintf("searched the web for %q: %d pages", s.Query, s.Found)
}

// ModelEcho is something that a vendor gave with an answer and gets back with it.
type ModelEcho struct {
	Call int        `json:"call,omitempty"` // the call it belongs to, from 1; 0: it stands before the answer
	Echo belay.Echo `json:"echo"`
}

// ModelCall is a call the answer asks for.
type ModelCall struct {
	ID         belay.CallID    `json:"id"`
	ProviderID string          `json:"providerId,omitempty"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args,omitempty"`    // canonical JSON; absent when ArgsRef is set
	ArgsRef    *belay.Ref      `json:"argsRef,omitempty"` // long arguments
	Via        string          `json:"via,omitempty"`     // the tool by which the model called it, when it is offered by its name alone
	ArgsHash   belay.Digest    `json:"argsHash"`
	Path       string          `json:"path,omitempty"`    // the file the call names, by its tool's spec
	Paths      []string        `json:"paths,omitempty"`   // the files, for a tool that names several at once
	Links      []LinkSeen      `json:"links,omitempty"`   // where its paths led, if not where their text says
	Problem    *Problem        `json:"problem,omitempty"` // why it can't run, such as unknown tool, bad arguments
}

// LinkSeen says where a path led through symbolic links.
type LinkSeen struct {
	Path string `json:"path"`           // absolute, as written in the call; may be a pattern
	Real string `json:"real,omitempty"` // absolute, without links; empty if unknown
}

// Problem is why something went wrong: for a program (Class, Code), for the
// model (Hint) and for a person (Message).
type Problem struct {
	Class     string `json:"class"` // bad_arguments, not_found, denied, conflict, transient, timeout, lost, internal
	Code      string `json:"code"`  // stable, upper case: NOT_ALONE, CONFLICT, …
	Message   string `json:"message"`
	Hint      string `json:"hint,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
}

// Refusal is the problem as a person or program reads it whose command it refuses: the
// code is the same word.
func (p Problem) Refusal() *belay.Error {
	return belay.Errorf(belay.Code(strings.ToLower(p.Code)), "%s", p.Message).WithHint("%s", p.Hint)
}

// ModelFailed ends one attempt of a request.
type ModelFailed struct {
	fact
	Attempt    int        `json:"attempt"`
	Problem    Problem    `json:"problem"`
	RetryAt    time.Time  `json:"retryAt,omitzero"` // when the next attempt may leave
	PartialRef *belay.Ref `json:"partialRef,omitempty"`
	Partial    string     `json:"partial,omitempty"`
	Offset     int64      `json:"offset,omitempty"` // bytes of text received
	Tokens     int64      `json:"tokens,omitempty"` // of that text and of the calls, as they are counted
	Charge     Charge     `json:"charge,omitempty"` // what it takes all the same
	Limit      int64      `json:"limit,omitempty"`  // of class overflow: the model's context in tokens, as the refusal says it; 0: it doesn't

	Usage belay.Usage `json:"usage,omitzero"` // of charge answer: the provider's report
}
