package feed

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Types of messages that are no facts.
const (
	TypeText    = "text"    // text that flows; without a cursor
	TypeOutput  = "output"  // what running calls print; without a cursor
	TypeResync  = "resync"  // the reader was too slow, or the store was put back: it continues at the cursor, and what is before it is in the snapshot
	TypeDeleted = "deleted" // the session is gone; nothing follows
	TypeEnd     = "end"     // the run is over; nothing follows
	TypeBeat    = ""        // nothing has happened for a while
)

// Message is one thing that a reader gets.
type Message struct {
	Type   string // of the fact, or one of the types above
	Cursor string // where a reader continues that has this; empty: unchanged
	Data   []byte // JSON
}

// Bounds of one delivery.
const (
	maxMessages = 256
	maxBytes    = 128 << 10 // one message may be larger by itself
)

// Filter chooses types of messages. Empty takes all.
type Filter []string

// NewFilter reads a list of types, divided by commas. A type may end in ".*" for
// a whole family; "text" is text that flows, "output" what calls print.
func NewFilter(list string) (Filter, error) {
	var f Filter
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if len(f) >= 64 || len(name) > 64 || strings.Contains(strings.TrimSuffix(name, ".*"), "*") {
			return nil, belay.Errorf(belay.CodeUsage, "%q is no list of types", list).WithHint("types=turn.completed,model.*,text")
		}
		f = append(f, name)
	}
	return f, nil
}

// Takes reports whether a type is chosen.
func (f Filter) Takes(kind string) bool {
	if len(f) == 0 {
		return true
	}
	for _, want := range f {
		if family, ok := strings.CutSuffix(want, "*"); want == kind || ok && strings.HasPrefix(kind, family) {
			return true
		}
	}
	return false
}

// Places in a scope that need no cursor.
const (
	Start = "start" // from its first fact on
	Now   = "now"   // only what comes
)

// Reader follows a scope. Its memory doesn't grow with what is still unread.
type Reader struct {
	hub    *Hub
	scope  Scope
	filter Filter
	topic  *topic
	woken  chan struct{}

	at     store.Position // facts up to here were given, or are none of this scope
	upToIt bool           // it had all facts once: from then on it may be too slow
	tooFar bool           // it fell behind by more than is read for it
	ended  bool           // it has the last fact there will be
	lapsed bool           // what it has isn't what the store has: it begins with a snapshot
	told   map[belay.StreamID]told
	shown  map[belay.CallID]shown
}

// Reader begins behind a place: a cursor of this scope, Start, Now, or a
// position that a command answered with. Behind a cursor of this scope that the
// store has given before it was put back to an earlier state it begins with a
// resync. Errors: CodeBadCursor, or the store's.
// Whoever makes a reader calls Follow or Close.
func (h *Hub) Reader(ctx context.Context, s Scope, f Filter, since string) (*Reader, error) {
	r := &Reader{hub: h, scope: s, filter: f, woken: make(chan struct{}, 1), told: map[belay.StreamID]told{}}
	h.join(r)
	at, err := h.place(ctx, s, since)
	if errors.Is(err, errLapsed) && !plain(since) {
		r.lapsed = true
		return r, nil
	}
	if err != nil {
		h.leave(r)
		return nil, err
	}
	r.at = at
	if r.ended, err = h.ended(ctx, s, at); err != nil {
		h.leave(r)
		return nil, err
	}
	return r, nil
}

// ended reports whether the last fact of a scope is at or before a position.
func (h *Hub) ended(ctx context.Context, s Scope, at store.Position) (bool, error) {
	if s.Run == "" || at == 0 {
		return false, nil
	}
	for rec, err := range h.st.Window(ctx, store.Window{Stream: s.Task.Stream(), Before: at + 1, Newest: true}) {
		if err != nil {
			return false, err
		}
		if s.ends(&rec.Event.IDs, rec.Event.Type()) {
			return true, nil
		}
	}
	return false, nil
}

// Close ends a reader that doesn't follow.
func (r *Reader) Close() { r.hub.leave(r) }

// place finds out where to begin.
func (h *Hub) place(ctx context.Context, s Scope, since string) (store.Position, error) {
	if since == Start {
		return 0, nil
	}
	end, err := h.st.End(ctx)
	if err != nil {
		return 0, err
	}
	if since == Now {
		return end, nil
	}
	return Place(ctx, h.st, s, since)
}

