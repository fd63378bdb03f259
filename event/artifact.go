package event

import "github.com/belay-run/belay"

// ArtifactChanged says that something with content changed: a file, a memory,
// a definition.
type ArtifactChanged struct {
	fact
	Kind    string       `json:"kind"` // file, memory, rules, flow, agent, playbook, schedule
	Path    string       `json:"path,omitempty"`
	Op      string       `json:"op,omitempty"`     // file: created, changed, removed; memory: stored, updated, forgotten, quarantined, confirmed; definition: defined, edited
	Before  *belay.Ref   `json:"before,omitempty"` // kept content
	After   *belay.Ref   `json:"after,omitempty"`
	Kept    bool         `json:"kept,omitempty"`    // the content before can be restored
	Name    string       `json:"name,omitempty"`    // of a memory or a definition
	Version string       `json:"version,omitempty"` // of a definition
	Digest  belay.Digest `json:"digest,omitempty"`  // of a definition, or of a memory
	Scope   string       `json:"scope,omitempty"`   // of a memory: session, workspace, user
	Origin  string       `json:"origin,omitempty"`  // where a memory comes from
	Note    string       `json:"note,omitempty"`
}

// EvidenceChanged says that proof was exported, or why there is none.
type EvidenceChanged struct {
	fact
	Kind   string     `json:"kind"`   // pack, replay, review
	Status string     `json:"status"` // exported, not_applicable, unsupported, missing_correlation
	Pack   *belay.Ref `json:"pack,omitempty"`
	Gaps   []string   `json:"gaps,omitempty"` // what applies and is not in it
}
