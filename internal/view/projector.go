package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Name is the name of the view of sessions in the store. Its number changes with
// the shape of a row: another build then folds a view of its own instead of
// misreading this one.
const Name = "sessions/11"

// Keys of rows. Sessions come first, so that a listing ends where actions begin.
const (
	sessionKey = "1/" // + session id: a Session
	actionKey  = "2/" // + action id / session id: a Place, kept after the answer
	runKey     = "3/" // + run id / session id: a Place, kept after the end
	channelKey = "4/" // + channel id: a Channel
	channels   = "5/" // the ids of all channels
	namesKey   = "6/" // + session id: what the session is called, in lower case
)

// Place is where an action, or a run, belongs.
type Place struct {
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

// Projector keeps a view of one store up with its log: the rows of sessions, or
// the words in them, or figures. Any number of projectors, in any number of processes, may
// work on one store: each save names the position it continues from, and the
// loser of a race begins again from there.
type Projector struct {
	Store store.Store
	Of    Kind
	Chunk int // facts between two saves; 0 is the default
}

// Kind is what a view is of.
type Kind int

// Kinds of views.
const (
	Shells  Kind = iota // of sessions, with places of actions, runs and channels
	Words               // the words in sessions, which Search looks through
	Figures             // use by the hour, and lists of what was decided and of programs
)

func (p Projector) name() string { return [...]string{Name, wordsName, figuresName}[p.Of] }

// Catchup folds what the view of sessions hasn't seen, up to the end that the log
// has at the call.
func Catchup(ctx context.Context, st store.Store) error { return Projector{Store: st}.Catchup(ctx) }

// Rebuild drops the rows of all views and folds the whole log again.
func Rebuild(ctx context.Context, st store.Store) error {
	for _, of := range []Kind{Shells, Words, Figures} {
		p := Projector{Store: st, Of: of}
		if err := p.drop(ctx); err != nil {
			return err
		}
		if err := p.Catchup(ctx); err != nil {
			return err
		}
	}
	return nil
}

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
func (p Projector) At(ctx context.Context) (store.Position, error) {
	return p.Store.ViewPosition(ctx, p.name())
}

// UpTo folds until the view has come as far as end.
func (p Projector) UpTo(ctx context.Context, end store.Position) error {
	for more := true; more; {
		from, err := p.At(ctx)
		if err != nil || from >= end {
			return err
		}
		if more, err = p.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Step folds one chunk, and reports whether there may be more.
func (p Projector) Step(ctx context.Context) (more bool, err error) {
	from, err := p.At(ctx)
	if err != nil {
		return false, err
	}
	more, err = p.step(ctx, from)
	if errors.Is(err, store.ErrConflict) { // another projector was here
		return true, nil
	}
	if _, bad := errors.AsType[badRow](err); bad { // a view is made anew, not repaired
		return true, p.drop(ctx)
	}
	return more, err
}

func (p Projector) drop(ctx context.Context) error {
	for {
		at, err := p.At(ctx)
		if err != nil {
			return err
		}
		if err = p.Store.SaveView(ctx, p.name(), at, 0, nil); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// folding is one chunk's work on a view. Its methods are called in the order of
// the log.
type folding interface {
	fold(ctx context.Context, rec store.Record) error
	// remove takes a deleted session out of the view. Facts that were read before
	// it was deleted may have made rows of it since.
	remove(ctx context.Context, id belay.SessionID) error
	// full reports whether what was folded is to be saved before more is.
	full() bool
	// rows are those that have changed; nil deletes one.
	rows() (map[string]store.ViewRow, error)
}

// step folds one chunk. The facts are read before anything is saved: a store
// may hold a lock while it is read.
func (p Projector) step(ctx context.Context, from store.Position) (more bool, err error) {
	c, err := read(ctx, p.Store, from, cmp.Or(max(p.Chunk, 0), chunk))
	if err != nil {
		return false, fmt.Errorf("fold %s: %w", p.name(), err)
	}
	if c.to <= from {
		return false, nil
	}
	var f folding
	switch p.Of {
	case Words:
		f = &wordsFolding{st: p.Store, sets: map[belay.SessionID]map[uint32]bool{}}
	case Figures:
		f = &figuresFolding{st: p.Store, kept: map[string]any{}}
	default:
		f = newSessionsFolding(p.Store)
	}
	folded := from
	for recs, deleted := c.facts, c.deleted; len(recs)+len(deleted) > 0; {
		switch {
		case len(deleted) > 0 && (len(recs) == 0 || deleted[0].Position < recs[0].Position):
			err = f.remove(ctx, deleted[0].Session)
			deleted = deleted[1:]
		case f.full():
			c.to, c.more, recs, deleted = folded, true, nil, nil
		default:
			err = f.fold(ctx, recs[0])
			folded, recs = recs[0].Position, recs[1:]
		}
		if err != nil {
			return false, err
		}
	}
	rows, err := f.rows()
	if err != nil {
		return false, err
	}
	return c.more, p.Store.SaveView(ctx, p.name(), from, c.to, rows)
}

// part is what a view folds between two saves, in order.
type part struct {
	facts   []store.Record
	deleted []store.Tombstone // of sessions that the facts may be of; the last ones may lie behind to
	to      store.Position    // all facts up to here are among those that were read
	more    bool
}

// read reads at most size facts behind a position, and the deletions after it. A
// deletion that comes while it reads may have facts before it that weren't there
// to be read, so the part ends before it; its rows go at once all the same.
func read(ctx context.Context, st store.Store, from store.Position, size int) (c part, err error) {
	if c.to, err = st.End(ctx); err != nil {
		return c, err
	}
	c.facts = make([]store.Record, 0, min(size, int(max(c.to-from, 0))))
	for rec, err := range st.Scan(ctx, from) {
		if err != nil {
			return c, err
		}
		if c.facts = append(c.facts, rec); len(c.facts) == size {
			c.more = true
			break
		}
	}
	if n := len(c.facts); n > 0 && (c.more || c.facts[n-1].Position > c.to) {
		c.to = c.facts[n-1].Position
	}
	if c.deleted, err = st.Tombstones(ctx, from); c.more {
		c.deleted = slices.DeleteFunc(c.deleted, func(t store.Tombstone) bool { return t.Position > c.to })
	}
	return c, err
}

// sessionsFolding folds the view of sessions.
type sessionsFolding struct {
	st       store.Store
	sessions map[belay.SessionID]*Session
	asked    map[belay.SessionID][]Action // that were listed before
	out      map[string]store.ViewRow
}

func newSessionsFolding(st store.Store) *sessionsFolding {
	return &sessionsFolding{st, map[belay.SessionID]*Session{}, map[belay.SessionID][]Action{}, map[string]store.ViewRow{}}
}

func (f *sessionsFolding) fold(ctx context.Context, rec store.Record) (err error) {
	ids := rec.Event.IDs
	if ids.Channel != "" {
		return f.channel(ctx, rec)
	}
	if ids.Session == "" || ids.Session == belay.SystemSession {
		return nil
	}
	row := f.sessions[ids.Session]
	if row == nil {
		if row, err = load(ctx, f.st, ids.Session); err != nil {
			return err
		}
		f.sessions[ids.Session], f.asked[ids.Session] = row, slices.Clone(row.open())
	}
	Apply(row, rec)
	switch p := rec.Event.Data.(type) {
	case event.ActionRequired:
		if ids.Action != "" {
			return f.action(Place{Session: ids.Session, Thread: ids.Thread, Stream: rec.Event.Stream, Turn: ids.Turn, Call: ids.Call}, ids.Action, nil)
		}
	case event.TaskAttemptStarted:
		if ids.Run != "" {
			return f.put(runKey+string(ids.Run)+"/"+string(ids.Session), Place{Session: ids.Session, Thread: p.Thread, Stream: rec.Event.Stream, Turn: p.Turn, Task: ids.Task})
		}
	}
	return nil
}

// action puts the place of an action, which stands in a list while it is open.
func (f *sessionsFolding) action(p Place, id belay.ActionID, open *Action) error {
	key := actionKey + string(id) + "/" + string(p.Session)
	if err := f.put(key, p); err != nil {
		return err
	}
	r := f.out[key]
	if r.In = endsList(actionKey, string(id)); open != nil {
		r.In = append(r.In, openList)
		r.Rank = -open.Until.UnixNano()
	}
	f.out[key] = r
	return nil
}

func (f *sessionsFolding) remove(ctx context.Context, id belay.SessionID) error {
	f.sessions[id], f.asked[id] = &Session{ID: id}, nil
	f.out[sessionKey+string(id)] = store.ViewRow{}
	for key := range f.out {
		if store.About(key) == id {
			f.out[key] = store.ViewRow{}
		}
	}
	left, err := f.st.ViewAbout(ctx, Name, id)
	for _, key := range left {
		f.out[key] = store.ViewRow{}
	}
	return err
}

func (f *sessionsFolding) full() bool { return false }

func (f *sessionsFolding) rows() (map[string]store.ViewRow, error) {
	for id, row := range f.sessions {
		if row.Counts.Events == 0 {
			continue // deleted, and nothing came after
		}
		if err := f.put(sessionKey+string(id), row); err != nil {
			return nil, err
		}
		r := row.entry()
		r.Data = f.out[sessionKey+string(id)].Data
		f.out[sessionKey+string(id)] = r
		f.out[namesKey+string(id)] = store.ViewRow{Data: []byte(row.names())}
		if err := f.actions(row); err != nil {
			return nil, err
		}
	}
	return f.out, nil
}

// open are the actions that are listed: not those of a session that never was.
func (s *Session) open() []Action {
	if s.Created.IsZero() {
		return nil
	}
	return s.Actions
}

// actions puts those that wait into their list, and takes those out that don't any more.
func (f *sessionsFolding) actions(s *Session) error {
	is := func(in []Action, id belay.ActionID) bool {
		return slices.ContainsFunc(in, func(a Action) bool { return a.ID == id })
	}
	place := func(a *Action) Place {
		return Place{Session: s.ID, Thread: a.Thread, Stream: a.Stream, Turn: a.Turn, Call: a.Call}
	}
	for _, a := range f.asked[s.ID] {
		if !is(s.open(), a.ID) {
			if err := f.action(place(&a), a.ID, nil); err != nil {
				return err
			}
		}
	}
	for _, a := range s.open() {
		if _, again := f.out[actionKey+string(a.ID)+"/"+string(s.ID)]; again || !is(f.asked[s.ID], a.ID) {
			if err := f.action(place(&a), a.ID, &a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *sessionsFolding) put(key string, v any) error {
	data, err := json.Marshal(v)
	f.out[key] = store.ViewRow{Data: data}
	return err
}

// row reads a row as it stands in this chunk, and reports whether there is one.
func (f *sessionsFolding) row(ctx context.Context, key string, v any) (bool, error) {
	if r, folded := f.out[key]; folded {
		return r.Data != nil, decode(key, r.Data, v)
	}
	return row(ctx, f.st, key, v)
}

// row reads a row, and reports whether there is one.
func row(ctx context.Context, st store.Views, key string, v any) (bool, error) {
	data, err := st.ViewRow(ctx, Name, key)
	if err != nil {
		return false, err
	}
	return data != nil, decode(key, data, v)
}

// badRow is why a row isn't what this build writes.
type badRow struct{ error }

// decode reads a row's data; none is no row, and leaves v as it is.
func decode(key string, data []byte, v any) error {
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return belay.Errorf(belay.CodeStoreDamaged, "a row of the view can't be read").At(key[len(sessionKey):]).Wrap(badRow{err}).
			WithHint("the rows follow from the log: belay verify checks whether that is whole")
	}
	return nil
}

// load reads a session's row; an empty one when there is none.
func load(ctx context.Context, st store.Views, id belay.SessionID) (*Session, error) {
	s := &Session{ID: id}
	_, err := row(ctx, st, sessionKey+string(id), s)
	return s, err
}
