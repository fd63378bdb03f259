package event

import (
	"time"

	"github.com/belay-run/belay"
)

// JobCreated is a batch, the items of a map node, or a schedule.
type JobCreated struct {
	fact
	Kind         string         `json:"kind"` // batch, map, schedule
	Name         string         `json:"name,omitempty"`
	Instruction  belay.Content  `json:"instruction,omitzero"`
	Inputs       *belay.Ref     `json:"inputs,omitempty"`
	OutputSchema *belay.Ref     `json:"outputSchema,omitempty"`
	Items        int            `json:"items,omitempty"`
	Parallel     int            `json:"parallel,omitempty"` // items at a time
	Cron         string         `json:"cron,omitempty"`
	Zone         string         `json:"zone,omitempty"`
	Timeout      belay.Duration `json:"timeout,omitempty"` // of one item
}

// JobStarted says that the first item may begin.
type JobStarted struct {
	fact
	Items int `json:"items,omitempty"`
}

// JobProgress counts items.
type JobProgress struct {
	fact
	Pending   int    `json:"pending,omitempty"`
	Running   int    `json:"running,omitempty"`
	Completed int    `json:"completed,omitempty"`
	Failed    int    `json:"failed,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
	Delivery  string `json:"delivery,omitempty"` // of a result: pending, delivered, queued, failed
}

// JobItemStarted begins an attempt of one item, or a run of a schedule.
type JobItemStarted struct {
	fact
	Kind    string         `json:"kind,omitempty"` // schedule; empty is the job's
	Index   int            `json:"index"`
	Attempt int            `json:"attempt"`
	Thread  belay.ThreadID `json:"assignedThread,omitempty"`
	Due     time.Time      `json:"due,omitzero"` // when a schedule wanted it
}

// JobItemCompleted ends an item well.
type JobItemCompleted struct {
	fact
	Index  int           `json:"index"`
	Output belay.Content `json:"output,omitzero"`
	Millis int64         `json:"ms,omitempty"`
}

// JobItemFailed ends an attempt of an item in any other way.
type JobItemFailed struct {
	fact
	Kind    string    `json:"kind,omitempty"` // schedule; empty is the job's
	Index   int       `json:"index"`
	Attempt int       `json:"attempt,omitempty"`
	Problem Problem   `json:"problem,omitzero"`
	Missed  int       `json:"missed,omitempty"` // runs of a schedule whose time passed
	Due     time.Time `json:"due,omitzero"`
	Final   bool      `json:"final,omitempty"` // no further attempt follows
}

// JobEnd is what the ends of a job share.
type JobEnd struct {
	Completed int        `json:"completed,omitempty"`
	Failed    int        `json:"failed,omitempty"`
	Report    *belay.Ref `json:"report,omitempty"`
}

// JobCompleted says that every item has ended and the job is well.
type JobCompleted struct {
	fact
	JobEnd
}

// JobFailed says that the job can't go on, or too many items failed.
type JobFailed struct {
	fact
	JobEnd
	Reason string `json:"reason"`
}

// JobCancelled says that the job was stopped on request.
type JobCancelled struct {
	fact
	JobEnd
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}
