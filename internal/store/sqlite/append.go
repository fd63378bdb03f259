package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// stream reads a stream's row inside the transaction.
func (h *heads) stream(name belay.StreamID) (s layout.Stream, found bool, err error) {
	if s, found = h.streams[name]; found {
		return s, s.ID != 0, nil
	}
	s.Name = name
	found, err = h.checked("SELECT "+layout.StreamColumns+" FROM streams WHERE name=?", string(name),
		func(row *sql.Row) error { return s.Scan(row.Scan) })
	if err == nil {
		h.setStream(s)
	}
	return s, found, err
}

// streamIn is stream, or a new row, and refuses another session.
func (h *heads) streamIn(session belay.SessionID, name belay.StreamID) (s layout.Stream, found bool, err error) {
	s, found, err = h.stream(name)
	switch {
	case err != nil:
	case !found:
		s = layout.NewStream(name, session)
	case s.Session != session:
		err = refusal{belay.Errorf(belay.CodeBadState, "the stream belongs to session %s, not to %s", s.Session, session).At(string(name))}
	}
	return s, found, err
}

// save writes a stream's row and gives a new one its number.
func (h *heads) save(s *layout.Stream) (err error) {
	sum := s.Sum(h.buf)
	if s.ID == 0 {
		s.ID, err = h.insert(insertStream,
			string(s.Name), string(s.Session), s.Seq, s.Time, s.Hash[:], s.Runnable, s.Wake, sum)
	} else if old := h.streams[s.Name]; old.ID == s.ID && old.Runnable == s.Runnable && old.Wake == s.Wake {
		// The index of lanes stays as it is: SQLite would write it anew for each column of it that is set.
		err = h.exec("UPDATE streams SET seq=?, time=?, hash=?, sum=? WHERE id=?", s.Seq, s.Time, s.Hash[:], sum, s.ID)
	} else {
		err = h.exec("UPDATE streams SET seq=?, time=?, hash=?, runnable=?, wake=?, sum=? WHERE id=?",
			s.Seq, s.Time, s.Hash[:], s.Runnable, s.Wake, sum, s.ID)
	}
	if err == nil {
		h.setStream(*s)
	}
	return err
}

const insertStream = "INSERT INTO streams (name, session, seq, time, hash, runnable, wake, sum) VALUES (?,?,?,?,?,?,?,?)"

// appendOp writes batches of one session.
type appendOp struct {
	parts    []*part
	claim    *claimOp       // nil: the session is claimed already
	writes   *claimWriterOp // nil: the claim makes no writer
	keep     bool           // the claim stays
	sends    []layout.Order
	consumed map[belay.CommandID]bool // of sends: they wait in no inbox

	pos   []store.Position // the answer
	wrote bool
}

// part is a batch in an append.
type part struct {
	b      *store.Batch
	rows   []store.Row
	hashes [][32]byte // of the chain, after each row

	s     layout.Stream
	again bool // the batch's key is present
	pos   []store.Position
}

// Append writes batches. Everything that needs no transaction is done here, in
// the caller's goroutine.
func (l *factLog) Append(ctx context.Context, batches ...store.Batch) ([]store.Position, error) {
	op, err := packAppend(batches)
	if err != nil {
		return nil, err
	}
	if err := l.do(ctx, op); err != nil {
		return nil, err
	}
	return op.pos, nil
}

func packAppend(batches []store.Batch) (*appendOp, error) {
	if err := store.CheckBatches(batches); err != nil {
		return nil, err
	}
	op := &appendOp{consumed: map[belay.CommandID]bool{}}
	for i := range batches {
		b := &batches[i]
		p := &part{b: b, rows: make([]store.Row, len(b.Events))}
		for i := range b.Events {
			var err error
			if p.rows[i], err = store.Pack(b.Session, b.Stream, &b.Events[i]); err != nil {
				return nil, err
			}
			p.rows[i].Seq = b.After + 1 + int64(i)
		}
		sends, err := layout.PackOrders(b.Sends)
		if err != nil {
			return nil, err
		}
		op.parts, op.sends = append(op.parts, p), append(op.sends, sends...)
	}
	for _, o := range op.sends {
		op.consumed[o.Order.ID] = slices.ContainsFunc(batches, func(b store.Batch) bool {
			return b.Stream == o.Order.Stream && slices.Contains(b.Consumed, o.Order.ID)
		})
	}
	if b := &batches[0]; b.Claim != nil {
		op.claim, op.keep = &claimOp{session: b.Session, o: b.Claim.Owner, ttl: b.Claim.Keep, want: b.Epoch}, b.Claim.Keep > 0
		if b.Claim.Writes != "" {
			op.writes = &claimWriterOp{session: b.Session, epoch: b.Epoch, path: b.Claim.Writes, shared: b.Claim.Shared}
		}
	}
	return op, nil
}

