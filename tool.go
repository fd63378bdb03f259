package belay

import "encoding/json"

// EffectClass is whether a call can be run again after a crash in the middle.
type EffectClass string

const (
	Pure        EffectClass = "pure"         // run it again freely
	Idempotent  EffectClass = "idempotent"   // run it again with the same key, the call id
	Recoverable EffectClass = "recoverable"  // ask the tool what the attempt before did
	AtMostOnce  EffectClass = "at_most_once" // never run it again without a decision
)

// Published is the newest version of an artifact that a thread published.
type Published struct {
	Version int    `json:"version"`
	Digest  Digest `json:"digest"`
}

// Access is how a call touches a resource.
type Access string

const (
	Read  Access = "read"  // looks only
	Write Access = "write" // may change it
)

// ToolSpec describes a tool and how it may be run. It is data: the rules of a
// turn carry it, and the scheduler and the gate decide by it.
type ToolSpec struct {
	Name         string          `json:"name"`
	Doc          string          `json:"doc"`              // what the model reads
	Input        json.RawMessage `json:"input"`            // JSON Schema of the arguments
	Output       json.RawMessage `json:"output,omitempty"` // JSON Schema of the data of its results; empty: they needn't have any
	Effect       EffectClass     `json:"effect"`           // empty is at_most_once
	ReadOnly     bool            `json:"readOnly,omitempty"`
	Exclusive    bool            `json:"exclusive,omitempty"` // runs alone in its thread
	Destructive  bool            `json:"destructive,omitempty"`
	Polling      bool            `json:"polling,omitempty"`   // repeating it unchanged is its purpose
	PathArg      string          `json:"pathArg,omitempty"`   // argument that names the file it touches; others touch the workspace
	PathForm     string          `json:"pathForm,omitempty"`  // how PathArg names it: empty as a path, patch as a patch of several files
	Command      *CommandArgs    `json:"command,omitempty"`   // arguments that are a command line, which the gate takes apart
	HostArg      string          `json:"hostArg,omitempty"`   // argument that names what it connects to: a URL, a host, or a list of them
	Hosts        []string        `json:"hosts,omitempty"`     // the only ones that it connects to, as a person's settings say: names, or *.NAME for what is below; empty: any
	Access       Access          `json:"access,omitempty"`    // how it touches that
	Interrupt    string          `json:"interrupt,omitempty"` // cancel (default) or finish
	Capabilities []string        `json:"capabilities,omitempty"`
	Timeout      Duration        `json:"timeout,omitempty"`     // 0 is the engine's default
	OutputLimit  int             `json:"outputLimit,omitempty"` // bytes the model is shown; 0 is the default
	Group        string          `json:"group,omitempty"`       // besides the groups that name it; of tools that manifests declare
	Untrusted    bool            `json:"untrusted,omitempty"`   // what it returns comes from outside
	Definition   Digest          `json:"definition,omitempty"`  // of the manifest that declares it
	Load         string          `json:"load,omitempty"`        // how a model is offered it: empty with its definition, auto, or search by its name alone
	Handled      string          `json:"handled,omitempty"`     // complete or ask: the core answers the call, no tool runs
	Native       bool            `json:"native,omitempty"`      // the model's vendor runs it, within an answer
	Server       string          `json:"server,omitempty"`      // the MCP server whose tool it is: its content comes with every result
	Bounds       *ToolBounds     `json:"bounds,omitempty"`      // that its programs run in; nil: the turn's boundary
}

// ToolBounds is the boundary of a tool's programs, whatever the turn's is.
type ToolBounds struct {
	Boundary string   `json:"boundary,omitempty"` // by its name; empty is workspace-write
	Network  string   `json:"network,omitempty"`  // full; empty is the boundary's
	Write    []string `json:"write,omitempty"`    // absolute paths that can be written besides
}

// CommandArgs names the arguments of a tool that runs command lines. The gate
// reads them; empty names mean that the tool has no such argument.
type CommandArgs struct {
	Line string `json:"line,omitempty"` // text for a shell
	Argv string `json:"argv,omitempty"` // program and arguments
	Dir  string `json:"dir,omitempty"`  // where it runs, relative to the workspace
	Env  string `json:"env,omitempty"`  // variables that are added

	Boundary string `json:"boundary,omitempty"` // by its name, that the call asks for
	Reason   string `json:"reason,omitempty"`   // why it does
}
