// Package tool is the seam between the runtime and what an agent can do. A
// tool gets its arguments, a workspace and a sink; it never sees policy,
// session, store or model. What governs it is in its Spec, which the scheduler
// enforces.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
)

// Spec describes a tool and how it may be run.
type Spec = belay.ToolSpec

// Call is one attempt of a call.
type Call struct {
	ID      belay.CallID
	Session belay.SessionID // whose call it is
	Attempt int
	Args    json.RawMessage
	Dir     string   // absolute path of the workspace
	Root    *os.Root // the workspace; the only way to files
	// Expect maps paths to the digest this thread last saw, or "absent". A path
	// that isn't in it was never read by the thread.
	Expect map[string]string
	// Published is what this thread has published so far, by name. Only tools
	// with CapPublish get it.
	Published map[string]Published
	Shell     *belay.Shell // that its command lines are for; nil: /bin/sh
	Box       *Box         // that its programs must run in; nil: in none
	Quiet     []string     // variables that its programs get besides: nothing that a repository sets runs
	// Process is the id that a program of this attempt is recorded under.
	Process belay.ProcessID
	// Processes are those of the thread. Only tools with CapProcesses and those
	// that start programs get them.
	Processes Processes
	// Reading is what the thread's conversation has in part only. Only tools with
	// CapReading get it.
	Reading Reading
	// Catalog are the tools that the turn offers by their names.
	Catalog Finder
	// Commands performs a command of the runtime for the call; nil: there are none. Use
	// Command.
	Commands func(ctx context.Context, name string, body []byte) ([]byte, error)
	// Input is a person's answer to what the attempt before asked; nil: the call begins.
	Input *Input
	Sink  Sink
}

// Input is a person's answer to what a call asked.
type Input struct {
	State   []byte          // of the question, as the tool gave it
	Answer  *ModelAnswer    // with accept, to a question for a model's answer
	Action  string          // accept, decline, or cancel without an answer
	Content json.RawMessage // with accept
}

// NeedsInput ends an attempt whose call continues when a person has answered. It isn't
// a failure.
type NeedsInput struct {
	event.FormAsked
	Text  string // the question as a person reads it
	State []byte // what another attempt continues from; nil: Hold waits with the call

	Request *ModelRequest // a model is to answer this, if a person says yes; nil: the person answers
}

// ModelRequest is what a call wants a model to answer.
type ModelRequest struct {
	System    string          `json:"system,omitempty"`
	Messages  []belay.Message `json:"messages"`
	MaxTokens int64           `json:"maxTokens,omitempty"`
}

// ModelAnswer is what the model said.
type ModelAnswer struct {
	Model string `json:"model"`
	Text  string `json:"text"`
	Stop  string `json:"stop"` // stop, length
}

// Error implements error.
func (e *NeedsInput) Error() string { return "a person has to answer: " + e.Text }

// Holder is a tool whose calls can wait elsewhere while a person answers. Hold returns
// when ctx ends, or with the error of a call that doesn't wait.
type Holder interface {
	Hold(ctx context.Context, c Call) error
}

// Finder finds tools that a turn offers by their names.
type Finder interface {
	// Find returns the tools that fit a query best, the best first: a tool of that very
	// name, or those with the words of it. None: nothing does.
	Find(query string) []Spec
}

// Progress is how far a call is.
type Progress struct {
	Done, Total int64  // of one unit; a total of 0 isn't known
	Text        string // what it does now
}

// Reading answers questions about texts that a conversation has in part only. What
// the thread may not know it doesn't have.
type Reading interface {
	// Answer is what a text says, by the text's name. Errors are a *Error.
	Answer(ctx context.Context, source string, q Question) (string, error)
}

// Question is what is asked of a text: a chunk by its number, lines, or words. Without
// any it is which chunks there are.
type Question struct {
	Chunk       int // from 1
	Offset      int // bytes of the chunk that are left out
	Line, Until int // lines, from 1; Until 0 is the first one alone
	Words       string
}

// Box is the boundary of a call's programs. Whoever starts one gives it the box
// and lets it begin when the boundary stands; what was applied is recorded then.
type Box struct {
	process.Box
	// Is identifies the boundary: a program that was started in one serves the calls
	// that have the same.
	Is belay.Digest
	// Output is how many bytes a program may print before it is ended; 0 is what
	// the tool says.
	Output int64
	// Stopped tells, of a program that ended, what the boundary stopped, as far as
	// anybody can tell; nil is nothing. said is its output, dir where it ran.
	Stopped func(end process.Exit, said, dir string) *event.SandboxViolation
	// Notes tell, of a program that ended, what the boundary kept from it without
	// stopping it; nil is nothing.
	Notes func(end process.Exit, said, dir string) []string
}

// EndOutput is the reason for which a program is ended that printed too much.
const EndOutput = "output"

// CodeViolation is the code of a call that its boundary stopped.
const CodeViolation = "BOUNDARY_VIOLATION"

