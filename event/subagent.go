package event

import "github.com/belay-run/belay"

// SubagentSpawned opens a child thread. The ids of the fact are the parent's, and the
// child's subagentId.
type SubagentSpawned struct {
	fact
	Thread     belay.ThreadID   `json:"thread"` // the child's
	Task       belay.TaskID     `json:"task"`   // the child's
	Agent      string           `json:"agent"`  // name of its definition
	Nickname   string           `json:"nickname,omitempty"`
	Objective  belay.Content    `json:"objective"`
	Depth      int              `json:"depth"` // 1 is a child of a main thread
	Background bool             `json:"background,omitempty"`
	Priority   int              `json:"priority,omitempty"`
	Waits      bool             `json:"waits,omitempty"` // it starts when there is a place
	Rules      belay.Ref        `json:"rules"`
	ParentTask belay.TaskID     `json:"parentTask,omitempty"` // that the parent works on
	Memory     belay.MemoryNeed `json:"memory,omitzero"`      // that its file declares

	Context   string          `json:"context,omitempty"`   // fork: it begins with a copy of its parent's conversation
	Workspace string          `json:"workspace,omitempty"` // if that isn't the session's
	Worktree  *belay.Worktree `json:"worktree,omitempty"`  // of its own
	Team      *belay.Team     `json:"team,omitempty"`      // others do its task, as its children
}

// ContextFork is a child's context that begins with its parent's conversation.
const ContextFork = "fork"

// Words of SubagentStatus.
const (
	SubagentCopied    = "copied"    // what it begins with of its parent's conversation is kept
	SubagentPrepared  = "prepared"  // its rules are composed; the parent may ask for it
	SubagentRequested = "requested" // the parent asked the session for it
	SubagentRunning   = "running"   // it has a place
	SubagentWaiting   = "waiting"   // it waits for agents, a person or the end of a pause, and needs no place
	SubagentWorking   = "working"   // it goes on
	SubagentLeaving   = "leaving"   // it has ended, and its worktree is looked at
	SubagentSettled   = "settled"   // its worktree was looked at, and removed if nothing changed
	SubagentEnded     = "ended"     // the parent knows how it ended
)

// SubagentStatus says how a child is.
type SubagentStatus struct {
	fact
	Status     string            `json:"status"` // copied, prepared, requested, running, waiting, working, paused, resumed, leaving, settled, ended
	Agent      string            `json:"agent,omitempty"`
	Nickname   string            `json:"nickname,omitempty"`
	Objective  *belay.Content    `json:"objective,omitempty"`  // of a prepared one
	Rules      *belay.Ref        `json:"rules,omitempty"`      // of a prepared one
	Background bool              `json:"background,omitempty"` // the call doesn't wait for its end
	Reason     string            `json:"reason,omitempty"`
	Task       belay.TaskID      `json:"task,omitempty"` // that it does, if that isn't one of its own
	End        *belay.AttemptEnd `json:"end,omitempty"`  // of one that leaves, or has ended

	Budget     *belay.Amounts   `json:"budget,omitempty"`     // of a prepared one, or one that goes on: what its parent's turn lends it
	Acceptance []belay.Check    `json:"acceptance,omitempty"` // of a prepared one
	Retry      *belay.Retry     `json:"retry,omitempty"`      // of a prepared one
	Memory     belay.MemoryNeed `json:"memory,omitzero"`      // of a prepared one

	Begin     *belay.Beginning `json:"begin,omitempty"`     // of a copied one
	Team      *belay.Team      `json:"team,omitempty"`      // of a prepared one that is a team
	Workspace string           `json:"workspace,omitempty"` // of a prepared one, if that isn't its parent's
	Worktree  *belay.Worktree  `json:"worktree,omitempty"`  // of a prepared one, or a settled one
	Diff      *belay.Diffstat  `json:"diff,omitempty"`      // of a settled one
	Changed   []string         `json:"changed,omitempty"`   // files, of a settled one
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
	Grace  bool   `json:"grace,omitempty"` // it gets one more step
}
