package policy

import (
	"encoding/json"

	"github.com/belay-run/belay"
)

// FormatVersion is the newest form of a Document this build reads.
const FormatVersion = 1

// Document is rules as data: everything the gate decides by besides the call.
// It is content of a turn's rules, so a decision of old can be explained by the
// rules of its day. Compile makes it a Set.
type Document struct {
	Version   int       `json:"version"`
	Rules     []Rule    `json:"rules"`
	Groups    []Group   `json:"groups,omitempty"`
	Caps      []Cap     `json:"caps,omitempty"`
	OwnerOnly []string  `json:"ownerOnly,omitempty"` // names or patterns of tools that only a session's owner may call
	Checkers  []Checker `json:"checkers,omitempty"`

	Boundaries []Boundary `json:"boundaries,omitempty"`
}

// Group is a name for tools; a rule names it as group:NAME.
type Group struct {
	Name  string   `json:"name"`
	Tools []string `json:"tools"` // names or patterns
	// Tier is whose group it is; without one it is the runtime's. A rule sees the
	// groups of its own tier, the runtime's, and those of users and administrators
	// above it: what a weaker file adds to a group never widens a stronger rule.
	Tier Tier `json:"tier,omitempty"`
}

// Cap bounds how often one tool may be called in a turn.
type Cap struct {
	Tool  string `json:"tool"` // a name, a pattern or group:NAME
	Calls int    `json:"calls"`
	Tier  Tier   `json:"tier,omitempty"`
}

// Checker is something besides the rules that judges a call. Its verdict joins
// theirs: it can make a call stricter, never laxer.
type Checker struct {
	ID   string   `json:"id"`
	Kind string   `json:"kind"`           // builtin, process, http, model
	Tier Tier     `json:"tier,omitempty"` // whose checker it is
	Name string   `json:"name,omitempty"` // of a built-in one
	Argv []string `json:"argv,omitempty"` // of a process
	URL  string   `json:"url,omitempty"`  // of an HTTP one

	Provider     string `json:"provider,omitempty"`     // of a model, with its name and what it is to look for
	Model        string `json:"model,omitempty"`        //
	Instructions string `json:"instructions,omitempty"` //

	Timeout belay.Duration `json:"timeout,omitempty"` // 0 is ten seconds
	OnError Decision       `json:"onError,omitempty"` // when it gives no verdict; empty denies
	When    Match          `json:"when,omitzero"`     // the calls it judges
}

// OneOrMore is a list that people may write as one word.
type OneOrMore[T ~string] []T

// UnmarshalYAML reads either.
func (l *OneOrMore[T]) UnmarshalYAML(read func(any) error) error {
	var one T
	if read(&one) == nil {
		*l = OneOrMore[T]{one}
		return nil
	}
	return read((*[]T)(l))
}

// Rule is one line of a policy: the calls it speaks of and what it says of them.
// Its fields and those of what it holds have the names that files call them by.
type Rule struct {
	ID       string            `json:"id"`                      // unique in its tier: lower case, digits, . _ -
	Tier     Tier              `json:"tier,omitempty" yaml:"-"` // empty is default
	Priority int               `json:"priority,omitempty"`      // 0–999; within a tier the highest that matches speaks
	Match    `yaml:"when"`     // all that is given must hold
	Verdict  Decision          `json:"verdict"`
	Reason   string            `json:"reason,omitempty"`           // shown to people and to the model
	Code     string            `json:"code,omitempty"`             // stable name of the reason; empty: RULE
	Hint     string            `json:"hint,omitempty"`             // what would change the verdict
	Tags     OneOrMore[string] `json:"tags,omitempty"`             // risk tags
	Boundary string            `json:"boundary,omitempty"`         // by its name: what the calls that it decides run in
	Degrade  Decision          `json:"degrade,omitempty"`          // allow: they may run where the machine can't confine as much as must be
	Narrows  bool              `json:"narrows,omitempty" yaml:"-"` // its file is untrusted: its boundary counts where it narrows
	Firm     bool              `json:"firm,omitempty" yaml:"-"`    // of the default tier only: other tiers don't silence it
	Examples Examples          `json:"examples,omitzero" yaml:"-"`
	Where    string            `json:"where,omitempty" yaml:"-"` // file:line:column
}

