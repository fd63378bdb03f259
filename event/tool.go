package event

import "github.com/belay-run/belay"

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
	Expect   string       `json:"expect,omitempty"`   // digest the target file must still have; "absent"
	Boundary string       `json:"boundary,omitempty"` // what confines it
	Recover  bool         `json:"recover,omitempty"`  // the attempt only finds out what the one before did
}

// ToolResult is the good end of a call.
type ToolResult struct {
	fact
	Name    string        `json:"name"`
	Attempt int           `json:"attempt"`
	Output  belay.Content `json:"output"`
	Digest  belay.Digest  `json:"digest"`          // of the whole output, for loop detection
	Files   []FileSeen    `json:"files,omitempty"` // what the thread knows of files after it
	Millis  int64         `json:"ms"`
}

// FileSeen is a file as the thread last read or wrote it.
type FileSeen struct {
	Path   string `json:"path"`   // slash-separated, relative to the workspace
	Digest string `json:"digest"` // sha256:…, or absent
}

// ToolFailed is any other end of a call: failed, denied, lost, cancelled,
// skipped, refused.
type ToolFailed struct {
	fact
	Name    string        `json:"name"`
	Attempt int           `json:"attempt"`
	Problem Problem       `json:"problem"`
	Output  belay.Content `json:"output,omitzero"` // what it had produced
	Final   bool          `json:"final"`           // no further attempt follows
	Millis  int64         `json:"ms,omitempty"`
}

// ArtifactChanged says that something with content changed: a file, a memory,
// a definition.
type ArtifactChanged struct {
	fact
	Kind   string     `json:"kind"` // file, memory, rules, flow, agent, playbook, schedule
	Path   string     `json:"path,omitempty"`
	Op     string     `json:"op,omitempty"`     // created, changed, removed
	Before *belay.Ref `json:"before,omitempty"` // kept content
	After  *belay.Ref `json:"after,omitempty"`
	Kept   bool       `json:"kept"` // the content before can be restored
	Note   string     `json:"note,omitempty"`
}
