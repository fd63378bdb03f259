package store

import (
	"context"
	"time"

	"github.com/belay-run/belay"
)

// Admin is a store that a person looks after: what belay store, belay outputs and the
// retention of a server need besides sessions. A store for tests needn't have it.
type Admin interface {
	Store
	Settings
	Retention
	// Inventory counts what is in the store. What a driver has nothing of is 0.
	Inventory(ctx context.Context) (Inventory, error)
	// SessionBytes is about how much the facts of each session take.
	SessionBytes(ctx context.Context) (map[belay.SessionID]int64, error)
	Stats() Stats
}

// Settings are what a person decided about the store. They are durable, and a backup
// has them.
type Settings interface {
	// Setting is a decision that was kept, or empty.
	Setting(ctx context.Context, key string) (string, error)
	// Set keeps a decision; an empty value takes it back.
	Set(ctx context.Context, key, value string) error
}

// Retention removes what isn't wanted any more. Each call works on a live store, and
// finishes what an earlier one was cut short in.
type Retention interface {
	// DeleteIdle is DeleteSession for an idle session: only one in
	// which nothing is wanted or waits, which is belay.CodeBusy otherwise. What only
	// it named is left to Compact.
	DeleteIdle(ctx context.Context, session belay.SessionID, by string) error
	// NeededBesides tells which contents something names in another way than as an
	// output: to let them go would free nothing.
	NeededBesides(ctx context.Context, digests []belay.Digest) (map[belay.Digest]bool, error)
	// DropExpired removes the outputs of which facts say that they have expired, and
	// that nothing else needs. It takes nothing but those facts for an order, so
	// content never goes before the fact that lets it go.
	DropExpired(ctx context.Context) (Expired, error)
	// Compact finishes deletions, removes content that nothing has named for a day,
	// and gives free space back to the system. A dry run only counts.
	Compact(ctx context.Context, dry bool) (Compacted, error)
}

// Compacted is what Compact did, or would do.
type Compacted struct {
	Deletions int   // that were cut short and are finished now
	Contents  int   // that nothing named, and that were older than a day
	Bytes     int64 // of those
	Before    int64 // the size of the store's files
	After     int64
}

// Expired is what DropExpired did.
type Expired struct {
	Contents int   // that were removed
	Bytes    int64 // of those
	Needed   int   // that stay because something else names them
	Left     int   // that were put a short while ago, while others run: the next call removes them
}

// Inventory is what a store holds.
type Inventory struct {
	Runtime    belay.RuntimeID `json:"runtime"`
	Path       string          `json:"path"`
	Sessions   int             `json:"sessions"`
	Streams    int             `json:"streams"`
	Facts      int64           `json:"facts"`
	Waiting    int64           `json:"waiting"` // commands
	Contents   int64           `json:"contents"`
	Tombstones int             `json:"tombstones"`
	Unfinished int             `json:"unfinished,omitempty"` // deletions that were cut short
	First      time.Time       `json:"first,omitzero"`       // fact
	Last       time.Time       `json:"last,omitzero"`
	Position   Position        `json:"position"`
	Database   int64           `json:"databaseBytes"`
	Free       int64           `json:"freeBytes"` // of these
	Log        int64           `json:"logBytes"`  // write-ahead
	Files      int64           `json:"files"`     // large contents
	FileBytes  int64           `json:"fileBytes"`
}

// Stats are counts since a store was opened.
type Stats struct {
	Transactions int64 // commits: each is one sync
	Failed       int64 // transactions that were rolled back
	Appends      int64 // batches that wrote something
	Events       int64
	Checkpoints  int64 // of the write-ahead log
	Reads        int64 // queries
	Statements   int64 // statements that write, those around a transaction included
	Largest      int64 // writes in the largest transaction
	WALBytes     int64 // size of the write-ahead log now
}
