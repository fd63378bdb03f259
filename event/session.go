package event

import "github.com/belay-run/belay"

// SessionCreated opens a session on a workspace.
type SessionCreated struct {
	fact
	Workspace string         `json:"workspace"`
	Title     string         `json:"title,omitempty"`
	Settings  belay.Settings `json:"settings"`
	Thread    belay.ThreadID `json:"thread,omitempty"` // opened with it, with a history
}

// SessionUpdated replaces the session's settings, title or use of its
// workspace, gives it work, or moves it in the lists.
type SessionUpdated struct {
	fact
	Title    string          `json:"title,omitempty"`
	Tag      []string        `json:"tag,omitempty"`      // it has these from now on
	Untag    []string        `json:"untag,omitempty"`    // and these no more
	Archived *bool           `json:"archived,omitempty"` // whether lists leave it out
	Settings *belay.Settings `json:"settings,omitempty"`
	Thread   belay.ThreadID  `json:"thread,omitempty"` // new work: the thread that does it
	Task     belay.TaskID    `json:"task,omitempty"`   // its task
	Turn     belay.TurnID    `json:"turn,omitempty"`   // the turn it submits

	Hold     *HoldChange         `json:"hold,omitempty"`     // of the workspace, among its threads
	Use      *belay.WorkspaceUse `json:"use,omitempty"`      // how it uses its workspace from now on
	Worktree *belay.Worktree     `json:"worktree,omitempty"` // the one that is made for it, or was removed
	Used     *ThreadUse          `json:"used,omitempty"`     // what the programs of a thread took, where several threads have programs
}

// ThreadUse is what the programs of a thread took, from its beginning.
type ThreadUse struct {
	Thread belay.ThreadID `json:"thread"`
	belay.ProgramUse
}

// ThreadStarted opens a thread.
type ThreadStarted struct {
	fact
	Kind      string `json:"kind"` // main, child, flow
	Workspace string `json:"workspace,omitempty"`
	belay.Beginning
	Queue belay.Queueing `json:"queue,omitzero"` // how it takes turns while one runs
}

// ThreadUpdated names the rules a thread continues under.
type ThreadUpdated struct {
	fact
	Rules  *belay.Ref    `json:"rules,omitempty"`
	Limits *belay.Limits `json:"limits,omitempty"`
	Reason string        `json:"reason,omitempty"`

	Use  *belay.WorkspaceUse `json:"use,omitempty"`  // how the session uses the workspace from now on
	Hold *HoldChange         `json:"hold,omitempty"` // of the workspace, by a call of this thread

	Reported *belay.ProgramUse `json:"reported,omitempty"` // what its programs took, as the session is told
}

// HoldChange is what becomes of a call's hold on a workspace that several
// threads of a session change.
type HoldChange struct {
	Op     string         `json:"op"` // shared: the thread is not alone; asked, granted, released
	Thread belay.ThreadID `json:"thread,omitempty"`
	Call   belay.CallID   `json:"call,omitempty"`
	Whole  bool           `json:"whole,omitempty"` // nobody else changes anything meanwhile

	Others *belay.ProgramUse `json:"others,omitempty"` // granted: what programs of the session's other threads took up to then
}

// Ops of a HoldChange.
const (
	HoldShared   = "shared"
	HoldAsked    = "asked"
	HoldGranted  = "granted"
	HoldReleased = "released"
)
