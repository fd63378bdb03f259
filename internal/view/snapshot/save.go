package snapshot

import (
	"encoding/json"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// saved is a fold between two facts. The step that is open is the last one of
// the turn that is active, so it needs no place of its own.
type saved struct {
	Session *Session       `json:"session"`
	Dropped map[string]int `json:"dropped,omitempty"`
	Cost    event.CostSum  `json:"cost,omitzero"`

	Joined map[belay.ThreadID][]*Turn `json:"joined,omitempty"` // that are part of the running turn of a thread
}

// Save is the fold as it stands, for Load. It must come before Done.
func (f *Fold) Save() ([]byte, error) {
	joined := map[belay.ThreadID][]*Turn{}
	for _, t := range f.s.Threads {
		if len(t.joined) > 0 {
			joined[t.ThreadID] = t.joined
		}
	}
	return json.Marshal(saved{f.s, f.dropped, f.cost, joined})
}

// Load continues with a fold that was saved. What Save of another build wrote may
// be read or refused; whoever keeps it names its shape.
func Load(data []byte) (*Fold, error) {
	var in saved
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	if in.Session == nil || in.Session.SchemaVersion != event.SchemaVersion {
		return nil, errors.New("it is no snapshot of this schema")
	}
	f := New(in.Session.RuntimeID, in.Session.SessionID)
	f.s, f.cost = in.Session, in.Cost
	if in.Dropped != nil {
		f.dropped = in.Dropped
	}
	for i, c := range f.s.Cursor {
		f.streams[c.Stream] = i
	}
	for _, t := range f.s.Threads {
		f.threads[t.ThreadID.Stream()], t.joined = t, in.Joined[t.ThreadID]
		if turn := t.turn(); t.Active != "" && turn != nil && len(turn.Steps) > 0 {
			t.step = turn.Steps[len(turn.Steps)-1]
		}
	}
	for _, t := range f.s.Tasks {
		f.tasks[t.TaskID] = t
	}
	return f, nil
}
