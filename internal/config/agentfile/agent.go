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
	Name        string         `json:"name"`
	Version     string         `json:"version,omitempty"` // without v; empty: the file names none
	Description string         `json:"description,omitempty"`
	Domain      string         `json:"domain,omitempty"`
	Wording     *belay.Wording `json:"wording,omitempty"`  // of its tasks; nil: its domain has no template
	Priority    string         `json:"priority,omitempty"` // critical, high, medium, low
	Source
	Instructions string `json:"instructions,omitempty"`

	Model  string     `json:"model,omitempty"` // PROVIDER/MODEL, or a name of another program's; empty: that of who starts it
	Effort string     `json:"effort,omitempty"`
	Mode   belay.Mode `json:"mode,omitempty"`
	Abilities
	Bounds
	Start
	Contract
	Relations
	Work

	Unknown  []string `json:"unknownKeys,omitempty"` // of the file
	Findings Findings `json:"findings,omitempty"`
	Broken   Findings `json:"broken,omitempty"` // about the file as it is now: this is what it held before

	version *semver.Version // nil: none
	place   int             // that it is of; the strongest is 0
	names   []named         // other agents that must be there
}

// Source is the file that an agent is read from.
type Source struct {
	Format  string       `json:"format"` // empty: it is no file
	Origin  string       `json:"origin"` // the place: given, workspace, user, system, built-in
	Path    string       `json:"path,omitempty"`
	Digest  belay.Digest `json:"digest"` // of the file
	Trusted bool         `json:"trusted"`

	places  map[string]string        // of keys in the file that are held against what there is
	content []byte                   // of the file
	broken  belay.Digest             // of the file as it is now, if that isn't content
	at      func(path ...any) string // in the file
}

// named is another agent that a file names.
type named struct {
	as    string // what it is for this one; empty: it is required
	name  string // NAME or NAME@RANGE
	where string
}

// Abilities are what an agent can do, as far as who starts it can.
type Abilities struct {
	Tools     []string `json:"tools,omitempty"`        // terms as the setting tools takes them
	ReadOnly  bool     `json:"readOnly,omitempty"`     // it has only tools that change nothing
	NoTools   bool     `json:"noTools,omitempty"`      // it names none: only those that steer the turn
	Without   []string `json:"without,omitempty"`      // tools that it must not have
	Absent    []string `json:"absent,omitempty"`       // tools that it names, and Belay hasn't got
	Programs  []string `json:"programs,omitempty"`     // the only ones that its commands may run; none: any
	Forbidden []string `json:"forbidden,omitempty"`    // programs that its commands may not run
	Can       []string `json:"capabilities,omitempty"` // words that narrow what it may do
	Skills    []string `json:"skills,omitempty"`       // that it is given at its start, and the only ones it may read; none: any
	Servers   []string `json:"mcpServers,omitempty"`   // MCP servers whose tools it may use; none: any
	GoodAt    []string `json:"abilities,omitempty"`    // in its file's words
}

// Bounds are the most that an agent may use.
type Bounds struct {
	Limits   belay.Limits        `json:"limits,omitzero"`
	Boundary string              `json:"boundary,omitempty"` // the name of one that its programs run in besides
	Process  belay.ProcessLimits `json:"processLimits,omitzero"`
	Tokens   Tokens              `json:"tokens,omitzero"`
}

// Contract is what an agent is given, and what its work must be.
type Contract struct {
	Input  json.RawMessage `json:"input,omitempty"`         // JSON Schema of what it is started with
	Output json.RawMessage `json:"output,omitempty"`        // JSON Schema
	Gates  []belay.Check   `json:"gates,omitempty"`         // what must hold before its work counts as done
	Tests  int             `json:"tests,omitempty"`         // scenarios that show what it does
	Rules  json.RawMessage `json:"rules,omitempty"`         // of the tier agent, as a file of rules
	Health []string        `json:"healthCommand,omitempty"` // a program with its arguments that ends with 0 while the agent can work
}

// Start is where an agent works that another one starts, and what it knows, unless the call
// says so.
type Start struct {
	Context    string `json:"context,omitempty"`    // fork: a copy of the conversation
	Isolation  string `json:"isolation,omitempty"`  // worktree
	Background bool   `json:"background,omitempty"` // the call doesn't wait for it
}

// Worktree is Isolation's word for a worktree of its own.
const Worktree = "worktree"

// Relations are what an agent has to do with others.
type Relations struct {
	Requires  []Need `json:"requires,omitempty"`
	Optional  []Need `json:"optional,omitempty"`
	Conflicts []Need `json:"conflicts,omitempty"`
}