func (o *appendOp) apply(w *writer) error {
	o.pos, o.wrote = nil, false
	for _, p := range o.parts {
		if err := p.look(w, o.claim == nil); err != nil {
			return err
		}
	}
	parts := slices.DeleteFunc(slices.Clone(o.parts), func(p *part) bool { return p.again })
	if len(parts) == 0 {
		return nil
	}
	fresh, err := w.checkSends(o.sends, true)
	if err != nil {
		return err
	}
	for _, s := range o.sends {
		if o.consumed[s.Order.ID] && !slices.ContainsFunc(fresh, func(f layout.Order) bool { return f.Order.ID == s.Order.ID }) {
			return refusal{store.ErrConflict}
		}
	}
	if err := o.own(w); err != nil {
		return err
	}
	o.wrote = true
	return o.write(w, parts, fresh)
}

// look reads the stream and the key, and refuses a batch that doesn't follow, or
// whose epoch isn't that of whoever owns the session now.
func (p *part) look(w *writer, claimed bool) (err error) {
	if claimed {
		owned := string(p.b.Session)
		if p.b.Session == belay.SystemSession {
			owned = string(p.b.Stream)
		}
		epoch, found, err := w.epoch(owned)
		if err != nil {
			return err
		}
		if !found || epoch != p.b.Epoch {
			return refusal{store.ErrStale}
		}
	}
	var found bool
	if p.s, found, err = w.streamIn(p.b.Session, p.b.Stream); err != nil {
		return err
	}
	if p.again = false; found && p.b.Key != "" {
		var pos int64
		if p.again, err = w.row("SELECT pos FROM keys WHERE stream=? AND key=?", []any{p.s.ID, shortKey(p.b.Key)}, &pos); err != nil || p.again {
			return err
		}
	}
	if p.s.Seq != p.b.After {
		return refusal{store.ErrConflict}
	}
	return nil
}

// own makes the claim that comes with the append, and gives it back unless it is
// kept: the facts are written in the same transaction.
func (o *appendOp) own(w *writer) error {
	if o.claim == nil {
		return nil
	}
	if o.writes != nil {
		if err := o.writes.look(w); err != nil {
			return err
		}
	}
	err := o.claim.apply(w)
	switch {
	case err != nil:
	case o.writes != nil:
		err = o.writes.write(w)
	case !o.keep:
		err = (&releaseOp{o.claim.session, o.claim.epoch}).apply(w)
	}
	return err
}