// Sink takes what a call produces while it runs.
type Sink interface {
	Contents
	// Fact records something now: process.*, artifact.changed, sandbox.applied,
	// output.*. It returns after the fact is queued for the log; facts keep
	// their order and are durable before the call's result is.
	Fact(p event.Payload)
	// Durable is Fact, and waits until the fact is committed.
	Durable(p event.Payload) error
	// Scrub is w without registered secrets, also of one that comes in pieces.
	// Close writes what is held back; it doesn't close w.
	Scrub(w io.Writer) io.WriteCloser
	// Cut returns what content[from:to] is without secrets: of a part alone it may
	// not be known that there is one. It is for the goroutine of the call.
	Cut(content []byte) func(from, to int) []byte
	// Restore puts the values that a content has where marks stand for them in a
	// text. unknown is a mark that stands for none of them.
	Restore(text string, content []byte) (restored, unknown string)
	// Print shows a piece of output to followers; it is not recorded. The offset is its
	// place in all that the call prints, in bytes: pieces may be left out.
	Print(offset int64, text string)
	// Progress tells how far the call is. The newest one counts: it is recorded at
	// most every two seconds, and is the output of a call that ends without one because
	// its time is up, it is cancelled or lost.
	Progress(p Progress)
}

// Contents are what is kept beside the log, by digest.
type Contents interface {
	// Keep stores content by digest. ErrHoldsSecret: it isn't kept, because it
	// holds a value that must not reach the store.
	Keep(content []byte, media string) (belay.Ref, error)
	// Output streams content of unknown size into the store.
	Output(media string) (OutputWriter, error)
	// Kept reads content back; an error when it isn't kept.
	Kept(d belay.Digest) ([]byte, error)
	// Part reads up to n bytes of kept content from an offset on; fewer at its
	// end. An error when it isn't there: expiry is recorded in facts.
	Part(d belay.Digest, offset, n int64) ([]byte, error)
}

// ErrHoldsSecret means that content wasn't kept because a registered secret is in it.
var ErrHoldsSecret = errors.New("the content holds a registered secret")

// OutputWriter streams content of unknown size into the store.
type OutputWriter interface {
	Write(p []byte) (int, error)
	Commit() (belay.Ref, error)
	Close() error
}

// Result is a call's good end. Text is what the model reads; when it is longer
// than the tool's output limit the engine keeps the whole and shows head and tail.
type Result struct {
	Text   string
	Output *belay.Ref // the whole output, when the tool kept it itself; Text is then a preview
	// Attached are pictures and documents that the tool kept, at most MaxAttached: a model
	// that takes them sees them after the text.
	Attached []belay.Attachment
	// Data is the result as one JSON value. It must fit the output schema of the tool's
	// Spec, or the call fails with CodeBadResult. Where there is no Text the model reads it.
	Data  json.RawMessage
	Files []event.FileSeen // what the thread knows of files from now on
	Exit  int              // of the command that the call ran to its end
	Left  Running          // what continues after the call; nil: nothing does
}

// Bounds of what a result brings besides its text. A result beyond them is one that a
// tool may not return: CodeBadResult.
const (
	MaxAttached = 16      // pictures and documents
	MaxData     = 4 << 20 // bytes of its data
)

// CodeBadResult is the code of a call whose tool did its work and returned something else
// than it promised. The result's text stays.
const CodeBadResult = "BAD_RESULT"

// Error is a call's bad end: data for the model, not an error of the runtime.
type Error struct {
	event.Problem
	Text   string // output so far
	Output *belay.Ref
	Files  []event.FileSeen
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// CapProcess marks tools that start processes: their boundary is recorded
// before each call.
const CapProcess = "process"

// CapProcesses marks tools that see to programs that calls left running.
const CapProcesses = "processes"

// CapNetwork marks tools that wait for others on the network.
const CapNetwork = "network"

// CapPublish marks tools that publish artifacts: they get the list of what was
// published before.
const CapPublish = "publish"

// CapReading marks tools that read what the conversation has in part only. They are
// offered where there is something to read.
const CapReading = "reading"

// Published is the newest version of an artifact.
type Published = belay.Published

// Failure classes. Source: DESIGN, Tools.
const (
	BadArguments = "bad_arguments"
	NotFound     = "not_found"
	Denied       = "denied"
	Conflict     = "conflict"
	Transient    = "transient"
	Timeout      = "timeout"
	Lost         = "lost"
	Internal     = "internal"
)

// Tool is something an agent can do. Run returns a *Error for failures that
// the model should read; any other error is internal. It returns soon after
// ctx ends.
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, c Call) (Result, error)
}

// Recoverer is a tool whose effect can be looked up after a crash: Recover finds
// out what an attempt with the same arguments did. done means that its effect is
// there and r its result; not done means that nothing happened and it may run.
// An error of class lost means that this can't be known.
type Recoverer interface {
	Recover(ctx context.Context, c Call) (r Result, done bool, err error)
}

// DefaultTimeout bounds a call whose Spec says nothing.
const DefaultTimeout = 2 * time.Minute

// DefaultOutputLimit is how many bytes of an output the model is shown.
const DefaultOutputLimit = 16 << 10
