package thread

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// Rules are everything a turn is decided by besides its facts. They are
// immutable, kept as a blob and named by digest in turn.started, so an old log
// can be explained by the rules of its day.
type Rules struct {
	Settings           belay.Settings   `json:"settings"`
	Grants             []policy.Grant   `json:"grants,omitempty"`
	Tools              []belay.ToolSpec `json:"tools"`
	Withheld           []string         `json:"withheld,omitempty"` // names of tools that are here and that the agent may not call
	System             string           `json:"system"`             // instructions of the agent
	Tokens             int64            `json:"tokens,omitempty"`   // of System and Tools, as in belay.Content; 0: not counted
	Workspace          string           `json:"workspace"`
	Output             json.RawMessage  `json:"output,omitempty"` // JSON Schema of complete_task's output, and of a plain answer that ends a turn
	Boundary           Boundary         `json:"boundary"`
	Policy             *belay.Ref       `json:"policy,omitempty"`    // the gate's rules, as content; none: the built-in ones of this build
	Agent              string           `json:"agent,omitempty"`     // whose turns these are
	AgentFile          *AgentFile       `json:"agentFile,omitempty"` // that describes the agent; nil: none does
	Gates              []belay.Check    `json:"gates,omitempty"`     // of the agent's file: what must hold before its turns count as done
	ByOther            bool             `json:"guest,omitempty"`     // the turn was submitted by another account than the session's owner
	UntrustedWorkspace bool             `json:"strange,omitempty"`   // the workspace's files are untrusted
	Home               string           `json:"home,omitempty"`      // of the user, for the paths in command lines
	Shadowed           bool             `json:"shadowed,omitempty"`  // programs are looked for where the workspace can put some

	Models
	Told

	Input    json.RawMessage `json:"input,omitempty"`    // JSON Schema of what the agent is started with
	Origin   string          `json:"origin,omitempty"`   // the workspace whose files of settings, tools and agents count; empty: Workspace
	Worktree *belay.Worktree `json:"worktree,omitempty"` // that Workspace lies in, made for an agent

	content map[belay.Digest][]byte // long arguments that were supplied
	set     *policy.Set             // what Policy names
}

// Models are the models that a turn may ask.
type Models struct {
	Routes    []core.Candidate `json:"routes,omitempty"`    // that requests may go to, the preferred one first; none: the settings name it
	Profile   core.Profile     `json:"profile,omitzero"`    // what the turn needs of a model
	Reviewers []core.Candidate `json:"reviewers,omitempty"` // that judge calls or summarise, with their prices
	Asked     *Asked           `json:"asked,omitempty"`     // what agents work with that a turn starts which asks no model itself
}

// Told is what a model is told besides the conversation.
type Told struct {
	Instructions *belay.Content          `json:"instructions,omitempty"` // of the place, which stand behind System
	Context      []event.ContextItem     `json:"context,omitempty"`      // what Instructions, or System in rules of earlier builds, holds
	LeftOut      []event.ContextOmission `json:"leftOut,omitempty"`      // what it would have held
	Environment  bool                    `json:"environment,omitempty"`  // where it works
	Cwd          string                  `json:"cwd,omitempty"`          // the folder of the workspace in which the person stands; empty: its root
}

// Asked is which models are asked.
type Asked struct {
	Provider string           `json:"provider"`
	Model    string           `json:"model,omitempty"`
	BaseURL  string           `json:"baseUrl,omitempty"`
	Fallback []string         `json:"fallback,omitempty"`
	Routes   []core.Candidate `json:"routes,omitempty"`
	Profile  core.Profile     `json:"profile,omitzero"`
}