// Match says which calls a rule speaks of. What isn't given always holds. In a
// list one entry is enough. Of a call that names several files or hosts, an
// allow speaks only if each fits; ask and deny speak if any does.
type Match struct {
	Tool       OneOrMore[string]     `json:"tool,omitempty"`                    // names, patterns with *, group:NAME; case doesn't matter
	NotTool    OneOrMore[string]     `json:"notTool,omitempty" yaml:"not_tool"` // any tool but these; those that steer the turn never match
	Does       OneOrMore[string]     `json:"does,omitempty"`                    // reads, edits, changes, runs, completes, asks
	Mode       OneOrMore[belay.Mode] `json:"mode,omitempty"`                    //
	Agent      OneOrMore[string]     `json:"agent,omitempty"`                   // names or patterns
	Capability OneOrMore[string]     `json:"capability,omitempty"`              // that the tool declares: process, network, …
	Effect     OneOrMore[string]     `json:"effect,omitempty"`                  // that it declares: pure, idempotent, recoverable, at_most_once; a tool that declares none is at_most_once
	Args       []ArgMatch            `json:"args,omitempty"`                    // all of them must hold
	Command    *CommandMatch         `json:"command,omitempty"`
	Path       *PathMatch            `json:"path,omitempty"`
	Host       OneOrMore[string]     `json:"host,omitempty"`  // names, or *.NAME for what is below
	Taint      OneOrMore[string]     `json:"taint,omitempty"` // none, any, secret, or kinds
	Flow       OneOrMore[string]     `json:"flow,omitempty"`  // egress: it can send data out; secret: it reads one; secret-file: a file tool names one; protected: it writes a protected name
	Level      string                `json:"level,omitempty"` // the least boundary: L1, L2, L3
	Rerun      bool                  `json:"rerun,omitempty"` // the same call was lost before
	If         string                `json:"if,omitempty"`    // a CEL expression
}

// ArgMatch looks at one argument. Exactly one operator is given.
type ArgMatch struct {
	Path     string   `json:"path"` // dotted; a number is an index
	Equals   any      `json:"equals,omitempty"`
	Contains string   `json:"contains,omitempty"` // of a text, or one of a list's elements
	Matches  string   `json:"matches,omitempty"`  // a regular expression, somewhere in a text
	Less     *float64 `json:"less,omitempty"`
	Greater  *float64 `json:"greater,omitempty"`
	Exists   *bool    `json:"exists,omitempty"`
}

// CommandMatch looks at one simple command of a command line.
type CommandMatch struct {
	Program    OneOrMore[string] `json:"program,omitempty"`                       // the name without its folder, or a pattern
	NotProgram OneOrMore[string] `json:"notProgram,omitempty" yaml:"not_program"` // any program but these
	Subcommand OneOrMore[string] `json:"subcommand,omitempty"`                    // the first argument; an ask or a deny also finds it behind options
	Class      OneOrMore[string] `json:"class,omitempty"`                         // read-only, write-workspace, network, destructive, escape-attempt, unparsable
	Prefix     OneOrMore[string] `json:"prefix,omitempty"`                        // the first arguments, word by word
	Matches    string            `json:"matches,omitempty"`                       // a regular expression over program and arguments, joined by blanks
}

// PathMatch looks at the files a call names.
type PathMatch struct {
	Match  OneOrMore[string] `json:"match,omitempty"`  // globs: * within a name, ** across folders
	Where  string            `json:"where,omitempty"`  // inside or outside the workspace
	Access string            `json:"access,omitempty"` // read, write
}

// Examples are calls that a rule must and must not speak of. They are tried
// when the rule is compiled: a rule that fails its examples isn't loaded.
type Examples struct {
	Match   []Example `json:"match,omitempty"`
	NoMatch []Example `json:"noMatch,omitempty"`
}

// Example is a call in a few words. What isn't given is what a rule asks for
// most simply: the rule's first tool and mode default.
type Example struct {
	Tool       string            `json:"tool,omitempty"`
	Command    string            `json:"command,omitempty"`
	Path       string            `json:"path,omitempty"`
	Access     string            `json:"access,omitempty"`
	Host       string            `json:"host,omitempty"`
	Args       json.RawMessage   `json:"args,omitempty" yaml:"-"`
	Mode       belay.Mode        `json:"mode,omitempty"`
	Agent      string            `json:"agent,omitempty"`
	Capability OneOrMore[string] `json:"capability,omitempty"`
	Taint      OneOrMore[string] `json:"taint,omitempty"`
}

// name is the rule as facts call it: its tier, and its id.
func (r *Rule) name() string {
	if r.Tier == TierDefault || r.Tier == "" {
		return "builtin/" + r.ID
	}
	return string(r.Tier) + "/" + r.ID
}
