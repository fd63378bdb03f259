package read

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/snapshot"
)

// standings is the view that keeps folded snapshots of sessions; its number
// changes with what a fold keeps. Rows are written when snapshots are asked for,
// so the view's own position says nothing: each row has one.
const standings = "standings/4"

// Bounds of what is kept.
const (
	keepEvery     = 1000    // facts that are folded again rather than the row is written
	keepMeanwhile = 20_000  // facts, after which a long fold is kept before it is done
	maxStanding   = 8 << 20 // bytes of a row; a larger one is folded anew each time
)

// standing is a row.
type standing struct {
	Position store.Position  `json:"position"` // of the last fact in it
	Fold     json.RawMessage `json:"fold"`
}

// standingKey ends as rows of a session do, so that they go with it.
func standingKey(id belay.SessionID) string { return "1/" + string(id) }

// standing folds a session: what was kept, and the facts behind it. So the first
// snapshot reads the history, and each one after that only what came since.
func (v *Reads) standing(ctx context.Context, id belay.SessionID) (*snapshot.Fold, error) {
	f, at, err := v.kept(ctx, id)
	if err != nil {
		return nil, err
	}
	n := 0
	for rec, err := range v.Store.Window(ctx, store.Window{Session: id, After: at}) {
		if err != nil {
			return nil, err
		}
		f.Apply(rec.Event)
		at = rec.Position
		if n++; n%keepMeanwhile == 0 { // a request may end before the history does
			if err := v.keep(ctx, id, f, at); err != nil {
				return nil, err
			}
		}
	}
	if n%keepMeanwhile >= keepEvery {
		err = v.keep(ctx, id, f, at)
	}
	return f, err
}

// kept is the fold in the row. One that can't be read is as good as none.
func (v *Reads) kept(ctx context.Context, id belay.SessionID) (*snapshot.Fold, store.Position, error) {
	data, err := v.Store.ViewRow(ctx, standings, standingKey(id))
	if err != nil {
		return nil, 0, err
	}
	var row standing
	if data != nil && json.Unmarshal(data, &row) == nil {
		if f, err := snapshot.Load(row.Fold); err == nil {
			return f, row.Position, nil
		}
	}
	return snapshot.New(v.Store.Runtime(), id), 0, nil
}

// keep writes the row. A concurrent writer writes an equivalent one.
func (v *Reads) keep(ctx context.Context, id belay.SessionID, f *snapshot.Fold, at store.Position) error {
	fold, err := f.Save()
	if err != nil {
		return err
	}
	data, err := json.Marshal(standing{at, fold})
	if err != nil || len(data) > maxStanding {
		return err
	}
	if err := v.put(ctx, id, data); err != nil {
		return err
	}
	if err := v.there(ctx, id); belay.CodeOf(err) != belay.CodeNotFound {
		return err
	}
	return v.put(ctx, id, nil) // it was deleted meanwhile, and nothing of it may stay
}

func (v *Reads) put(ctx context.Context, id belay.SessionID, data []byte) error {
	from, err := v.Store.ViewPosition(ctx, standings)
	if err != nil {
		return err
	}
	return saved(v.Store.SaveView(ctx, standings, from, 1, map[string]store.ViewRow{standingKey(id): {Data: data}}))
}

// saved takes no offence that another process has just made the view, or dropped it.
func saved(err error) error {
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// Forget drops the folded snapshots of all sessions; the next ones are folded
// from the facts.
func Forget(ctx context.Context, st store.Store) error {
	at, err := st.ViewPosition(ctx, standings)
	if err != nil || at == 0 {
		return err
	}
	return saved(st.SaveView(ctx, standings, at, 0, nil))
}
