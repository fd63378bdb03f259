package event

import (
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
	Where      string       `json:"where,omitempty"` // of the rule: file:line:column, as the file was when it was read; none: it is built in

	Priority int             `json:"priority,omitempty"` // of the deciding rule in its tier
	Mode     string          `json:"mode,omitempty"`
	Tags     []string        `json:"tags,omitempty"`     // of risk
	Taint    []string        `json:"taint,omitempty"`    // what the thread was tainted by, as kind:origin
	Boundary string          `json:"boundary,omitempty"` // that the deciding rule wants
	Matched  []RuleMatched   `json:"matched,omitempty"`  // other rules that spoke of the call, the strongest voice first
	Commands []CommandJudged `json:"commands,omitempty"` // of a command line
	Omitted  int             `json:"omitted,omitempty"`  // how many of matched and commands aren't here

	Bounds     *belay.Boundary `json:"bounds,omitempty"`     // what the boundary allows that the call gets; only of a call that starts programs
	BoundaryBy string          `json:"boundaryBy,omitempty"` // who named it: a mode, settings, a rule, the call, a grant, a violation
	Least      string          `json:"least,omitempty"`      // the level without which it isn't run

	Grant belay.EventID `json:"grant,omitempty"` // that allowed it, or a part of it
}

// RuleMatched is a rule that spoke of a call. Lost says that something else
// became of it.
type RuleMatched struct {
	Rule     string `json:"rule"`
	Tier     string `json:"tier"`
	Priority int    `json:"priority,omitempty"`
	Decision string `json:"decision"`
	Lost     bool   `json:"lost,omitempty"`
}

// CommandJudged is what was said of one simple command of a command line.
type CommandJudged struct {
	Name     string `json:"name"`
	Class    string `json:"class"` // read-only, write-workspace, network, destructive, escape-attempt, unparsable
	Decision string `json:"decision"`
	Rule     string `json:"rule"`
}

// PermissionRequested says that a decision of a person is needed.
type PermissionRequested struct {
	fact
	Tool     string        `json:"tool"`
	ArgsHash belay.Digest  `json:"argsHash"`
	Rule     string        `json:"rule"`
	Until    time.Time     `json:"until"`
	Again    *Again        `json:"again,omitempty"`  // why, when the call was allowed before
	Stands   *belay.Stands `json:"stands,omitempty"` // what the answer is for besides arguments and boundary
}

// Again is why a person is asked once more about a call that was allowed: what
// was allowed isn't what would run.
type Again struct {
	Code   string `json:"code"` // BOUNDARY_CHANGED, FOLDER_CHANGED, PROGRAM_CHANGED, ENVIRONMENT_CHANGED
	Reason string `json:"reason"`
}

// PermissionResolved is its outcome.
type PermissionResolved struct {
	fact
	Decision string       `json:"decision"` // allow, deny
	By       string       `json:"by"`       // a principal, or deadline
	Scope    string       `json:"scope,omitempty"`
	ArgsHash belay.Digest `json:"argsHash"`
	Message  string       `json:"message,omitempty"`
}

// ActionRequired waits for a person. It never hangs: Until and Default say
// what happens when nobody answers.
type ActionRequired struct {
	fact
	Kind      string        `json:"kind"` // permission, question
	Prompt    belay.Content `json:"prompt"`
	Decisions []string      `json:"decisions"` // allow, deny, answer
	Default   string        `json:"default"`
	Owner     string        `json:"owner"` // who may answer: a role
	Until     time.Time     `json:"until"`
	Tool      string        `json:"tool,omitempty"`
	ArgsHash  belay.Digest  `json:"argsHash,omitempty"`

	Boundary string          `json:"boundary,omitempty"` // that the call gets when it is allowed
	Bounds   *belay.Boundary `json:"bounds,omitempty"`   // what that allows
	Stopped  *Stopped        `json:"stopped,omitempty"`  // what a boundary stopped: the answer is whether the call runs again in this wider one
	Again    *Again          `json:"again,omitempty"`    // why it is asked once more
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
	By       string        `json:"by"`       // a principal, deadline, turn
	Scope    string        `json:"scope,omitempty"`
	Message  belay.Content `json:"message,omitzero"`
	Taint    []string      `json:"taint,omitempty"` // what the decision clears
}

// SandboxApplied says which boundary an execution really got.
type SandboxApplied struct {
	fact
	Level    string            `json:"level"` // L0 … L3
	Why      string            `json:"why"`
	Cwd      string            `json:"cwd,omitempty"`
	Network  string            `json:"network,omitempty"`  // none, hosts, full
	Layers   map[string]string `json:"layers,omitempty"`   // layer → applied, unavailable(errno), disabled(by)
	Boundary string            `json:"boundary,omitempty"` // by its name
}

// SandboxViolation says what a boundary stopped.
type SandboxViolation struct {
	fact
	Layer    string `json:"layer"`
	Op       string `json:"op,omitempty"`     // read, write, connect, call, limit, obeyed: left for another program to obey, and moved aside
	Target   string `json:"target,omitempty"` // a path, a host, a system call, a limit
	Reason   string `json:"reason"`           // how it is known
	Boundary string `json:"boundary,omitempty"`
}

// PolicyChanged says that rules or grants changed.
type PolicyChanged struct {
	fact
	Kind     string       `json:"kind"`           // grant, rules, trust
	Op       string       `json:"op"`             // granted, revoked, used_up, loaded
	Path     string       `json:"path,omitempty"` // of a file that is trusted, or is no more
	Tool     string       `json:"tool,omitempty"`
	ArgsHash belay.Digest `json:"argsHash,omitempty"` // the one call a grant is bound to
	Prefix   string       `json:"prefix,omitempty"`   // or the start of the arguments it covers
	Tier     string       `json:"tier,omitempty"`
	Scope    string       `json:"scope,omitempty"`
	Dialect  string       `json:"dialect,omitempty"` // of the shell whose command lines a grant covers; empty: sh
	By       string       `json:"by,omitempty"`
	Digest   *belay.Ref   `json:"digest,omitempty"` // of the rules, or the content that is trusted

	Boundary string          `json:"boundary,omitempty"` // that a grant gives the one call
	Bounds   *belay.Boundary `json:"bounds,omitempty"`

	Grant  belay.EventID `json:"grant,omitempty"`  // which one was revoked or used up: the fact that gave it
	Bound  belay.Digest  `json:"bound,omitempty"`  // of the exact call: tool and its definition, arguments, folder
	Within belay.Digest  `json:"within,omitempty"` // of the boundary that it was allowed in
	Worst  string        `json:"worst,omitempty"`  // class that commands of a prefix may have at most
	Count  int           `json:"count,omitempty"`  // how many calls it covers
	Until  time.Time     `json:"until,omitzero"`   // it covers none from then on
	Reason string        `json:"reason,omitempty"`

	Stands *belay.Stands `json:"stands,omitempty"` // what a grant of one call is for besides arguments and boundary
}
