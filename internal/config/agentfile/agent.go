// Package agentfile reads agents that people keep as files: Belay's own YAML, the
// Markdown of other programs with its front matter, and workstreams in Toka's YAML.
// docs/agent-files.md is the reference of the formats.
//
// Whatever a file says, an agent of it can do no more than who starts it: reading
// grants nothing. What a file asks for and can't have is a finding with its place.
package agentfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

// Formats of files.
const (
	Belay    = "belay"
	Markdown = "markdown"
	Toka     = "toka"
)

// Agent is an agent as its file describes it. It never changes.
type Agent struct {
	Name         string       `json:"name"`
	Version      string       `json:"version,omitempty"` // without v; empty: the file names none
	Description  string       `json:"description,omitempty"`
	Domain       string       `json:"domain,omitempty"`
	Priority     string       `json:"priority,omitempty"` // critical, high, medium, low
	Format       string       `json:"format"`
	Origin       string       `json:"origin"` // the place: given, workspace, user, system
	Path         string       `json:"path,omitempty"`
	Digest       belay.Digest `json:"digest"` // of the file
	Trusted      bool         `json:"trusted"`
	Instructions string       `json:"instructions,omitempty"`

	Model     string              `json:"model,omitempty"` // PROVIDER/MODEL, or a name of another program's; empty: that of who starts it
	Effort    string              `json:"effort,omitempty"`
	Mode      belay.Mode          `json:"mode,omitempty"`
	Tools     []string            `json:"tools,omitempty"`        // terms as the setting tools takes them
	NoTools   bool                `json:"noTools,omitempty"`      // it names none: only those that steer the turn
	Without   []string            `json:"without,omitempty"`      // tools that it must not have
	Absent    []string            `json:"absent,omitempty"`       // tools that it names, and Belay hasn't got
	Programs  []string            `json:"programs,omitempty"`     // the only ones that its commands may run; none: any
	Forbidden []string            `json:"forbidden,omitempty"`    // programs that its commands may not run
	Can       []string            `json:"capabilities,omitempty"` // words that narrow what it may do
	Abilities []string            `json:"abilities,omitempty"`    // what it is good at, in its file's words
	Limits    belay.Limits        `json:"limits,omitzero"`
	Process   belay.ProcessLimits `json:"processLimits,omitzero"`
	Tokens    Tokens              `json:"tokens,omitzero"`
	Output    json.RawMessage     `json:"output,omitempty"` // JSON Schema

	Requires  []Need `json:"requires,omitempty"`
	Optional  []Need `json:"optional,omitempty"`
	Conflicts []Need `json:"conflicts,omitempty"`

	Tasks       []StandingTask            `json:"tasks,omitempty"`
	Conditional map[string][]StandingTask `json:"conditional,omitempty"` // by condition

	Unknown  []string  `json:"unknownKeys,omitempty"` // of the file
	Findings []Finding `json:"findings,omitempty"`

	version *semver.Version // nil: none
	place   int             // that it is of; the strongest is 0
}

// Tokens are how many tokens a run needs at least, and how many are as many as it can use.
type Tokens struct {
	Min     int64 `json:"min,omitempty" yaml:"min"`
	Optimal int64 `json:"optimal,omitempty" yaml:"optimal"`
}

// Need is another agent that one depends on, or that it excludes.
type Need struct {
	Name   string `json:"name"`
	Range  string `json:"range,omitempty"` // of versions; empty: any
	Reason string `json:"reason,omitempty"`
}

// String is the name with its range.
func (n Need) String() string {
	if n.Range == "" {
		return n.Name
	}
	return n.Name + "@" + n.Range
}

// StandingTask is something that an agent does when it is told nothing else.
type StandingTask struct {
	Description string `json:"description" yaml:"description"`
	Priority    string `json:"priority,omitempty" yaml:"priority"`
}

