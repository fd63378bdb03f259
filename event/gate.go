package event

import (
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
)

// PermissionEvaluated is the gate's verdict on one call. No call runs without it.
type PermissionEvaluated struct {
	fact
	Decision   string       `json:"decision"` // allow, ask, deny
	Source     string       `json:"source"`   // rule, grant, mode, headless, checker, person, runtime
	Rule       string       `json:"rule"`     // id of the deciding rule
	Tier       string       `json:"tier"`     // default, agent, workspace, user, admin
	ReasonCode string       `json:"reasonCode"`
	Reason     string       `json:"reason"`
	Tool       string       `json:"tool"`
	ArgsHash   belay.Digest `json:"argsHash"`
	Hint       string       `json:"hint,omitempty"`  // what would change the verdict
	Where      string       `json:"where,omitempty"` // of the rule: file:line:column when read; empty for a built-in rule

	Priority int             `json:"priority,omitempty"` // of the deciding rule in its tier
	Mode     string          `json:"mode,omitempty"`
	Tags     []string        `json:"tags,omitempty"`     // of risk
	Taint    []string        `json:"taint,omitempty"`    // untrusted origins in the thread, as kind:origin
	Boundary string          `json:"boundary,omitempty"` // the deciding rule's boundary
	Matched  []RuleMatched   `json:"matched,omitempty"`  // other rules that matched, strongest first
	Commands []CommandJudged `json:"commands,omitempty"` // of a command line
	Omitted  int             `json:"omitted,omitempty"`  // number of matched and commands left out

	Bounds     *belay.Boundary `json:"bounds,omitempty"`     // the call's boundary, if it starts programs
	BoundaryBy string          `json:"boundaryBy,omitempty"` // its source: a mode, settings, a rule, the call, a grant, a violation
	Least      string          `json:"least,omitempty"`      // minimum sandbox level

	Grant belay.EventID `json:"grant,omitempty"` // the grant that allowed all or part of it
}

// RuleMatched is a rule that matched a call. Lost reports that another rule
// overrode it.
type RuleMatched struct {
	Rule     string `json:"rule"`
	Tier     string `json:"tier"`
	Priority int    `json:"priority,omitempty"`
	Decision string `json:"decision"`
	Lost     bool   `json:"lost,omitempty"`
}

// CommandJudged is the verdict on one simple command of a command line.
type CommandJudged struct {
	Name     string `json:"name"`
	Class    string `json:"class"` // read-only, write-workspace, network, destructive, escape-attempt, unparsable
	Decision string `json:"decision"`
	Rule     string `json:"rule"`
}

// PermissionRequested reports that a person must decide.
type PermissionRequested struct {
	fact
	Tool     string                 `json:"tool"`
	ArgsHash belay.Digest           `json:"argsHash"`
	Rule     string                 `json:"rule"`
	Until    time.Time              `json:"until"`
	Again    *Again                 `json:"again,omitempty"`   // why, when the call was allowed before
	Stands   *belay.ApprovalContext `json:"stands,omitempty"`  // context the answer is bound to
	Lineage  []belay.Ancestor       `json:"lineage,omitempty"` // of a sub-agent that asks: from the main thread to itself
}

// Again is why an allowed call is asked about again: what would run isn't what
// was allowed.
type Again struct {
	Code   string `json:"code"` // BOUNDARY_CHANGED, FOLDER_CHANGED, PROGRAM_CHANGED, ENVIRONMENT_CHANGED
	Reason string `json:"reason"`
}

// PermissionResolved is the person's decision, or its deadline.
type PermissionResolved struct {
	fact
	Decision string       `json:"decision"` // allow, deny
	By       string       `json:"by"`       // a principal, or deadline
	Scope    string       `json:"scope,omitempty"`
	ArgsHash belay.Digest `json:"argsHash"`
	Message  string       `json:"message,omitempty"`
}

// ActionRequired asks a person. The fields until and default say what happens
// without an answer.
type ActionRequired struct {
	fact
	Kind      string           `json:"kind"` // permission, question, form, continue, budget
	Prompt    belay.Content    `json:"prompt"`
	Decisions []string         `json:"decisions"` // allow, deny, answer
	Default   string           `json:"default"`
	Owner     string           `json:"owner"` // who may answer: a role
	Until     time.Time        `json:"until"`
	Tool      string           `json:"tool,omitempty"`
	ArgsHash  belay.Digest     `json:"argsHash,omitempty"`
	Lineage   []belay.Ancestor `json:"lineage,omitempty"` // of a sub-agent that asks: from the main thread to itself

	Boundary string          `json:"boundary,omitempty"` // the call's boundary if allowed
	Bounds   *belay.Boundary `json:"bounds,omitempty"`   // its contents
	Stopped  *Stopped        `json:"stopped,omitempty"`  // what a boundary stopped; allow runs the call again in this wider one
	Again    *Again          `json:"again,omitempty"`    // why it is asked again
	Budget   *BudgetAsked    `json:"budget,omitempty"`   // of kind budget: what there isn't enough of
	Form     *FormAsked      `json:"form,omitempty"`     // of kind form: what an MCP server wants to know
}