// AgentFile is the file that an agent was made of.
type AgentFile struct {
	Version string       `json:"version,omitempty"`
	Origin  string       `json:"origin"`
	Path    string       `json:"path"`
	Digest  belay.Digest `json:"digest"`

	Retry    belay.Retry `json:"retry,omitzero"`      // of tasks that it does
	Fallback []string    `json:"fallbacks,omitempty"` // agents that try them after it; Retry has their rules when these are kept

	Context    string `json:"context,omitempty"` // how it is started, where the call doesn't say
	Isolation  string `json:"isolation,omitempty"`
	Background bool   `json:"background,omitempty"`

	Memory belay.MemoryNeed `json:"memory,omitzero"`

	Wording *belay.Wording `json:"wording,omitempty"` // of its tasks
	Skills  []string       `json:"skills,omitempty"`  // the only ones it may read; none: any
}

// Retry says when a task under these rules is tried again by itself.
func (r *Rules) Retry() (again belay.Retry) {
	if r.AgentFile != nil {
		again = r.AgentFile.Retry
	}
	return again
}

// Memory is what the agent of turns under these rules declares.
func (r *Rules) Memory() (m belay.MemoryNeed) {
	if r.AgentFile != nil {
		m = r.AgentFile.Memory
	}
	return m
}

// Worded is a task in the words of the domain of the agent under these rules.
func (r *Rules) Worded(task string) string {
	if r.AgentFile == nil {
		return task
	}
	return r.AgentFile.Wording.Of(task)
}

// agentUsed is the agent of turns under these rules; nil: nothing describes it.
func (r *Rules) agentUsed() *event.AgentUsed {
	switch {
	case r == nil:
		return nil
	case r.AgentFile != nil:
		used := &event.AgentUsed{Name: r.Agent, Version: r.AgentFile.Version, Digest: r.AgentFile.Digest}
		if w := r.AgentFile.Wording; w != nil {
			used.Template = w.Template
		}
		return used
	case r.Agent != "":
		return &event.AgentUsed{Name: r.Agent}
	}
	return nil
}

// Gate are the rules that calls are judged by; nil until those that Policy names
// were supplied, which denies.
func (r *Rules) Gate() *policy.Set {
	if r.Policy == nil && r.set == nil {
		return policy.Builtin()
	}
	return r.set
}

// Govern puts the turn under a set, which is kept as ref.
func (r *Rules) Govern(ref belay.Ref, set *policy.Set) { r.Policy, r.set = &ref, set }

// Place is what is known of where commands run.
func (r *Rules) Place() policy.Place {
	at := policy.Place{Workspace: r.Workspace, Home: r.Home, Dialect: policy.DialectOf(r.Settings.Shell), Shadowed: r.Shadowed}
	return at.Within(r.Boundary.Level, r.Settings.Boundary)
}

// Configured is the workspace whose files of settings, tools and agents count.
func (r *Rules) Configured() string { return cmp.Or(r.Origin, r.Workspace) }

// args are a call's arguments, wherever they are.
func (r *Rules) args(c *Call) []byte {
	if c.ArgsRef != nil {
		return r.content[c.ArgsRef.Digest]
	}
	return c.Args
}

// Boundary is what the machine can confine processes with, as a probe said when
// the turn was submitted.
type Boundary struct {
	Level   string `json:"level"` // L0 … L3: the best there is
	Why     string `json:"why"`   // there is nothing better
	Network string `json:"network"`
	Tries   bool   `json:"tries,omitempty"`   // programs run in an unverified boundary, whatever the level
	Decides bool   `json:"decides,omitempty"` // every call gets a boundary of its own; rules of earlier builds don't say
}

// completion is the mode in force; required when the settings are silent.
func (r *Rules) completion() belay.Completion {
	if r.Settings.Completion == belay.CompletionConversational {
		return belay.CompletionConversational
	}
	return belay.CompletionRequired
}

// Answer is the schema that a plain answer must fit to end the turn; nil is
// none. Where a turn is completed by a tool, the tool's output is held against
// it instead.
func (r *Rules) Answer() json.RawMessage {
	if r.completion() != belay.CompletionConversational {
		return nil
	}
	return r.Output
}