// Finding is something about a file that its author should know.
type Finding struct {
	Level   string `json:"level"` // error: the agent can't run; warning: something doesn't count; note
	Code    string `json:"code"`
	Where   string `json:"where,omitempty"` // file:line:column
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Levels of findings.
const (
	Error   = "error"
	Warning = "warning"
	Note    = "note"
)

// Codes of findings. Those of files that can't be read as agents are errors.
const (
	CodeUnreadable  = "UNREADABLE"
	CodeNoAgent     = "NO_AGENT"     // the file describes none
	CodeBadFile     = "BAD_FILE"     // it isn't what its format wants
	CodeNoName      = "NO_NAME"      //
	CodeBadName     = "BAD_NAME"     //
	CodeBadVersion  = "BAD_VERSION"  //
	CodeBadLimit    = "BAD_LIMIT"    //
	CodeUnknownKey  = "UNKNOWN_KEY"  // it is kept and listed, and means nothing
	CodeNotTaken    = "NOT_TAKEN"    // known, and Belay does nothing with it
	CodeUnknownTool = "UNKNOWN_TOOL" //
	CodeUnknownWord = "UNKNOWN_WORD" // a value that the key doesn't have
	CodeCapability  = "UNKNOWN_CAPABILITY"
	CodeModel       = "UNKNOWN_MODEL"
	CodeUnavailable = "UNAVAILABLE" // a limit that nothing can hold
	CodeAmbiguous   = "AMBIGUOUS"   // two files with one name and version in one place
	CodeMissing     = "MISSING"     // an agent that it requires
	CodeConflict    = "CONFLICT"
	CodeCycle       = "CYCLE"
	CodeTooMany     = "TOO_MANY"
)

// Usable reports whether the agent can run.
func (a *Agent) Usable() bool {
	return !slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.Level == Error })
}

// Title is the agent with its version.
func (a *Agent) Title() string {
	if a.Version == "" {
		return a.Name
	}
	return a.Name + "@" + a.Version
}

func (a *Agent) find(level, code, where, hint, format string, args ...any) {
	a.Findings = append(a.Findings, Finding{Level: level, Code: code, Where: cmp.Or(where, a.Path), Message: fmt.Sprintf(format, args...), Hint: hint})
}

var (
	nameForm = match.Lazy(`^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,63}$`)
	plain    = match.Lazy(`^[a-z0-9][a-z0-9._-]{0,63}$`)
)

// named checks the name and reads the version.
func (a *Agent) named(name, version, whereName, whereVersion string) {
	a.Name = name
	switch {
	case name == "":
		a.Name = baseName(a.Path)
		a.find(Error, CodeNoName, whereName, "name: "+a.Name, "the agent has no name")
	case !nameForm.Match(name):
		a.Name = strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, short(name, 64))
		a.find(Error, CodeBadName, whereName, "letters, digits, blanks, . _ and -, at most 64", "%q can't be a name", a.Name)
	case !plain.Match(name):
		a.find(Note, CodeBadName, whereName, "", "other programs want names of lower-case letters, digits and hyphens")
	}
	if version == "" {
		return
	}
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil {
		a.find(Error, CodeBadVersion, whereVersion, "three numbers with dots between them, such as 1.2.0", "%q is no version", short(version, 40))
		return
	}
	a.version, a.Version = v, v.String()
}

// needs reads names with ranges: NAME or NAME@RANGE.
func (a *Agent) need(text, reason, where string) (Need, bool) {
	name, versions, _ := strings.Cut(text, "@")
	n := Need{Name: strings.TrimSpace(name), Range: strings.TrimSpace(versions), Reason: reason}
	if !nameForm.Match(n.Name) {
		a.find(Error, CodeBadName, where, "NAME or NAME@RANGE", "%q names no agent", short(text, 80))
		return n, false
	}
	if _, err := rangeOf(n.Range); err != nil {
		a.find(Error, CodeBadVersion, where, "such as ^1.2 or >=1.0 <3", "%q is no range of versions", short(n.Range, 40))
		return n, false
	}
	return n, true
}

func rangeOf(text string) (*semver.Constraints, error) {
	if text == "" {
		return nil, nil
	}
	return semver.NewConstraint(text)
}

// Fits reports whether the agent's version lies in a range; an empty range takes any.
// Without a version it is 0.0.0.
func (a *Agent) Fits(versions string) bool {
	c, err := rangeOf(versions)
	return err == nil && (c == nil || c.Check(a.semver()))
}

func (a *Agent) semver() *semver.Version {
	if a.version != nil {
		return a.version
	}
	return semver.New(0, 0, 0, "", "")
}

// Priorities in falling order.
var Priorities = []string{"critical", "high", "medium", "low"}

func short(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