// FormAsked is what an MCP server asks a person for: data by a schema, or to open an
// address.
type FormAsked struct {
	Server string          `json:"server"`
	Schema json.RawMessage `json:"schema,omitempty"`
	URL    string          `json:"url,omitempty"` // nothing opens it but the person
}

// BudgetAsked is what a person is asked for when a budget is too small for a turn to
// go on.
type BudgetAsked struct {
	Scope string           `json:"scope"` // session, turn: whose budget it is
	Kind  belay.BudgetKind `json:"kind"`  // that there isn't enough of
	Limit belay.Amounts    `json:"limit"` // that there is
	Raise belay.Amounts    `json:"raise"` // by which a yes raises it, if the person names no other amount
}

// Stopped is what a boundary stopped.
type Stopped struct {
	Boundary string `json:"boundary"` // it ran in
	Layer    string `json:"layer"`
	Op       string `json:"op,omitempty"`
	Target   string `json:"target,omitempty"`
}

// ActionResolved is the first answer, the deadline or the end of the turn.
type ActionResolved struct {
	fact
	Decision string        `json:"decision"` // allow, deny, answer, cancelled
	By       string        `json:"by"`       // a principal, deadline, turn, server
	Scope    string        `json:"scope,omitempty"`
	Message  belay.Content `json:"message,omitzero"`
	Taint    []string      `json:"taint,omitempty"` // what the decision clears
}

// Answered is a decision about a question in words, such as "allowed by user:ann".
func Answered(decision, by string) string {
	words := map[string]string{"allow": "allowed", "deny": "denied", "answer": "answered"}
	if word := words[decision]; word != "" {
		decision = word
	}
	return decision + " by " + by
}

// SandboxApplied records the boundary an execution really got.
type SandboxApplied struct {
	fact
	Level    string            `json:"level"` // L0 … L3
	Why      string            `json:"why"`
	Cwd      string            `json:"cwd,omitempty"`
	Network  string            `json:"network,omitempty"`  // none, hosts, full
	Layers   map[string]string `json:"layers,omitempty"`   // layer → applied, unavailable(errno), disabled(by)
	Boundary string            `json:"boundary,omitempty"` // by its name
}

// SandboxViolation records what a boundary stopped.
type SandboxViolation struct {
	fact
	Layer    string `json:"layer"`
	Op       string `json:"op,omitempty"`     // read, write, connect, call, limit, obeyed: left for another program to obey, and moved aside
	Target   string `json:"target,omitempty"` // a path, a host, a system call, a limit
	Reason   string `json:"reason"`           // evidence
	Boundary string `json:"boundary,omitempty"`
}

// PolicyChanged says that rules or grants changed.
type PolicyChanged struct {
	fact
	Kind     string       `json:"kind"`             // grant, rules, trust
	Op       string       `json:"op"`               // granted, shared, asked, used, revoked, used_up, loaded, saved; changed: a server defines its tools otherwise than was accepted
	Path     string       `json:"path,omitempty"`   // file whose trust changed, that was saved, or that describes Server
	Server   string       `json:"server,omitempty"` // MCP server whose definitions Digest holds
	Tool     string       `json:"tool,omitempty"`
	ArgsHash belay.Digest `json:"argsHash,omitempty"` // the one call a grant covers
	Prefix   string       `json:"prefix,omitempty"`   // or the start of the arguments it covers
	Tier     string       `json:"tier,omitempty"`
	Scope    string       `json:"scope,omitempty"`
	Dialect  string       `json:"dialect,omitempty"` // of the shell whose command lines a grant covers; empty: sh
	By       string       `json:"by,omitempty"`
	Digest   *belay.Ref   `json:"digest,omitempty"` // of the rules, or the content that is trusted

	Boundary string          `json:"boundary,omitempty"` // boundary a grant gives the one call
	Bounds   *belay.Boundary `json:"bounds,omitempty"`

	Grant  belay.EventID `json:"grant,omitempty"`  // the grant that is shared, used, revoked or used up: its fact
	Bound  belay.Digest  `json:"bound,omitempty"`  // of the exact call: tool and its definition, arguments, folder
	Within belay.Digest  `json:"within,omitempty"` // of the boundary that it was allowed in
	Taint  []string      `json:"taint,omitempty"`  // what its calls bring from outside, as kind:origin, which the person accepted
	Worst  string        `json:"worst,omitempty"`  // highest command class a prefix may have
	Count  int           `json:"count,omitempty"`  // number of calls it covers
	Until  time.Time     `json:"until,omitzero"`   // when it ends
	Reason string        `json:"reason,omitempty"`

	Stands *belay.ApprovalContext `json:"stands,omitempty"` // context a grant of one call is bound to

	Thread belay.ThreadID `json:"thread,omitempty"` // that got a grant which covers its tree, or that uses one
	Only   bool           `json:"only,omitempty"`   // the grant covers the agent that asked and those below it
}
