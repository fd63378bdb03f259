package event

import "github.com/belay-run/belay"

// HistoryWindowLoaded says which part of a long history a reader was given.
type HistoryWindowLoaded struct {
	fact
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	Total    int64  `json:"total,omitempty"` // facts in the stream
	Degraded string `json:"degraded,omitempty"`
}

// HistoryReconstructed says that state was made from facts again.
type HistoryReconstructed struct {
	fact
	From     int64    `json:"from"`
	To       int64    `json:"to"`
	Source   string   `json:"source"`            // log, snapshot, import
	Missing  []string `json:"missing,omitempty"` // what could not be restored
	Degraded string   `json:"degraded,omitempty"`
}

// HistoryRollbackStarted begins to restore files and, with scope thread, the
// conversation.
type HistoryRollbackStarted struct {
	fact
	Scope  string         `json:"scope"`           // thread, files
	Target int64          `json:"target"`          // the last sequence that stays in force
	To     belay.TurnID   `json:"to,omitempty"`    // the turn it ends; empty: before the first
	Turns  []belay.TurnID `json:"turns,omitempty"` // turns taken back, oldest first, as many as fit
	Count  int            `json:"count,omitempty"` // number of turns
	Plan   *belay.Ref     `json:"plan,omitempty"`  // content: which file becomes what
	Files  int            `json:"files,omitempty"` // number of files
	Kept   []string       `json:"kept,omitempty"`  // known effects that can't be taken back
	By     string         `json:"by,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// HistoryRollbackCompleted lists what was restored and what could not be. With
// scope thread the conversation continues from the target.
type HistoryRollbackCompleted struct {
	fact
	Scope     string             `json:"scope"` // thread, files
	Target    int64              `json:"target"`
	To        belay.TurnID       `json:"to,omitempty"`
	Turns     []belay.TurnID     `json:"turns,omitempty"`
	Count     int                `json:"count,omitempty"`
	Artifacts []string           `json:"artifacts,omitempty"` // restored files, as many as fit
	Restored  int                `json:"restored,omitempty"`  // number of files
	Kept      []string           `json:"kept,omitempty"`      // known effects that can't be taken back
	Subagents []belay.SubagentID `json:"subagents,omitempty"`
	Jobs      []belay.JobID      `json:"jobs,omitempty"`
}

// Scopes of a rollback.
const (
	ScopeThread = "thread" // conversation and files
	ScopeFiles  = "files"  // files; the conversation stays, and the model gets a note
)