func (o *appendOp) write(w *writer, parts []*part, fresh []layout.Order) (err error) {
	w.links = w.links[:0]
	for _, p := range parts {
		p.link(w)
		if err := w.save(&p.s); err != nil {
			return err
		}
		for i := range p.rows {
			w.links = append(w.links, link{p.s.ID, &p.rows[i], &p.hashes[i]})
		}
	}
	if o.pos, err = w.insertEvents(w.links); err != nil {
		return err
	}
	at := o.pos
	for _, p := range parts {
		p.pos, at = at[:len(p.rows)], at[len(p.rows):]
		if err := p.writeRest(w, o.consumed); err != nil {
			return err
		}
	}
	for i := range fresh {
		if o.consumed[fresh[i].Order.ID] {
			err = w.know(&fresh[i])
		} else {
			err = w.enqueue(&fresh[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link moves the stream's row behind the batch.
func (p *part) link(w *writer) {
	now, s := store.Micros(w.now()), &p.s
	p.hashes = make([][32]byte, len(p.rows))
	for i := range p.rows {
		r := &p.rows[i]
		if r.Time == 0 {
			r.Time = now
		}
		r.Time = max(r.Time, s.Time)
		s.Time = r.Time
		s.Hash, w.buf = store.Link(s.Hash, r, w.buf)
		p.hashes[i] = s.Hash
		w.grown += len(w.buf)
	}
	s.Seq += int64(len(p.rows))
	s.Runnable, s.Wake = 0, store.Micros(p.b.Lane.Wake)
	if p.b.Lane.Runnable {
		s.Runnable = 1
	}
}

// link is a fact in its place.
type link struct {
	stream int64
	row    *store.Row
	hash   *[32]byte
}

// rowsAtOnce is how many rows one statement writes, at most.
const rowsAtOnce = 8

// inserts are an INSERT of 1 to rowsAtOnce rows, by their number.
func inserts(into, row string) (statements [rowsAtOnce + 1]string) {
	for n := 1; n <= rowsAtOnce; n++ {
		statements[n] = into + " VALUES " + row + strings.Repeat(","+row, n-1)
	}
	return statements
}

var insertEvents = inserts("INSERT INTO events (stream, seq, time, type, version, requires, ids, refs, data, hash)", "(?,?,?,?,?,?,?,?,?,?)")

// insertEvents writes facts, a few in one statement, and returns their positions.
func (w *writer) insertEvents(links []link) (pos []store.Position, err error) {
	pos = make([]store.Position, 0, len(links))
	for part := range slices.Chunk(links, rowsAtOnce) {
		args := w.args[:0]
		for _, l := range part {
			r := l.row
			number, err := w.typeNumber(r.Type)
			if err != nil {
				return nil, err
			}
			args = append(args, l.stream, r.Seq, r.Time, number, r.Version, r.Requires, r.IDs, blobOrNull(r.Refs), notNil(r.Data), l.hash[:])
		}
		w.args = args
		last, err := w.insert(insertEvents[len(part)], args...)
		if err != nil {
			return nil, err
		}
		for i := range part { // SQLite numbers rows one after the other
			pos = append(pos, store.Position(last-int64(len(part)-1-i)))
		}
	}
	return pos, nil
}

// blobOrNull keeps a missing value apart from an empty one.
func blobOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func (p *part) writeRest(w *writer, sent map[belay.CommandID]bool) error {
	if p.b.Key != "" {
		last := int64(0)
		if n := len(p.pos); n > 0 {
			last = int64(p.pos[n-1])
		}
		key := shortKey(p.b.Key)
		if err := w.exec("INSERT INTO keys (stream, key, pos, sum) VALUES (?,?,?,?)", p.s.ID, key, last, layout.KeySum(p.s.ID, key, last)); err != nil {
			return err
		}
	}
	if st := p.b.State; st != nil {
		w.grown += len(st.Data)
		if err := w.exec("INSERT INTO states (stream, seq, version, data, sum) VALUES (?,?,?,?,?) "+
			"ON CONFLICT (stream) DO UPDATE SET seq=excluded.seq, version=excluded.version, data=excluded.data, sum=excluded.sum",
			p.s.ID, st.Seq, st.Version, notNil(st.Data), layout.StateSum(p.s.Name, st)); err != nil {
			return err
		}
	}
	for _, id := range p.b.Consumed {
		if sent[id] {
			continue
		}
		if err := w.exec("DELETE FROM inbox WHERE stream=? AND id=?", p.s.ID, string(id)); err != nil {
			return err
		}
	}
	return nil
}

func (o *appendOp) committed(w *writer) {
	if !o.wrote {
		return
	}
	if o.keep {
		o.claim.committed(w)
	}
	w.db.stats.appends.Add(1)
	w.db.stats.events.Add(int64(len(o.pos)))
}

// typeNumber is the number of a type's name, made on first use.
func (w *writer) typeNumber(name string) (n int64, err error) {
	if n, ok := w.types[name]; ok {
		return n, nil
	}
	found, err := w.row("SELECT id FROM types WHERE name=?", []any{name}, &n)
	if err == nil && !found {
		n, err = w.insert("INSERT INTO types (name) VALUES (?)", name)
	}
	if err == nil {
		w.types[name] = n
		w.fresh = append(w.fresh, name)
	}
	return n, err
}

// shortKey is the stored form of a key: itself, or half a digest when it is
// longer. The two have different lengths, so they never meet.
func shortKey(key string) []byte {
	if len(key) <= 16 {
		return []byte(key)
	}
	sum := sha256.Sum256([]byte(key))
	return append(sum[:16:16], 1)
}