// Work is what an agent does, and what becomes of it.
type Work struct {
	Estimate   belay.Duration    `json:"estimate,omitempty"`   // of its work
	CompleteAt float64           `json:"completeAt,omitempty"` // the share of its tasks that has to end well; 0: all
	OnFailure  string            `json:"onFailure,omitempty"`  // continue: those that require it work without its result
	Retry      belay.Retry       `json:"retry,omitzero"`       // when a task of its is tried again by itself
	Fallback   []string          `json:"fallback,omitempty"`   // agents that try it after that
	Members    []Member          `json:"members,omitempty"`    // of a team, each behind those that it begins after
	Result     map[string]string `json:"result,omitempty"`     // of a team: expressions, by the fields of its output

	Tasks       []StandingTask            `json:"tasks,omitempty"`
	Conditional map[string][]StandingTask `json:"conditional,omitempty"` // by condition
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

// Findings are those about one file.
type Findings []Finding

func (all *Findings) add(level, code, where, hint, format string, args ...any) {
	*all = append(*all, Finding{Level: level, Code: code, Where: where, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Bad reports whether one of them is an error.
func (all Findings) Bad() bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Level == Error })
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
	CodeBadRules    = "BAD_RULES"    //
	CodeBadLimit    = "BAD_LIMIT"    //
	CodeUnknownKey  = "UNKNOWN_KEY"  // it is kept and listed, and means nothing
	CodeNotTaken    = "NOT_TAKEN"    // known, and Belay does nothing with it
	CodeUnknownTool = "UNKNOWN_TOOL" //
	CodeUnknownWord = "UNKNOWN_WORD" // a value that the key doesn't have
	CodeNoProgram   = "NO_PROGRAM"   // one that its commands may run isn't on this machine
	CodeCapability  = "UNKNOWN_CAPABILITY"
	CodeModel       = "UNKNOWN_MODEL"
	CodeType        = "BAD_TYPE"     // of a value in a team
	CodeTemplate    = "BAD_TEMPLATE" // the one of its domain
	CodeUnavailable = "UNAVAILABLE"  // a limit that nothing can hold
	CodeAmbiguous   = "AMBIGUOUS"    // two files with one name and version in one place
	CodeMissing     = "MISSING"      // an agent that it requires
	CodeConflict    = "CONFLICT"
	CodeCycle       = "CYCLE"
	CodeTooMany     = "TOO_MANY"
	CodeLastGood    = "LAST_GOOD" // the file can't be used, and what it held before counts
	CodeBadTest     = "BAD_TEST"  // a test can't be played
)

// Mistake reports whether its author has to do something about it: the agent can't run, or
// can't do all that its file says.
func (f Finding) Mistake() bool {
	return f.Level == Error || slices.Contains([]string{CodeMissing, CodeConflict, CodeCycle, CodeBadTest}, f.Code)
}

// Usable reports whether the agent can run.
func (a *Agent) Usable() bool { return !a.Findings.Bad() }

// Content is what the file held that describes the agent, and the digest of what it holds
// now, if that is something else.
func (a *Agent) Content() (content []byte, now belay.Digest) { return a.content, a.broken }

// Title is the agent with its version.
func (a *Agent) Title() string {
	if a.Version == "" {
		return a.Name
	}
	return a.Name + "@" + a.Version
}

// Called is the agent's name in rules and facts. One of a workspace that isn't trusted has
// its origin in front, so that what is said of another one of the name isn't about it.
func (a *Agent) Called() string {
	if a.Trusted {
		return a.Name
	}
	return a.Origin + ":" + a.Name
}

func (a *Agent) find(level, code, where, hint, format string, args ...any) {
	a.Findings.add(level, code, cmp.Or(where, a.Path), hint, format, args...)
}

var (
	nameForm = match.Lazy(`^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,63}$`)
	// plainMember is the form of names that expressions can name.
	plainMember = match.Lazy(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

	plain = match.Lazy(`^[a-z0-9][a-z0-9._-]{0,63}$`)
)

// named checks the name and reads the version.
func (a *Agent) named(name, version, whereName, whereVersion string) {
	a.Name = name
	switch {
	case name == "":
		a.Name = baseName(a.Path)
		a.find(Error, CodeNoName, whereName, "name: "+a.Name, "the agent has no name")
	case !nameForm.Match(name):
		a.Name = cmp.Or(strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, short(name, 64)), baseName(a.Path))
		a.find(Error, CodeBadName, whereName, "letters, digits, blanks, . _ and -, at most 64", "%q can't be a name", a.Name)
	case !plain.Match(name):
		a.find(Note, CodeBadName, whereName, "such as my-agent", "other programs want names of lower-case letters, digits and hyphens")
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

// need reads a name with a range: NAME or NAME@RANGE.
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

// GoOn is OnFailure's word for going on without a result.
const GoOn = "continue"

// Priorities in falling order.
var Priorities = []string{"critical", "high", "medium", "low"}

func short(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
