package event

import "github.com/belay-run/belay"

// SubagentSpawned opens a child thread. The ids of the fact are the parent's.
type SubagentSpawned struct {
	fact
	Thread    belay.ThreadID `json:"thread"` // the child's
	Agent     string         `json:"agent"`  // name of its definition
	Nickname  string         `json:"nickname,omitempty"`
	Objective belay.Content  `json:"objective"`
	Provider  string         `json:"provider,omitempty"`
	Model     string         `json:"model,omitempty"`
	Tools     []string       `json:"tools,omitempty"`
	Isolation string         `json:"isolation,omitempty"` // shared, copy, worktree
	Depth     int            `json:"depth,omitempty"`     // 1 is a child of a main thread
	Limits    belay.Limits   `json:"limits,omitzero"`     // its slice of the parent's
	Rules     *belay.Ref     `json:"rules,omitempty"`
}

// SubagentStatus says how a child, or a registered agent, is.
type SubagentStatus struct {
	fact
	Status string `json:"status"` // running, idle, waiting, registered, healthy, unhealthy, drained
	Agent  string `json:"agent,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// SubagentInput is what the parent, or a person, told a child.
type SubagentInput struct {
	fact
	By   string        `json:"by,omitempty"`
	Text belay.Content `json:"text"`
}

// SubagentCompleted is a child that met its objective.
type SubagentCompleted struct {
	fact
	Summary   belay.Content  `json:"summary,omitzero"`
	Output    *belay.Content `json:"output,omitempty"`
	Artifacts []string       `json:"artifacts,omitempty"`
	Stats     TurnStats      `json:"stats,omitzero"`
}

// SubagentFailed is a child that ended in any other way.
type SubagentFailed struct {
	fact
	Outcome belay.Outcome `json:"outcome"`
	Reason  string        `json:"reason"`
	Stats   TurnStats     `json:"stats,omitzero"`
}

// SubagentClosed says that a child takes no more input.
type SubagentClosed struct {
	fact
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}
