package event

import "github.com/belay-run/belay"

// SubagentSpawned opens a child thread. The ids of the fact are the parent's, and the
// child's subagentId.
type SubagentSpawned struct {
	fact
	Thread     belay.ThreadID `json:"thread"` // the child's
	Task       belay.TaskID   `json:"task"`   // the child's
	Agent      string         `json:"agent"`  // name of its definition
	Nickname   string         `json:"nickname,omitempty"`
	Objective  belay.Content  `json:"objective"`
	Depth      int            `json:"depth"` // 1 is a child of a main thread
	Background bool           `json:"background,omitempty"`
	Priority   int            `json:"priority,omitempty"`
	Waits      bool           `json:"waits,omitempty"` // it starts when there is a place
	Rules      belay.Ref      `json:"rules"`
}

// Words of SubagentStatus.
const (
	SubagentPrepared  = "prepared"  // its rules are composed; the parent may ask for it
	SubagentRequested = "requested" // the parent asked the session for it
	SubagentRunning   = "running"   // it has a place
	SubagentEnded     = "ended"     // the parent knows how it ended
)

// SubagentStatus says how a child is.
type SubagentStatus struct {
	fact
	Status     string            `json:"status"` // prepared, requested, running, paused, resumed, ended
	Agent      string            `json:"agent,omitempty"`
	Nickname   string            `json:"nickname,omitempty"`
	Objective  *belay.Content    `json:"objective,omitempty"`  // of a prepared one
	Rules      *belay.Ref        `json:"rules,omitempty"`      // of a prepared one
	Background bool              `json:"background,omitempty"` // the call doesn't wait for its end
	Reason     string            `json:"reason,omitempty"`
	End        *belay.AttemptEnd `json:"end,omitempty"` // of an ended one
}

// SubagentInput is what the parent, or a person, told a child.
type SubagentInput struct {
	fact
	By    string        `json:"by,omitempty"`
	Text  belay.Content `json:"text"`
	Turn  belay.TurnID  `json:"turn,omitempty"`  // of the child
	Again bool          `json:"again,omitempty"` // it had ended, and goes on
	Waits bool          `json:"waits,omitempty"` // when there is a place

	Agent    string `json:"agent"` // name of its definition
	Nickname string `json:"nickname,omitempty"`
	Depth    int    `json:"depth"`
}

// SubagentCompleted is a child that met its objective.
type SubagentCompleted struct {
	fact
	belay.AttemptEnd
}

// SubagentFailed is a child that ended in any other way, or was never opened.
type SubagentFailed struct {
	fact
	belay.AttemptEnd
	Code string `json:"code,omitempty"` // of a refusal
}

// SubagentClosed says that a child is to end, with the children it started.
type SubagentClosed struct {
	fact
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}
