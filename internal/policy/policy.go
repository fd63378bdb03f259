// Package policy decides whether a call may run. It is pure: rules and a
// request go in, a verdict comes out, and the same input always gives the same
// verdict. It knows nothing of sessions, files or the person who is asked.
//
// Rules are data (rule.go). Compile makes a Set of them (set.go), Evaluate asks
// it (evaluate.go). How verdicts combine:
//
//  1. A deny that matches is final, whatever tier and priority it has.
//  2. Of each tier above default the matching rules of the highest priority
//     speak; at the same priority ask beats allow.
//  3. If one of these tiers asks, the call is asked about. Else it is allowed if
//     one of them allows.
//  4. If none of them speaks, the default tier does, in the same way. Its firm
//     rules speak always.
//  5. An allow covers only what it can see: an unparsable command, an attempt to
//     escape and what a tainted thread could leak need a rule that names them.
//  6. Of a command line every simple command is judged so; the strictest
//     verdict is the call's.
//
// A grant, which a person gave for a session, is an allow of the tier user
// above all its priorities.
package policy

import (
	"encoding/json"
	"path"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy/shell"
)

// Decision is what a rule or the gate says.
type Decision string

// The decisions, in rising strictness.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Join is the stricter of two decisions; the empty decision is neutral.
func Join(a, b Decision) Decision {
	if rank(a) >= rank(b) {
		return a
	}
	return b
}

func rank(d Decision) int {
	switch d {
	case Allow:
		return 1
	case Ask:
		return 2
	case Deny:
		return 3
	}
	return 0
}

// Tier says whose rule it is, from the weakest to the strongest voice.
type Tier = string

// The tiers, from the weakest voice to the strongest.
const (
	TierDefault   Tier = "default"
	TierAgent     Tier = "agent"
	TierWorkspace Tier = "workspace"
	TierUser      Tier = "user"
	TierAdmin     Tier = "admin"
)

// Tiers in rising order.
var Tiers = []Tier{TierDefault, TierAgent, TierWorkspace, TierUser, TierAdmin}

// Request is a call as the gate sees it.
type Request struct {
	Tool      belay.ToolSpec
	Args      json.RawMessage // JSON; needed only if the Set says so
	Paths     []string        // the files it touches, as the call names them; none when it names none
	Commands  []Command       // of a tool that runs a command line
	Links     []Link          // where paths of the call lead that don't lead where their text says
	Mode      belay.Mode
	Agent     string
	Grants    []Grant
	Headless  bool // questions can't be answered
	Rerun     bool // the same call was lost before: its first outcome is unknown
	Guest     bool // the turn was submitted by another account than the session's owner
	Use       belay.WorkspaceUse
	Workspace string
	Dialect   Dialect // of the shell that runs command lines
	Level     string  // of the boundary that processes get: L0 … L3
	Network   string  // none, proxied, full; empty is full
	Taint     []Taint // of the thread
	Checks    []Check // what checkers said of the call

	Binding  belay.Digest      // names the exact call: tool and its definition, arguments, folder; may be missing where no grant is of one call
	Confine  bool              // a boundary is decided for what the tool starts
	Boundary string            // of the turn, as configured; empty: the mode's
	Wish     RequestedBoundary // what the call asks for itself
	Widened  *Bound            // what a person gave exactly this call

	offline bool // what it starts is kept from the network, see asConfined
}