// AskOutput tells the model of the output that the turn asks for: not every
// provider can hold it to a schema.
func (r *Rules) AskOutput() {
	if r.Output == nil {
		return
	}
	where := "Put it into the field output of complete_task."
	if r.Answer() != nil {
		where = "The answer that ends your work must be this value and nothing else."
	}
	r.System += "\n# Output\nThis task asks for an output: one value of JSON that fits the schema below. " + where + "\n" + string(r.Output) + "\n"
}

func (r *Rules) headless() bool { return r.Settings.Approvals == belay.ApprovalsDeny }

// MayChange reports whether the gate lets any tool change something, at once or
// when a person is asked. more are allowances given by answers.
func (r *Rules) MayChange(more []policy.Grant) bool {
	grants := append(slices.Clone(r.Grants), more...)
	return slices.ContainsFunc(r.Tools, func(t belay.ToolSpec) bool {
		return r.Gate().MayChange(&policy.Request{Tool: t, Mode: r.Settings.Mode, Agent: r.Agent, Grants: grants, Headless: r.headless(), Level: r.Boundary.Level, Confine: r.Boundary.Decides, Boundary: r.Settings.Boundary, Dialect: policy.DialectOf(r.Settings.Shell)})
	})
}

// Changes reports whether calls of a tool may change something, as far as the rules
// know it.
func (r *Rules) Changes(name string) bool {
	t, ok := r.Tool(name)
	return !ok || policy.Changes(t)
}

// Tool is a tool of the turn by its name, or that of its checks; false: it has none of
// that name.
func (r *Rules) Tool(name string) (belay.ToolSpec, bool) {
	if r != nil {
		for _, t := range r.Tools {
			if t.Name == name {
				return t, true
			}
		}
		if name == JudgeName {
			return judgeSpec, true
		}
	}
	return belay.ToolSpec{}, false
}

// withholds reports whether a tool is kept from the agent of the turn, by its kind, its
// file or the call that started it.
func (r *Rules) withholds(name string) bool { return r != nil && slices.Contains(r.Withheld, name) }

// beyond refuses the agent a tool that is kept from it.
func (r *Rules) beyond(name string) *event.Problem {
	names := make([]string, len(r.Tools))
	for i, t := range r.Tools {
		names[i] = t.Name
	}
	return &event.Problem{Class: "denied", Code: codeCapability, Message: "agent " + r.Agent + " may not call " + name, Hint: event.CutText("it may call "+strings.Join(names, ", "), 600)}
}

// codeCapability refuses an agent a call that its kind, its file or the call that started it
// doesn't cover.
const codeCapability = "CAPABILITY"

// completionTool is the name of the tool that ends a turn.
func (r *Rules) completionTool() string {
	for _, t := range r.Tools {
		if t.Handled == "complete" {
			return t.Name
		}
	}
	return ""
}

// resource is what a call touches and how. Two calls that touch the same
// resource, one of them writing, run one after the other; a folder contains
// what is below it, and the workspace everything. So do two calls of one MCP server,
// unless both only read: nobody else knows what they have in common.
type resource struct {
	server string   // whose tool it is; empty: none's
	reads  bool     // it changes nothing there
	files  []string // none: the whole workspace
	write  bool
	none   bool // touches nothing
}

func touches(t belay.ToolSpec, files []string) resource {
	r := resource{server: t.Server, reads: t.ReadOnly, write: t.Access == belay.Write, none: t.Access == ""}
	if t.PathArg == "" || r.none {
		return r
	}
	for _, f := range files {
		r.files = append(r.files, path.Clean(f))
	}
	return r
}

func (r resource) conflicts(o resource) bool {
	if r.server != "" && r.server == o.server && !(r.reads && o.reads) {
		return true
	}
	if r.none || o.none || !r.write && !o.write {
		return false
	}
	if len(r.files) == 0 || len(o.files) == 0 {
		return true
	}
	for _, a := range r.files {
		if slices.ContainsFunc(o.files, func(b string) bool { return contains(a, b) || contains(b, a) }) {
			return true
		}
	}
	return false
}

// contains reports whether a path is another or lies below it.
func contains(folder, p string) bool {
	return folder == p || folder == "." || strings.HasPrefix(p, folder+"/")
}
