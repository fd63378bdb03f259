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

// HistoryRollbackStarted says that a conversation is about to go back.
type HistoryRollbackStarted struct {
	fact
	Target int64          `json:"target"` // the last sequence that stays in force
	Turns  []belay.TurnID `json:"turns,omitempty"`
	By     string         `json:"by,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// HistoryRollbackCompleted says what went back and what could not.
type HistoryRollbackCompleted struct {
	fact
	Target    int64              `json:"target"`
	Turns     []belay.TurnID     `json:"turns,omitempty"`
	Artifacts []string           `json:"artifacts,omitempty"` // files that were restored
	Kept      []string           `json:"kept,omitempty"`      // effects that stay in the world
	Subagents []belay.SubagentID `json:"subagents,omitempty"`
	Jobs      []belay.JobID      `json:"jobs,omitempty"`
}