// Check is what one checker said.
type Check struct {
	ID       string   `json:"id"`
	Decision Decision `json:"decision,omitempty"`
	Code     string   `json:"code,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Failed   bool     `json:"failed,omitempty"` // it gave no verdict; Reason says why
}

// Command is one simple command of a command line, as package shell reads it.
type Command = shell.Command

// Dialect is the language of the shell that runs a command line; empty is sh.
type Dialect = shell.Dialect

// bash is the dialect that examples of rules are written in.
const bash = shell.Bash

// DialectOf is the dialect of a session's shell. Sh has no name here, as in what
// was recorded before there was another one.
func DialectOf(s *belay.Shell) Dialect {
	if s != nil && s.Dialect == string(shell.Bash) {
		return shell.Bash
	}
	return ""
}

// Class is the strongest effect that a command can have, as far as its text
// shows.
type Class = shell.Class

// The classes, as package shell describes them.
const (
	ReadOnly       = shell.ReadOnly
	WriteWorkspace = shell.WriteWorkspace
	Network        = shell.Network
	Destructive    = shell.Destructive
	EscapeAttempt  = shell.EscapeAttempt
	Unparsable     = shell.Unparsable
)

// classes in rising strictness.
var classes = []Class{ReadOnly, WriteWorkspace, Network, Destructive, EscapeAttempt, Unparsable}

// Grant is an allow rule that a person gave.
type Grant struct {
	Tool string `json:"tool"` // its name; of what was given beforehand perhaps a pattern
	Tier string `json:"tier"`
	Kind string `json:"kind"` // rule: given beforehand; answer: given when a call asked
	By   string `json:"by,omitempty"`

	Dialect Dialect `json:"dialect,omitempty"` // of the shell whose command lines it covers

	ID     belay.EventID `json:"id,omitempty"`     // the fact that gave it
	Scope  string        `json:"scope,omitempty"`  // session, prefix, count, until
	Prefix string        `json:"prefix,omitempty"` // it covers commands that begin with these words, or files below this folder
	Worst  Class         `json:"worst,omitempty"`  // of commands of a prefix: worse ones aren't covered
	Bound  belay.Digest  `json:"bound,omitempty"`  // it covers this call alone, see Request.Binding
	Within belay.Digest  `json:"within,omitempty"` // in this boundary alone
	Taint  []string      `json:"taint,omitempty"`  // kind:origin: what its calls bring from outside, which was accepted; it counts while there is no other
	Left   int           `json:"left,omitempty"`   // calls that it covers yet; 0 counts none
	Until  time.Time     `json:"until,omitzero"`   // it covers nothing from then on
	Only   bool          `json:"only,omitempty"`   // of a tree: the agent that asked and those below it
	Shared bool          `json:"shared,omitempty"` // with other threads: the session counts its calls
	Copied bool          `json:"copied,omitempty"` // another thread got it

	Stands *belay.ApprovalContext `json:"stands,omitempty"` // of a grant of one call: what it was allowed on; whoever starts it holds it to that
}

// Verdict is the gate's answer with everything needed to explain it.
type Verdict struct {
	Decision   Decision
	Source     string // rule, grant, mode, headless
	Rule       string // tier/id; builtin/id of the default tier
	Tier       Tier
	Priority   int
	ReasonCode string
	Reason     string
	Hint       string   // what would change the verdict
	Tags       []string // of risk, sorted
	Boundary   string   // by its name: that the deciding rule wants, or that the call gets
	Bound      *Bound   // that the call gets, if one was decided
	BoundBy    string   // who named it
	MinLevel   belay.Level
	Matched    []Hit    // every rule that spoke of the call, the strongest voice first
	Commands   []Judged // of a command line, in its order

	weak  bool          // the machine can't confine as much as must be
	ways  string        // out of taint, which decided it
	parts []part        // what decided each part, until the boundary is settled
	Grant belay.EventID // of what a person gave that allows it, or a part of it
}

// Hit is a rule that matched. Lost: it said something else than its outcome.
type Hit struct {
	Rule     string   `json:"rule"`
	Tier     Tier     `json:"tier"`
	Priority int      `json:"priority,omitempty"`
	Decision Decision `json:"decision"`
	Lost     bool     `json:"lost,omitempty"`
}

// Judged is what was said of one simple command.
type Judged struct {
	Name     string   `json:"name"`
	Class    Class    `json:"class"`
	Decision Decision `json:"decision"`
	Rule     string   `json:"rule"`
}

// Inside reports whether a path, read as text, stays below the workspace. The
// file tools hold it against the file system; the gate only needs to know what
// the call asks for.
func Inside(p string) bool {
	if p == "" || strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return false
	}
	c := path.Clean(p)
	return c != ".." && !strings.HasPrefix(c, "../")
}
