// Package feed brings what happens to those who follow it: the facts of one
// store in their order, and between them the text that flows in this process. It
// promises that a reader gets each fact behind its cursor once and in order, or
// learns where it continues; that text is never shown before the request it
// answers nor after the answer; and that a reader who stops reading holds
// nothing but its place. It decides nothing and writes nothing.
package feed

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Options of a hub. Zero is the default.
type Options struct {
	Ring      int           // bytes of the newest facts that are kept for all readers together; 4 MiB
	Pace      time.Duration // between two deliveries to one reader; 50 ms
	Heartbeat time.Duration // a reader that gets nothing for so long gets a beat; 15 s

	// Snapshot is what a reader who fell behind begins with again, and the
	// position up to which it is folded. Nil, or nothing: just the position.
	Snapshot func(ctx context.Context, s Scope) (json.RawMessage, store.Position, error)
}

func (o *Options) defaults() {
	if o.Ring <= 0 {
		o.Ring = 4 << 20
	}
	if o.Pace <= 0 {
		o.Pace = 50 * time.Millisecond
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
}

// Hub follows the log of one store for all its readers. Without readers it only
// looks at each new fact.
type Hub struct {
	st store.Store
	o  Options

	mu     sync.Mutex
	err    error          // why it ended
	head   store.Position // facts up to here were seen
	ring   []*entry       // the newest facts that a reader may still want, in order
	size   int            // bytes in ring
	topics map[belay.SessionID]*topic
	flows  flows
	prints prints
}

// entry is a fact, encoded once for everybody.
type entry struct {
	position store.Position
	stream   belay.StreamID
	ids      belay.IDs
	id       belay.EventID
	time     time.Time
	kind     string // its type
	data     []byte // the standard's JSON
}

// entryCost is what an entry holds besides its data, in bytes, about.
const entryCost = 512

// topic is what readers follow together: a session, or with an empty id the
// whole store.
type topic struct {
	readers map[*Reader]struct{}
	missing store.Position // facts behind this are in the ring
	deleted bool           // the session is gone
}

// New makes a hub that begins at the end of the log. Run makes it follow.
func New(ctx context.Context, st store.Store, o Options) (*Hub, error) {
	o.defaults()
	end, err := st.End(ctx)
	if err != nil {
		return nil, err
	}
	return &Hub{st: st, o: o, head: end, topics: map[belay.SessionID]*topic{}, flows: flows{}, prints: prints{}}, nil
}

// Run follows the log until ctx ends or the store fails, which is its error.
// Readers end with it. It must be called once.
func (h *Hub) Run(ctx context.Context) error {
	err := h.follow(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	for _, t := range h.topics {
		t.wake()
	}
	return err
}

func (h *Hub) follow(ctx context.Context) error {
	for {
		changed := h.st.Changed(ctx)
		if err := h.catchUp(ctx); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Head is the position up to which the hub has seen facts.
func (h *Hub) Head() store.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head
}

// catchUp takes what is new in the log.
func (h *Hub) catchUp(ctx context.Context) error {
	from := h.Head()
	for rec, err := range h.st.Scan(ctx, from) {
		if err != nil {
			return err
		}
		if err := h.take(rec); err != nil {
			return err
		}
	}
	gone, err := h.st.Tombstones(ctx, from)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range gone {
		h.head = max(h.head, t.Position)
		if of := h.topics[t.Session]; of != nil && !t.Restored {
			of.deleted = true
			of.wake()
		}
	}
	return nil
}

// take passes a fact to the readers that want it.
func (h *Hub) take(rec store.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	session := rec.Event.IDs.Session
	own, all := h.topics[session], h.topics[""]
	if own != nil || all != nil {
		e, err := encode(rec)
		if err != nil {
			return err
		}
		h.keep(e)
	}
	h.head = rec.Position
	h.passed(rec)
	own.wake()
	all.wake()
	return nil
}

func encode(rec store.Record) (*entry, error) {
	ev := rec.Event
	data, err := ev.MarshalJSON() // json.Marshal would read what it wrote once more
	if err != nil {
		return nil, belay.Errorf(belay.CodeInternal, "a fact can't be encoded").At(store.RowName(ev.Stream, ev.Seq)).Wrap(err)
	}
	return &entry{position: rec.Position, stream: ev.Stream, ids: ev.IDs, id: ev.ID(), time: ev.Time, kind: ev.Type(), data: data}, nil
}

// keep adds to the ring and lets the oldest go. Whoever needed one of those
// finds out by missing.
func (h *Hub) keep(e *entry) {
	h.ring = append(h.ring, e)
	h.size += len(e.data) + entryCost
	n := 0
	for ; h.size > h.o.Ring && n < len(h.ring)-1; n++ {
		old := h.ring[n]
		h.size -= len(old.data) + entryCost
		for _, t := range []*topic{h.topics[old.ids.Session], h.topics[""]} {
			if t != nil {
				t.missing = max(t.missing, old.position)
			}
		}
		h.ring[n] = nil
	}
	h.ring = h.ring[n:]
}

// join makes a reader one of a topic.
func (h *Hub) join(r *Reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[r.scope.Session]
	if t == nil {
		t = &topic{readers: map[*Reader]struct{}{}, missing: h.head}
		h.topics[r.scope.Session] = t
	}
	t.readers[r] = struct{}{}
	r.topic = t
}

func (h *Hub) leave(r *Reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(r.topic.readers, r)
	if len(r.topic.readers) > 0 {
		return
	}
	delete(h.topics, r.scope.Session)
	if len(h.topics) == 0 {
		h.ring, h.size = nil, 0
	}
}

// wake tells a topic's readers that there may be something. The hub is locked.
func (t *topic) wake() {
	if t == nil {
		return
	}
	for r := range t.readers {
		select {
		case r.woken <- struct{}{}:
		default:
		}
	}
}

// passed notes what a fact means for what flows. The hub is locked.
func (h *Hub) passed(rec store.Record) {
	ev := rec.Event
	h.ran(rec)
	if ev.Stream.Kind() != belay.KindThread {
		return
	}
	session := ev.IDs.Session
	switch p := ev.Data.(type) {
	case event.ModelRequested:
		f := h.flows[session][ev.Stream]
		switch {
		case f != nil && f.is(ev.IDs.Step, p.Attempt):
		case f != nil && f.announced == 0:
			return // the text of a later request came before the facts did; this one is over
		default:
			f = &flow{ids: ev.IDs, attempt: p.Attempt}
			h.flows.set(session, ev.Stream, f)
		}
		f.announced = rec.Position
	case event.ModelDelta:
		if f := h.flows[session][ev.Stream]; f != nil && f.is(ev.IDs.Step, p.Attempt) {
			f.text.durable = p.Offset + int64(len(p.Text))
		}
	case event.ModelCompleted:
		h.over(ev, p.Attempt)
	case event.ModelFailed:
		h.over(ev, p.Attempt)
	case event.TurnCompleted, event.TurnFailed:
		h.flows.drop(session, ev.Stream)
	case event.RunStatus:
		if p.Phase == "takeover" {
			h.flows.drop(session, ev.Stream)
		}
	}
}

// over ends the text of an attempt. The next attempt's may flow already.
func (h *Hub) over(ev event.Envelope, attempt int) {
	if f := h.flows[ev.IDs.Session][ev.Stream]; f != nil && f.is(ev.IDs.Step, attempt) {
		h.flows.drop(ev.IDs.Session, ev.Stream)
	}
}

// Readers is how many readers follow.
func (h *Hub) Readers() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		n += len(t.readers)
	}
	return n
}

// Held is how many bytes the hub keeps for all its readers: the newest facts
// and what flows.
func (h *Hub) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.size
	for _, of := range h.flows {
		for _, f := range of {
			n += cap(f.text.kept) + cap(f.reasoning.kept)
		}
	}
	return n + h.prints.held()
}
