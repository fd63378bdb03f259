package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// name is the view's name in the store. Its number changes with the shape of a
// row: another build then folds a view of its own instead of misreading this one.
const name = "sessions/4"

// Name is under which the rows are in the store: what they are and their version.
const Name = name

// Keys of rows. Sessions come first, so that a listing ends where actions begin.
const (
	sessionKey = "1/" // + session id: a Session
	actionKey  = "2/" // + action id: a place, kept after the answer
	runKey     = "3/" // + run id: a place, kept after the end
	channelKey = "4/" // + channel id: a Channel
	channels   = "5/" // the ids of all channels
)

// place is where an action, or a run, belongs.
type place struct {
	Session belay.SessionID `json:"session"`
	Thread  belay.ThreadID  `json:"thread,omitempty"`
	Stream  belay.StreamID  `json:"stream"`
	Turn    belay.TurnID    `json:"turn,omitempty"`
	Call    belay.CallID    `json:"call,omitempty"`
	Task    belay.TaskID    `json:"task,omitempty"`
}

// chunk is how many facts are folded between two saves. It bounds memory: a
// fact has at most store.MaxEvent bytes.
const chunk = 512

// Projector keeps the view of one store up with its log. Any number of them, in
// any number of processes, may work on one store: each save names the position
// it continues from, and the loser of a race begins again from there.
type Projector struct {
	Store store.Store
	Chunk int // facts between two saves; 0 is the default
}

// Catchup folds what the view hasn't seen, up to the end that the log has at the call.
func Catchup(ctx context.Context, st store.Store) error { return Projector{Store: st}.Catchup(ctx) }

// Rebuild drops the view's rows and folds the whole log again.
func Rebuild(ctx context.Context, st store.Store) error { return Projector{Store: st}.rebuild(ctx) }

// Catchup folds what the view hasn't seen, up to the end that the log has at the
// call: a writer that is faster than this mustn't keep a reader waiting for
// ever.
func (p Projector) Catchup(ctx context.Context) error {
	end, err := p.Store.End(ctx)
	if err != nil {
		return err
	}
	return p.UpTo(ctx, end)
}

// At is the position up to which the view is folded.
func (p Projector) At(ctx context.Context) (store.Position, error) { return At(ctx, p.Store) }

// UpTo folds until the view has come as far as end.
func (p Projector) UpTo(ctx context.Context, end store.Position) error {
	for {
		from, err := p.Store.ViewPosition(ctx, name)
		if err != nil || from >= end {
			return err
		}
		if more, err := p.Step(ctx); err != nil || !more {
			return err
		}
	}
}

// Step folds one chunk, and reports whether there may be more.
func (p Projector) Step(ctx context.Context) (more bool, err error) {
	from, err := p.Store.ViewPosition(ctx, name)
	if err != nil {
		return false, err
	}
	more, err = p.step(ctx, from)
	switch {
	case errors.Is(err, store.ErrConflict): // another projector was here
		return true, nil
	case errors.Is(err, errUnreadable):
		return true, p.drop(ctx)
	}
	return more, err
}

