// Package belay holds the nouns of the runtime: identities, messages, states,
// commands and errors. It imports the standard library only and does nothing:
// every other package speaks in these words.
package belay

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Digest names content: "sha256:" and 64 hexadecimal digits.
type Digest string

// DigestOf is the digest of content.
func DigestOf(b []byte) Digest {
	h := sha256.Sum256(b)
	return Digest("sha256:" + hex.EncodeToString(h[:]))
}

// Valid reports whether d has the form of a digest.
func (d Digest) Valid() bool {
	h, ok := strings.CutPrefix(string(d), "sha256:")
	if !ok || len(h) != 64 {
		return false
	}
	_, err := hex.DecodeString(h)
	return err == nil
}

// Short is the digest's first twelve digits, for people.
func (d Digest) Short() string {
	h := strings.TrimPrefix(string(d), "sha256:")
	return h[:min(12, len(h))]
}

// Ref points to content in the store's blobs.
type Ref struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`            // bytes
	Media  string `json:"media,omitempty"` // media type; empty is unknown
}

// Content is text, stored here or, when long, in a blob. With a Ref, Text is a
// preview: the head, a line that says what is left out, the tail.
type Content struct {
	Text     string       `json:"text,omitempty"`
	Ref      *Ref         `json:"ref,omitempty"`
	Shown    *Ref         `json:"shown,omitempty"`    // what a model is given in place of a text that is too long
	Attached []Attachment `json:"attached,omitempty"` // files sent along with the text
	From     []string     `json:"from,omitempty"`     // origins of what in it others wrote, as kind:origin
	Tokens   int64        `json:"tokens,omitempty"`   // about how many a model reads, attachments included, before the model's own factor; 0: not counted
}

// Attachment is a file sent with a text: UTF-8 text, an image or a document.
type Attachment struct {
	Name  string `json:"name"` // as the person named it
	Ref   Ref    `json:"ref"`
	Shown *Ref   `json:"shown,omitempty"` // what a model is given in place of a text that is too long
}

// TemplateRef names the template a text was made from.
type TemplateRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Origin  string `json:"origin"` // builtin, user, workspace, or the MCP server whose prompt it is
	Digest  Digest `json:"digest"` // of the template's file, or of the prompt's definition
}

// Image reports whether the attachment is a picture, by its media type.
func (a Attachment) Image() bool { return strings.HasPrefix(a.Ref.Media, "image/") }

// Document reports whether it is a document that isn't text.
func (a Attachment) Document() bool { return a.Ref.Media == MediaPDF }

// MediaPDF is the media type of the documents that can be sent along.
const MediaPDF = "application/pdf"

// Mode is how much an agent may do without asking.
type Mode string

const (
	ModeDefault     Mode = "default"      // reading is allowed, the rest asks
	ModePlan        Mode = "plan"         // reading is allowed, the rest is denied
	ModeAcceptEdits Mode = "accept_edits" // also write and edit inside the workspace
	ModeAuto        Mode = "auto"         // also commands that stay in the workspace
	ModeOnRequest   Mode = "on_request"   // also what a boundary confines; what wants more asks
	ModeOnFailure   Mode = "on_failure"   // whatever runs inside a boundary; what that stops is asked about
	ModeUntrusted   Mode = "untrusted"    // every change asks, whatever was allowed
	ModeNever       Mode = "never"        // as default, and what would ask is denied
	ModeBypass      Mode = "bypass"       // nothing asks; only where an administrator's rule permits it
)

// Modes lists the modes, in the order help prints them.
var Modes = []Mode{ModeDefault, ModePlan, ModeAcceptEdits, ModeAuto, ModeOnRequest, ModeOnFailure, ModeUntrusted, ModeNever, ModeBypass}

// Approvals is how a question of the gate is treated.
type Approvals string

const (
	ApprovalsAsk  Approvals = "ask"  // prompt on this terminal
	ApprovalsWait Approvals = "wait" // keep the process until an answer comes or the deadline passes
	ApprovalsDeny Approvals = "deny" // there is no way to ask: deny at once
)

// TurnKind is the origin of a turn.
type TurnKind string

const (
	TurnUser   TurnKind = "user"   // a person or a program asked
	TurnSystem TurnKind = "system" // session start, idle hooks, manual compaction
)

// Completion is what counts as the successful end of a turn.
type Completion string

const (
	CompletionRequired       Completion = "required"       // only the completion tool
	CompletionConversational Completion = "conversational" // a plain answer is enough
)

// Outcome is how a turn ended. Success is never inferred: completed is set by
// the completion protocol only.
type Outcome string

const (
	Completed    Outcome = "completed"     // the completion protocol said so
	Failed       Outcome = "failed"        // an error ended it
	NoCompletion Outcome = "no_completion" // the model never completed
	Blocked      Outcome = "blocked"       // it can't go on without something that is missing
	Denied       Outcome = "denied"        // what it needed was denied
	OverBudget   Outcome = "budget"        // a limit on what it may spend
	TimedOut     Outcome = "timed_out"     // its time was used up
	Cancelled    Outcome = "cancelled"     // a person or a program ended it
	Lost         Outcome = "lost"          // its outcome is unknown
)

// Outcomes lists every outcome.
var Outcomes = []Outcome{Completed, Failed, NoCompletion, Blocked, Denied, OverBudget, TimedOut, Cancelled, Lost}

// Exit codes of the program. Other commands than run use 0, 1 (a check
// failed), 2 and 8.
const (
	ExitOK        = 0
	ExitFailed    = 1 // failed, no_completion, an error of the runtime
	ExitUsage     = 2
	ExitBlocked   = 3 // blocked, or waiting for a person
	ExitDenied    = 4
	ExitBudget    = 5
	ExitTimedOut  = 6
	ExitLost      = 7
	ExitStore     = 8 // damaged, full, read-only, newer, or owned by another
	ExitCancelled = 130
)

// ExitCode is the exit code that an outcome gives a program.
func (o Outcome) ExitCode() int {
	switch o {
	case Completed:
		return ExitOK
	case Blocked:
		return ExitBlocked
	case Denied:
		return ExitDenied
	case OverBudget:
		return ExitBudget
	case TimedOut:
		return ExitTimedOut
	case Cancelled:
		return ExitCancelled
	case Lost:
		return ExitLost
	}
	return ExitFailed
}

// Usage is what a model call used. Zero means none, or unknown when Reported
// is false.
type Usage struct {
	Input    int64 `json:"input,omitempty"`  // tokens in the request
	Output   int64 `json:"output,omitempty"` // tokens in the answer
	Cached   int64 `json:"cached,omitempty"` // input tokens read from the provider's cache
	Reported bool  `json:"reported,omitempty"`

	CacheWrite int64 `json:"cacheWrite,omitempty"` // input tokens written to the provider's cache
	Reasoning  int64 `json:"reasoning,omitempty"`  // output tokens that were reasoning
}

// Add is the sum of two usages, at most the largest number there is. A usage with a
// count below zero can't be, and adds nothing.
func (u Usage) Add(v Usage) Usage {
	if min(v.Input, v.Output, v.Cached, v.CacheWrite, v.Reasoning) < 0 {
		return u
	}
	return Usage{
		Input: add(u.Input, v.Input), Output: add(u.Output, v.Output), Cached: add(u.Cached, v.Cached), Reported: u.Reported || v.Reported,
		CacheWrite: add(u.CacheWrite, v.CacheWrite), Reasoning: add(u.Reasoning, v.Reasoning),
	}
}

// Total is input and output, at most the largest number there is.
func (u Usage) Total() int64 { return add(u.Input, u.Output) }
