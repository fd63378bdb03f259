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

// HistoryRollbackStarted says that files, and with scope thread the
// conversation too, are about to be as they were.
type HistoryRollbackStarted struct {
	fact
	Scope  string         `json:"scope"`           // thread, files
	Target int64          `json:"target"`          // the last sequence that stays in force
	To     belay.TurnID   `json:"to,omitempty"`    // the turn it ends; empty: before the first
	Turns  []belay.TurnID `json:"turns,omitempty"` // that are taken back, the oldest first, as many as fit
	Count  int            `json:"count,omitempty"` // how many they are
	Plan   *belay.Ref     `json:"plan,omitempty"`  // content: which file becomes what
	Files  int            `json:"files,omitempty"` // how many they are
	Kept   []string       `json:"kept,omitempty"`  // effects that stay in the world, as far as they are known
	By     string         `json:"by,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// HistoryRollbackCompleted says what went back and what could not. With scope
// thread the conversation is from here on what it was at the target.
type HistoryRollbackCompleted struct {
	fact
	Scope     string             `json:"scope"` // thread, files
	Target    int64              `json:"target"`
	To        belay.TurnID       `json:"to,omitempty"`
	Turns     []belay.TurnID     `json:"turns,omitempty"`
	Count     int                `json:"count,omitempty"`
	Artifacts []string           `json:"artifacts,omitempty"` // files that were restored, as many as fit
	Restored  int                `json:"restored,omitempty"`  // how many they are
	Kept      []string           `json:"kept,omitempty"`      // effects that stay in the world, as far as they are known
	Subagents []belay.SubagentID `json:"subagents,omitempty"`
	Jobs      []belay.JobID      `json:"jobs,omitempty"`
}

// Scopes of a rollback.
const (
	ScopeThread = "thread" // conversation and files
	ScopeFiles  = "files"  // files; the conversation stays, and the model is told
)
