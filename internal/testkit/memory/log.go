package memory

import (
	"context"
	"iter"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Append writes batches.
func (s *Store) Append(ctx context.Context, batches ...store.Batch) ([]store.Position, error) {
	if err := store.CheckBatches(batches); err != nil {
		return nil, err
	}
	parts := make([]part, len(batches))
	var sends []order
	for i := range batches {
		var err error
		if parts[i], err = pack(&batches[i]); err != nil {
			return nil, err
		}
		more, err := packOrders(batches[i].Sends)
		if err != nil {
			return nil, err
		}
		sends = append(sends, more...)
	}
	if err := s.o.Hook(BeforeAppend); err != nil {
		return nil, err
	}
	pos, err := s.append(ctx, parts, sends)
	if err != nil {
		return nil, err
	}
	if err := s.o.Hook(AfterAppend); err != nil {
		return nil, err
	}
	return pos, nil
}

// part is a batch in an append.
type part struct {
	*store.Batch
	rows []store.Row
}

func pack(b *store.Batch) (part, error) {
	p := part{b, make([]store.Row, len(b.Events))}
	for i := range b.Events {
		var err error
		if p.rows[i], err = store.Pack(b.Session, b.Stream, &b.Events[i]); err != nil {
			return p, err
		}
		p.rows[i].Seq = b.After + 1 + int64(i)
	}
	return p, nil
}

func (s *Store) append(ctx context.Context, parts []part, sends []order) (pos []store.Position, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	claim := parts[0].Claim
	var written []part
	for _, p := range parts {
		again, err := s.d.follows(p.Batch, claim == nil)
		if err != nil {
			return nil, err
		}
		if !again {
			written = append(written, p)
		}
	}
	if len(written) == 0 {
		return nil, nil
	}
	fresh, err := s.d.fresh(sends, true)
	if err != nil {
		return nil, err
	}
	consumed := func(o order) bool {
		return slices.ContainsFunc(parts, func(p part) bool { return p.Stream == o.Stream && slices.Contains(p.Consumed, o.ID) })
	}
	if slices.ContainsFunc(sends, func(o order) bool {
		return consumed(o) && !slices.ContainsFunc(fresh, func(f order) bool { return f.ID == o.ID })
	}) {
		return nil, store.ErrConflict
	}
	if claim != nil {
		if err := s.claimWith(claim, parts[0].Session, parts[0].Epoch); err != nil {
			return nil, err
		}
	}
	for _, p := range written {
		pos = append(pos, s.write(s.d.stream(p.Session, p.Stream), p.Batch, p.rows)...)
	}
	for _, o := range fresh {
		if consumed(o) {
			s.d.commands[o.ID] = o.same()
		} else {
			s.d.enqueue(o)
		}
	}
	s.done()
	return pos, nil
}

// follows refuses a batch that doesn't follow, or whose epoch isn't that of whoever
// owns the session now, and reports whether its key is present.
func (d *Data) follows(b *store.Batch, claimed bool) (again bool, err error) {
	key := b.Session
	if b.Session == belay.SystemSession {
		key = belay.SessionID(b.Stream)
	}
	if o := d.owners[key]; claimed && (o == nil || o.ID == "" || o.Epoch != b.Epoch) {
		return false, store.ErrStale
	}
	st := d.streams[b.Stream]
	if err := inSession(st, b.Session); err != nil {
		return false, err
	}
	if st != nil && b.Key != "" {
		if _, ok := st.keys[b.Key]; ok {
			return true, nil
		}
	}
	if st == nil && b.After != 0 || st != nil && st.seq() != b.After {
		return false, store.ErrConflict
	}
	return false, nil
}

// claimWith makes the claim that comes with an append.
func (h *handle) claimWith(c *store.Claim, session belay.SessionID, want int64) error {
	epoch, err := h.next(session, c.Owner)
	if err != nil {
		return err
	}
	if epoch != want {
		return store.ErrConflict
	}
	if c.Writes != "" {
		if err := h.vacant(session, c.Writes, c.Shared); err != nil {
			return err
		}
		h.d.writers[session] = changes{c.Writes, epoch}
	}
	if h.own(session, c.Owner, epoch, c.Keep); c.Keep == 0 {
		h.release(session, epoch)
	}
	return nil
}

// seq is the last fact's.
func (st *stream) seq() int64 { return int64(len(st.rows)) }

func (st *stream) fact(seq int64) *store.Row { return &st.rows[seq-1] }

func inSession(st *stream, session belay.SessionID) error {
	if st != nil && st.session != session {
		return belay.Errorf(belay.CodeBadState, "the stream belongs to session %s, not to %s", st.session, session).At(string(st.id))
	}
	return nil
}

// stream finds a stream or makes it.
func (d *Data) stream(session belay.SessionID, id belay.StreamID) *stream {
	st := d.streams[id]
	if st == nil {
		st = &stream{id: id, session: session, hash: store.Genesis(session, id), keys: map[string]bool{}}
		d.streams[id] = st
		d.order = append(d.order, st)
	}
	return st
}

func (s *Store) write(st *stream, b *store.Batch, rows []store.Row) (pos []store.Position) {
	last := int64(0)
	if n := len(st.rows); n > 0 {
		last = st.rows[n-1].Time
	}
	var buf []byte
	for i := range rows {
		r := &rows[i]
		if r.Time == 0 {
			r.Time = store.Micros(s.o.Now())
		}
		r.Time = max(r.Time, last)
		last = r.Time
		st.hash, buf = store.Link(st.hash, r, buf)
		s.d.log = append(s.d.log, position{st, r.Seq})
		at := store.Position(len(s.d.log))
		pos, st.rows, st.at = append(pos, at), append(st.rows, *r), append(st.at, at)
	}
	st.lane = store.Lane{Runnable: b.Lane.Runnable, Wake: store.FromMicros(store.Micros(b.Lane.Wake))}
	if b.Key != "" {
		st.keys[b.Key] = true
	}
	if b.State != nil {
		c := *b.State
		c.Data = append([]byte{}, c.Data...)
		st.state = &c
	}
	for _, id := range b.Consumed {
		st.consume(id)
	}
	return pos
}

// Read yields a stream's facts after a sequence.
func (s *Store) Read(ctx context.Context, id belay.StreamID, after int64) iter.Seq2[event.Envelope, error] {
	return func(yield func(event.Envelope, error) bool) {
		if err := s.lock(ctx); err != nil {
			yield(event.Envelope{}, err)
			return
		}
		st := s.d.streams[id]
		var rows []store.Row
		if st != nil && after < st.seq() {
			rows = st.rows[max(after, 0):] // rows are only ever added
		}
		s.d.mu.Unlock()
		for i := range rows {
			if err := ctx.Err(); err != nil {
				yield(event.Envelope{}, err)
				return
			}
			if e, err := rows[i].Unpack(s.d.runtime, st.session, id); !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Scan yields the facts of all streams after a position.
func (s *Store) Scan(ctx context.Context, after store.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for at := max(after, 0); ; at++ {
			if err := s.lock(ctx); err != nil {
				yield(store.Record{}, err)
				return
			}
			if int(at) >= len(s.d.log) {
				s.d.mu.Unlock()
				return
			}
			p := s.d.log[at]
			if p.stream == nil {
				s.d.mu.Unlock()
				continue
			}
			row := *p.stream.fact(p.seq)
			s.d.mu.Unlock()
			e, err := row.Unpack(s.d.runtime, p.stream.session, p.stream.id)
			if !yield(store.Record{Position: at + 1, Event: e}, err) || err != nil {
				return
			}
		}
	}
}

// Window yields facts of one session or stream.
func (s *Store) Window(ctx context.Context, w store.Window) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		places, err := s.window(ctx, w)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for _, at := range places {
			if err := s.lock(ctx); err != nil {
				yield(store.Record{}, err)
				return
			}
			p := s.d.log[at-1]
			if p.stream == nil { // let go, or deleted, since
				s.d.mu.Unlock()
				continue
			}
			row := *p.stream.fact(p.seq)
			s.d.mu.Unlock()
			e, err := row.Unpack(s.d.runtime, p.stream.session, p.stream.id)
			if !yield(store.Record{Position: at, Event: e}, err) || err != nil {
				return
			}
		}
	}
}

// window lists the positions of what a window has.
func (s *Store) window(ctx context.Context, w store.Window) (places []store.Position, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	end := store.Position(len(s.d.log)) + 1
	if w.Before > 0 {
		end = min(end, w.Before)
	}
	for at := max(w.After, 0) + 1; at < end; at++ {
		st := s.d.log[at-1].stream
		if st != nil && (st.id == w.Stream || w.Stream == "" && st.session == w.Session) {
			places = append(places, at)
		}
	}
	if w.Newest {
		slices.Reverse(places)
	}
	return places, nil
}

// Head is a stream's end.
func (s *Store) Head(ctx context.Context, id belay.StreamID) (store.Head, error) {
	if err := s.lock(ctx); err != nil {
		return store.Head{}, err
	}
	defer s.d.mu.Unlock()
	st := s.d.streams[id]
	if st == nil || len(st.rows) == 0 {
		return store.Head{}, store.ErrNotFound
	}
	last := st.rows[len(st.rows)-1]
	return store.Head{Stream: id, Session: st.session, Seq: last.Seq, Hash: st.hash, Time: store.FromMicros(last.Time)}, nil
}

// End is the position of the last fact.
func (s *Store) End(ctx context.Context) (store.Position, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.d.mu.Unlock()
	return store.Position(len(s.d.log)), nil
}

// Lanes lists what is runnable, wakes or has waiting commands.
func (s *Store) Lanes(ctx context.Context, session belay.SessionID) ([]store.LaneRow, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	var lanes []store.LaneRow
	for _, st := range s.d.order {
		wanted := st.lane.Runnable || !st.lane.Wake.IsZero() || len(st.inbox) > 0
		if wanted && (session == "" || session == st.session) {
			lanes = append(lanes, st.row())
		}
	}
	return lanes, nil
}

// Waiting lists the streams that have waiting commands.
func (s *Store) Waiting(ctx context.Context) ([]store.LaneRow, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	var lanes []store.LaneRow
	for _, st := range s.d.order {
		if len(st.inbox) > 0 {
			lanes = append(lanes, st.row())
		}
	}
	return lanes, nil
}

func (st *stream) row() store.LaneRow {
	return store.LaneRow{Session: st.session, Stream: st.id, Lane: st.lane, Seq: st.seq(), Inbox: len(st.inbox)}
}

// LoadState returns a stream's cached state, if it has this version.
func (s *Store) LoadState(ctx context.Context, id belay.StreamID, version string) (*store.State, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	st := s.d.streams[id]
	if st == nil || st.state == nil || st.state.Version != version {
		return nil, nil
	}
	c := *st.state
	c.Data = append([]byte{}, c.Data...)
	return &c, nil
}