// Follow keeps the view up until ctx ends, and returns the context's error.
func (p Projector) Follow(ctx context.Context) error {
	for {
		changed := p.Store.Changed(ctx)
		if err := p.Catchup(ctx); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rebuild drops the view's rows and folds the whole log again.
func (p Projector) rebuild(ctx context.Context) error {
	if err := p.drop(ctx); err != nil {
		return err
	}
	return p.Catchup(ctx)
}

func (p Projector) drop(ctx context.Context) error {
	for {
		at, err := p.Store.ViewPosition(ctx, name)
		if err != nil {
			return err
		}
		if err = p.Store.SaveView(ctx, name, at, 0, nil); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// errUnreadable: a row isn't what this build writes. A view is made anew, not repaired.
var errUnreadable = errors.New("a row of the view can't be read")

// step folds one chunk. The facts are read before anything is saved: a store
// may hold a lock while it is read.
func (p Projector) step(ctx context.Context, from store.Position) (more bool, err error) {
	size := p.Chunk
	if size <= 0 {
		size = chunk
	}
	c, err := read(ctx, p.Store, from, size)
	if err != nil {
		return false, fmt.Errorf("fold %s: %w", name, err)
	}
	if c.To <= from {
		return false, nil
	}
	f := folding{st: p.Store, rows: map[belay.SessionID]*Session{}, out: map[string][]byte{}}
	for recs, deleted := c.Facts, c.Deleted; len(recs) > 0 || len(deleted) > 0; {
		if len(deleted) > 0 && (len(recs) == 0 || deleted[0].Position < recs[0].Position) {
			err = f.remove(ctx, deleted[0].Session)
			deleted = deleted[1:]
		} else {
			err = f.fold(ctx, recs[0])
			recs = recs[1:]
		}
		if err != nil {
			return false, err
		}
	}
	if err := f.encode(); err != nil {
		return false, err
	}
	return c.More, p.Store.SaveView(ctx, name, from, c.To, f.out)
}

// Chunk is what a view folds between two saves, in order.
type Chunk struct {
	Facts   []store.Record
	Deleted []store.Tombstone // of sessions that the facts may be of; the last ones may lie behind To
	To      store.Position    // all facts up to here are among those that were read
	More    bool
}

// read reads at most size facts behind a position, and the deletions after it. A
// deletion that comes while it reads may have facts before it that weren't there
// to be read, so the chunk ends before it; its rows go at once all the same.
func read(ctx context.Context, st store.Store, from store.Position, size int) (c Chunk, err error) {
	if c.To, err = st.End(ctx); err != nil {
		return c, err
	}
	c.Facts = make([]store.Record, 0, min(size, int(max(c.To-from, 0))))
	for rec, err := range st.Scan(ctx, from) {
		if err != nil {
			return c, err
		}
		if c.Facts = append(c.Facts, rec); len(c.Facts) == size {
			c.More = true
			break
		}
	}
	if n := len(c.Facts); n > 0 && (c.More || c.Facts[n-1].Position > c.To) {
		c.To = c.Facts[n-1].Position
	}
	if c.Deleted, err = st.Tombstones(ctx, from); c.More {
		c.Deleted = slices.DeleteFunc(c.Deleted, func(t store.Tombstone) bool { return t.Position > c.To })
	}
	return c, err
}

// folding is one chunk's work.
type folding struct {
	st   store.Store
	rows map[belay.SessionID]*Session
	out  map[string][]byte
}

func (f *folding) fold(ctx context.Context, rec store.Record) error {
	ids := rec.Event.IDs
	if ids.Channel != "" {
		return f.channel(ctx, rec)
	}
	if ids.Session == "" || ids.Session == belay.SystemSession {
		return nil
	}
	row := f.rows[ids.Session]
	if row == nil {
		var err error
		if row, err = load(ctx, f.st, ids.Session); err != nil {
			return err
		}
		f.rows[ids.Session] = row
	}
	Apply(row, rec)
	switch p := rec.Event.Data.(type) {
	case event.ActionRequired:
		if ids.Action != "" {
			return f.put(actionKey+string(ids.Action), place{Session: ids.Session, Thread: ids.Thread, Stream: rec.Event.Stream, Turn: ids.Turn, Call: ids.Call})
		}
	case event.TaskAttemptStarted:
		if ids.Run != "" {
			return f.put(runKey+string(ids.Run), place{Session: ids.Session, Thread: p.Thread, Stream: rec.Event.Stream, Turn: p.Turn, Task: ids.Task})
		}
	}
	return nil
}

// remove takes a deleted session out of the view. Facts that were read before
// it was deleted may have made rows of it since.
func (f *folding) remove(ctx context.Context, id belay.SessionID) error {
	f.rows[id] = &Session{ID: id}
	f.out[sessionKey+string(id)] = nil
	f.gone(id, func(yield func(string, []byte) bool) {
		for key, data := range f.out {
			if data != nil && !yield(key, data) {
				return
			}
		}
	})
	f.gone(id, f.st.ViewRows(ctx, name))
	return ctx.Err()
}

// gone drops the rows of actions and runs that belong to a session.
func (f *folding) gone(id belay.SessionID, rows iter.Seq2[string, []byte]) {
	for key, data := range rows {
		var p place
		if (strings.HasPrefix(key, actionKey) || strings.HasPrefix(key, runKey)) && json.Unmarshal(data, &p) == nil && p.Session == id {
			f.out[key] = nil
		}
	}
}

func (f *folding) encode() error {
	for id, row := range f.rows {
		if row.Counts.Events == 0 {
			continue // deleted, and nothing came after
		}
		if err := f.put(sessionKey+string(id), row); err != nil {
			return err
		}
	}
	return nil
}

func (f *folding) put(key string, v any) (err error) {
	f.out[key], err = json.Marshal(v)
	return err
}

// load reads a session's row; an empty one when there is none.
func load(ctx context.Context, st store.Store, id belay.SessionID) (*Session, error) {
	data, err := st.ViewRow(ctx, name, sessionKey+string(id))
	if err != nil {
		return nil, err
	}
	row := &Session{ID: id}
	if data == nil {
		return row, nil
	}
	if err := json.Unmarshal(data, row); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnreadable, id, err)
	}
	return row, nil
}
