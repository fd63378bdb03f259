package event

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/belay-run/belay"
)

// ToolCatalogResolved fixes the inventory of a turn.
type ToolCatalogResolved struct {
	fact
	Tools  []string     `json:"tools"`  // names, in the order the model sees them
	Digest belay.Digest `json:"digest"` // of the definitions
}

// ToolStarted is recorded before a tool runs, so that a crash leaves a trace.
type ToolStarted struct {
	fact
	Name     string       `json:"name"`
	Attempt  int          `json:"attempt"`
	Effect   string       `json:"effect"` // pure, idempotent, recoverable, at_most_once
	ArgsHash belay.Digest `json:"argsHash"`
	Expect   string       `json:"expect,omitempty"`   // digest the target file must still have, or "absent"
	Expects  []FileSeen   `json:"expects,omitempty"`  // the same for each file, if the call names several
	Boundary string       `json:"boundary,omitempty"` // its boundary
	ReadOnly bool         `json:"readOnly,omitempty"`
	Polling  bool         `json:"polling,omitempty"`
	Taint    []string     `json:"taint,omitempty"`   // untrusted origin of its result, as kind:origin
	Waits    bool         `json:"waits,omitempty"`   // the turn answers it when what it waits for has come
	Recover  bool         `json:"recover,omitempty"` // the attempt only checks what the one before did
	Answer   string       `json:"answer,omitempty"`  // it goes on with a person's answer: accept, decline; or with none: cancel
}

// ToolResult is the successful end of a call.
type ToolResult struct {
	fact
	Name    string          `json:"name"`
	Attempt int             `json:"attempt"`
	Output  belay.Content   `json:"output,omitzero"`
	Data    json.RawMessage `json:"data,omitempty"`                 // the result as data, by the tool's output schema; absent when dataRef is set
	DataRef *belay.Ref      `json:"dataRef,omitempty" output:"ref"` // long data
	Whole   *belay.Ref      `json:"whole,omitempty" output:"ref"`   // the whole output, where output shows head and tail
	Digest  belay.Digest    `json:"digest" output:"digest"`         // of the whole output, for loop detection
	Files   []FileSeen      `json:"files,omitempty"`                // file versions the thread has seen after it
	Millis  int64           `json:"ms,omitempty"`
	Exit    int             `json:"exit,omitempty"` // of the command that it ran to its end; 0 is success, or no command

	Instructions []string `json:"instructions,omitempty"` // files of instructions for the folders of Files
}

// Outcome is how the call ended, in a word that people read: ok, or exit 3 of a
// command that says by its exit code that it failed.
func (p ToolResult) Outcome() string {
	if p.Exit != 0 {
		return "exit " + strconv.Itoa(p.Exit)
	}
	return "ok"
}

// FileSeen is a file as the thread last read or wrote it.
type FileSeen = belay.FileSeen

// ToolFailed is any other end of a call: failed, denied, lost, cancelled,
// skipped, refused.
type ToolFailed struct {
	fact
	Name    string        `json:"name"`
	Attempt int           `json:"attempt"`
	Problem Problem       `json:"problem"`
	Output  belay.Content `json:"output,omitzero"` // output before the failure
	Whole   *belay.Ref    `json:"whole,omitempty" output:"ref"`
	Files   []FileSeen    `json:"files,omitempty"`
	Final   bool          `json:"final,omitempty"` // no further attempt follows
	RetryAt time.Time     `json:"retryAt,omitzero"`
	Millis  int64         `json:"ms,omitempty"`
	Input   *InputAsked   `json:"input,omitempty"` // the call goes on when a person has answered this
}

// InputAsked is what a call has to know before it can go on.
type InputAsked struct {
	FormAsked
	Prompt belay.Content `json:"prompt"`          // the question as a person reads it, whole
	State  *belay.Ref    `json:"state,omitempty"` // what another attempt goes on with, in any process
	Held   bool          `json:"held,omitempty"`  // the server waits for the answer, which is lost with the process

	// Of a server that wants a model's answer, which it gets if a person says yes:
	Request   *belay.Ref `json:"request,omitempty"`   // what the model is to be asked
	Tokens    int64      `json:"tokens,omitempty"`    // about how many that has
	MaxTokens int64      `json:"maxTokens,omitempty"` // that its answer may have
}

// ToolArgs records that a call runs with changed arguments.
type ToolArgs struct {
	fact
	Name     string          `json:"name"`
	By       string          `json:"by"` // hook/ID, or a principal
	Args     json.RawMessage `json:"args,omitempty"`
	ArgsRef  *belay.Ref      `json:"argsRef,omitempty"` // long arguments
	ArgsHash belay.Digest    `json:"argsHash"`
	Before   belay.Digest    `json:"before"`          // hash of the arguments they replace
	Path     string          `json:"path,omitempty"`  // the file it names then, by its tool's spec
	Paths    []string        `json:"paths,omitempty"` // or the files
	Links    []LinkSeen      `json:"links,omitempty"` // where its paths led, if not where their text says

	Stands *belay.ApprovalContext `json:"stands,omitempty"` // context the answer is bound to
}

// ToolProgress is how far a running call is, as it tells itself: the newest counts.
// Written at most every 2 seconds, and not of a call that is over sooner.
type ToolProgress struct {
	fact
	Attempt int    `json:"attempt"`
	Text    string `json:"text,omitempty"`  // what it does now
	Done    int64  `json:"done,omitempty"`  // of total, in a unit of the tool's own
	Total   int64  `json:"total,omitempty"` // 0: not known
}

// String is the progress in words, such as "3 of 10: copying".
func (p ToolProgress) String() string {
	count := ""
	switch {
	case p.Total > 0:
		count = fmt.Sprintf("%d of %d", p.Done, p.Total)
	case p.Done > 0:
		count = strconv.FormatInt(p.Done, 10)
	}
	if count != "" && p.Text != "" {
		count += ": "
	}
	return count + p.Text
}