// Place is the position of a cursor of a scope, or of a plain position. One that
// the store hasn't reached, and one where the store has another fact, is
// CodeBadCursor.
func Place(ctx context.Context, st store.Store, s Scope, text string) (store.Position, error) {
	var p placed
	var err error
	if plain(text) {
		n, _ := strconv.ParseInt(text, 10, 64) // it is one
		p.position = store.Position(n)
	} else if p, err = s.read(st.Runtime(), text); err != nil {
		return 0, err
	}
	lapsed, err := store.RolledBack(ctx, st, p.position)
	switch {
	case err != nil:
		return 0, err
	case lapsed:
		return 0, badCursor("the store hasn't come so far; perhaps it was put back to an earlier state").Wrap(errLapsed)
	case p.position == 0 || len(p.fact) == 0 || string(p.fact) == "\x00\x00\x00\x00":
		return p.position, nil
	}
	for rec, err := range st.Scan(ctx, p.position-1) {
		if err != nil {
			return 0, err
		}
		if rec.Position == p.position && string(CursorOf(rec).mark()) != string(p.fact) {
			return 0, badCursor("at its place the store has another history").Wrap(errLapsed)
		}
		break
	}
	return p.position, nil
}

// plain reports whether a place is a position as a number, which says nothing of
// the store that it is of.
func plain(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// errLapsed: the cursor was valid, but the fact that it follows is no longer in
// the store.
var errLapsed = errors.New("the store was put back")

// Follow hands over what there is and then what comes, until ctx ends, give
// fails, or the session is deleted or the run over, which end it without an error. Each call of
// give has few messages; while it lasts nothing is kept for this reader. When
// there is nothing yet, give is called once with none. It may be called once.
func (r *Reader) Follow(ctx context.Context, give func([]Message) error) error {
	defer r.Close()
	given := false
	to := give
	give = func(ms []Message) error {
		given = true
		return to(ms)
	}
	beat := time.NewTimer(r.hub.o.Heartbeat)
	defer beat.Stop()
	if r.lapsed {
		ms, err := r.resync(ctx)
		if err == nil {
			r.ended, err = r.hub.ended(ctx, r.scope, r.at)
		}
		if err == nil {
			err = give(ms)
		}
		if err != nil {
			return err
		}
	}
	for {
		ms, state, err := r.take()
		if err != nil {
			return err
		}
		switch {
		case state == behind && r.upToIt && (r.tooFar || r.scope.Session == ""):
			ms, err = r.resync(ctx)
		case state == behind && r.upToIt: // others may have filled the ring, and this session has little
			r.tooFar, err = r.read(ctx, lateFacts, give)
		case state == behind:
			_, err = r.read(ctx, 0, give)
		}
		if err == nil && len(ms) > 0 {
			err = give(ms)
			beat.Reset(r.hub.o.Heartbeat)
		}
		switch {
		case err != nil || state == over:
			return err
		case state != atEnd:
			err = ctx.Err()
		default:
			if !given {
				err = give(nil)
			}
			if err == nil {
				err = r.wait(ctx, beat, len(ms) > 0, give)
			}
		}
		if err != nil {
			return err
		}
	}
}

// wait sleeps until there may be something; who just got something sleeps at
// least for the hub's pace, so that what comes in between comes together.
func (r *Reader) wait(ctx context.Context, beat *time.Timer, paced bool, give func([]Message) error) error {
	if paced {
		select {
		case <-time.After(r.hub.o.Pace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		select {
		case <-r.woken:
			return nil
		case <-beat.C:
			if err := give([]Message{{Type: TypeBeat}}); err != nil {
				return err
			}
			beat.Reset(r.hub.o.Heartbeat)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Where a reader stands.
const (
	atEnd  = iota
	more   // there is more to take
	behind // what comes next isn't in the ring
	over   // nothing comes any more
)

// take collects what is next for the reader.
func (r *Reader) take() (out []Message, state int, err error) {
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.ended {
		return []Message{{Type: TypeEnd, Data: []byte("{}")}}, over, nil
	}
	if r.at < r.topic.missing {
		return nil, behind, nil
	}
	first := sort.Search(len(h.ring), func(i int) bool { return h.ring[i].position > r.at })
	size := 0
	for _, e := range h.ring[first:] {
		if len(out) >= maxMessages || size >= maxBytes {
			return out, more, nil
		}
		r.at = e.position
		if r.scope.has(e.stream, &e.ids) && r.filter.Takes(e.kind) {
			out = append(out, r.fact(e))
			size += len(e.data)
		}
		if r.scope.ends(&e.ids, e.kind) {
			r.ended = true
			return out, more, nil
		}
	}
	switch {
	case r.topic.deleted:
		return append(out, Message{Type: TypeDeleted, Data: []byte("{}")}), over, nil
	case h.err != nil:
		if len(out) > 0 {
			return out, more, nil
		}
		return nil, over, h.err
	case r.at > h.head: // it has read further than the hub: what flows may be over
		return out, atEnd, nil
	}
	r.at, r.upToIt, r.tooFar = h.head, true, false
	room := maxBytes - size
	texts, rest := r.texts(&room)
	outputs, left := r.outputs(&room)
	if rest || left {
		state = more
	}
	return append(append(out, texts...), outputs...), state, nil
}

func (r *Reader) fact(e *entry) Message {
	return Message{Type: e.kind, Cursor: r.scope.Text(r.hub.st.Runtime(), Cursor{e.position, e.id, e.time}), Data: e.data}
}

// lateFacts is how many facts of its session are read from the store for a
// reader that fell behind. One that misses more is brought up by a snapshot.
const lateFacts = 256

// facts are those of the scope from where the reader stands.
func (r *Reader) facts(ctx context.Context) iter.Seq2[store.Record, error] {
	if r.scope.Session == "" {
		return r.hub.st.Scan(ctx, r.at)
	}
	return r.hub.st.Window(ctx, store.Window{Session: r.scope.Session, Stream: r.scope.Stream, After: r.at})
}

// read hands over facts from the store, up to where the hub stood when it began,
// or so many of its session if most isn't 0: then there may be more.
func (r *Reader) read(ctx context.Context, most int, give func([]Message) error) (more bool, err error) {
	upTo := r.hub.Head()
	var out []Message
	size, n, room := 0, 0, 16 // a small delivery first: it is there soon, and who breaks off cost little
	for rec, err := range r.facts(ctx) {
		if err != nil {
			return false, err
		}
		if rec.Position > upTo {
			break
		}
		if n++; most > 0 && n > most {
			more, upTo = true, r.at
			break
		}
		r.at = rec.Position
		if r.ended = r.scope.ends(&rec.Event.IDs, rec.Event.Type()); r.ended {
			upTo = r.at
		}
		if !r.scope.has(rec.Event.Stream, &rec.Event.IDs) || !r.filter.Takes(rec.Event.Type()) {
			continue
		}
		e, err := encode(rec)
		if err != nil {
			return false, err
		}
		out = append(out, r.fact(e))
		if size += len(e.data); len(out) >= room || size >= maxBytes {
			if err := give(out); err != nil {
				return false, err
			}
			out, size, room = nil, 0, min(2*room, maxMessages)
		}
	}
	r.at = max(r.at, upTo)
	if len(out) == 0 {
		return more, nil
	}
	return more, give(out)
}

// Resync is what a reader gets that was too slow.
type Resync struct {
	Position store.Position  `json:"position"`           // facts up to here are in the snapshot
	Snapshot json.RawMessage `json:"snapshot,omitempty"` // of the session; absent where the scope is the whole store
}

// resync lets a reader go on where a snapshot ends.
func (r *Reader) resync(ctx context.Context) ([]Message, error) {
	s := Resync{Position: r.hub.Head()}
	if r.hub.o.Snapshot != nil && r.scope.Session != "" {
		data, at, err := r.hub.o.Snapshot(ctx, r.scope)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if err == nil && data != nil {
			s = Resync{at, data}
		}
	}
	s.Position = max(s.Position, r.at) // what is before it was given
	data, err := json.Marshal(s)
	if err != nil {
		return nil, belay.Errorf(belay.CodeInternal, "a snapshot can't be encoded").Wrap(err)
	}
	r.at, r.told, r.shown = s.Position, map[belay.StreamID]told{}, nil
	return []Message{{Type: TypeResync, Cursor: r.scope.Text(r.hub.st.Runtime(), Cursor{Position: s.Position}), Data: data}}, nil
}
