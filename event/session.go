package event

import (
	"time"

	"github.com/belay-run/belay"
)

// SessionCreated opens a session on a workspace.
type SessionCreated struct {
	fact
	Workspace string         `json:"workspace"`
	Title     string         `json:"title,omitempty"`
	Settings  belay.Settings `json:"settings"`
	Thread    belay.ThreadID `json:"thread,omitempty"` // opened with it, with a history
}

// SessionUpdated changes the session's settings, title, tags, archive state or
// use of its workspace, or gives it work.
type SessionUpdated struct {
	fact
	Title    string          `json:"title,omitempty"`
	Tag      []string        `json:"tag,omitempty"`      // tags added
	Untag    []string        `json:"untag,omitempty"`    // tags removed
	Archived *bool           `json:"archived,omitempty"` // left out of lists
	Settings *belay.Settings `json:"settings,omitempty"`
	Thread   belay.ThreadID  `json:"thread,omitempty"` // new work: its thread
	Task     belay.TaskID    `json:"task,omitempty"`   // its task
	Turn     belay.TurnID    `json:"turn,omitempty"`   // the turn it submits

	Hold     *HoldChange         `json:"hold,omitempty"`     // of the workspace, among its threads
	Use      *belay.WorkspaceUse `json:"use,omitempty"`      // how it uses its workspace
	Worktree *belay.Worktree     `json:"worktree,omitempty"` // made for it, or removed
	Planned  *PlannedTask        `json:"planned,omitempty"`  // a task that it starts itself, and how that stands
	Used     *ThreadUse          `json:"used,omitempty"`     // what a thread's programs used, if several threads have programs
	Pause    *TaskPause          `json:"pause,omitempty"`    // of a task
}

// TaskPause says that a task begins nothing more, or does again.
type TaskPause struct {
	Task   belay.TaskID   `json:"taskId"`
	Op     string         `json:"op"`               // paused, resumed
	Thread belay.ThreadID `json:"thread,omitempty"` // on which an attempt runs
}

// PlannedTask is a task that a session starts when nothing blocks it.
type PlannedTask struct {
	Task     belay.TaskID   `json:"taskId"`
	Status   string         `json:"status"` // of the standard
	Title    string         `json:"title,omitempty"`
	Parent   belay.TaskID   `json:"parentTaskId,omitempty"`
	Priority *int           `json:"priority,omitempty"`
	Thread   belay.ThreadID `json:"thread,omitempty"` // of one that is to start: where
	Turn     belay.TurnID   `json:"turn,omitempty"`
	Reason   string         `json:"reason,omitempty"`

	Agent    *belay.Assigned  `json:"agent,omitempty"`    // of one that is to start: the sub-agent that will do it
	Rules    *belay.Ref       `json:"rules,omitempty"`    // of that agent
	Memory   belay.MemoryNeed `json:"memory,omitzero"`    // of one that is to start: what the file of its agent declares
	Input    *belay.Ref       `json:"input,omitempty"`    // what its input is made of when it starts
	Text     *belay.Content   `json:"text,omitempty"`     // its objective with that input
	Taint    []string         `json:"taint,omitempty"`    // of the conversation in which it ended
	Optional bool             `json:"optional,omitempty"` // the task that it is a part of does without it

	Goal       bool    `json:"goal,omitempty"`       // its attempts follow one another until one completes
	CompleteAt float64 `json:"completeAt,omitempty"` // of one that ends when its parts have: the share of them that has to end well
}

// PlanUnbound is the status of a planned task whose input can't be made: it fails.
const PlanUnbound = "unbound"

// ThreadUse is what the programs of a thread used since its beginning.
type ThreadUse struct {
	Thread belay.ThreadID `json:"thread"`
	belay.ProgramUse
}

// ThreadStarted opens a thread.
type ThreadStarted struct {
	fact
	Kind      string           `json:"kind"` // main, child, flow
	Workspace string           `json:"workspace,omitempty"`
	Depth     int              `json:"depth,omitempty"`   // of a child; the main thread's is 0
	Lineage   []belay.Ancestor `json:"lineage,omitempty"` // of a child: from the main thread to itself
	belay.Beginning
	Queue belay.Queueing `json:"queue,omitzero"` // how it queues turns
}

// ThreadUpdated names the rules a thread continues under.
type ThreadUpdated struct {
	fact
	Rules  *belay.Ref    `json:"rules,omitempty"`
	Limits *belay.Limits `json:"limits,omitempty"`
	Reason string        `json:"reason,omitempty"`

	Use  *belay.WorkspaceUse `json:"use,omitempty"`  // how the session uses the workspace
	Hold *HoldChange         `json:"hold,omitempty"` // of the workspace, by a call of this thread

	Reported *belay.ProgramUse `json:"reported,omitempty"` // what its programs used

	Pin     *PinChange   `json:"pin,omitempty"`     // of a text that stays in the conversation
	Compact *CompactWish `json:"compact,omitempty"` // a person wants the conversation to be shortened
	Pause   *Pause       `json:"pause,omitempty"`   // it begins nothing more, or does again
	Place   string       `json:"place,omitempty"`   // among the agents that work: waiting (it needs none), working

	Mode     string `json:"mode,omitempty"`     // the widest that calls of a sub-agent are decided in from now on: the session's
	Boundary string `json:"boundary,omitempty"` // the same of its boundary
}

// Words of Pause, and of SubagentStatus about it.
const (
	Paused   = "paused"
	Resumed  = "resumed"
	Admitted = "admitted" // the agent of the turn may work
	Refused  = "refused"
)

// Pause is the beginning of a pause, or its end.
type Pause struct {
	Op  string `json:"op"`            // paused, resumed; of an agent's turn also admitted, refused
	Now bool   `json:"now,omitempty"` // what is in flight is cancelled

	Agent string    `json:"agent,omitempty"` // whose turn it is about, and no other; empty: the whole thread
	Until time.Time `json:"until,omitzero"`  // when it is looked again whether the agent may work

	Programs string `json:"programs,omitempty"` // in the background, which go on
}

// CompactWish is a person's request to shorten a conversation.
type CompactWish struct {
	Focus string    `json:"focus,omitempty"` // what is to be kept above all
	By    string    `json:"by,omitempty"`
	Rules belay.Ref `json:"rules,omitzero"`
}

// PinChange is a text that stays in the conversation word for word, or doesn't any
// more.
type PinChange struct {
	ID   string `json:"id"`
	Text string `json:"text,omitempty"` // empty: it was taken out
	By   string `json:"by,omitempty"`
}

// HoldChange is a change of a call's hold on a workspace that several threads
// of a session write.
type HoldChange struct {
	Op     string         `json:"op"` // shared: the thread is not alone; asked, granted, released
	Thread belay.ThreadID `json:"thread,omitempty"`
	Call   belay.CallID   `json:"call,omitempty"`
	Whole  bool           `json:"whole,omitempty"` // exclusive: no other call changes anything

	Others *belay.ProgramUse `json:"others,omitempty"` // granted: what programs of the session's other threads had used
}

// Ops of a HoldChange.
const (
	HoldShared   = "shared"
	HoldAsked    = "asked"
	HoldGranted  = "granted"
	HoldReleased = "released"
)
