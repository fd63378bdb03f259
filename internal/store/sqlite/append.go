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
func (h *heads) stream(name belay.StreamID) (s layout.Stream, found bool, refused, broken error) {
	if s, found = h.streams[name]; found {
		return s, s.ID != 0, nil, nil
	}
	s.Name = name
	found, refused, broken = h.checked("SELECT "+layout.StreamColumns+" FROM streams WHERE name=?", string(name),
		func(row *sql.Row) error { return s.Scan(row.Scan) })
	if refused == nil && broken == nil {
		h.setStream(s)
	}
	return s, found, refused, broken
}

// streamIn is stream, or a new row, and refuses another session.
func (h *heads) streamIn(session belay.SessionID, name belay.StreamID) (s layout.Stream, found bool, refused, broken error) {
	s, found, refused, broken = h.stream(name)
	if broken != nil || refused != nil {
		return s, found, refused, broken
	}
	if !found {
		return layout.NewStream(name, session), false, nil, nil
	}
	return s, true, s.InSession(session), nil
}

// save writes a stream's row and gives a new one its number.
func (h *heads) save(s *layout.Stream) (err error) {
	sum := s.Sum(h.buf)
	if s.ID == 0 {
		s.ID, err = h.insert(insertStreams[1],
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

var insertStreams = inserts("INSERT INTO streams (name, session, seq, time, hash, runnable, wake, sum)", "(?,?,?,?,?,?,?,?)")

// saveNew writes the rows of new streams and gives them their numbers.
func (h *heads) saveNew(streams []layout.Stream) error {
	for part := range slices.Chunk(streams, rowsAtOnce) {
		args := h.args[:0]
		for i := range part {
			s := &part[i]
			args = append(args, string(s.Name), string(s.Session), s.Seq, s.Time, s.Hash[:], s.Runnable, s.Wake, s.Sum(h.buf))
		}
		h.args = args
		last, err := h.insert(insertStreams[len(part)], args...)
		if err != nil {
			return err
		}
		for i := range part { // SQLite numbers rows one after the other
			part[i].ID = last - int64(len(part)-1-i)
			h.setStream(part[i])
		}
	}
	return nil
}

type appendOp struct {
	b     *store.Batch
	rows  []store.Row
	sends []layout.Order

	hashes [][32]byte     // of the chain, after each row
	pos    store.Position // the answer
	wrote  bool
}

// Append writes a batch. Everything that needs no transaction is done here, in
// the caller's goroutine.
func (l *factLog) Append(ctx context.Context, b store.Batch) (store.Position, error) {
	op, err := packAppend(&b)
	if err != nil {
		return 0, err
	}
	if err := l.do(ctx, op); err != nil {
		return 0, err
	}
	return op.pos, nil
}

func packAppend(b *store.Batch) (*appendOp, error) {
	if b.Session == "" || b.Stream == "" {
		return nil, belay.Errorf(belay.CodeInternal, "a batch without session or stream").At(string(b.Stream))
	}
	op := &appendOp{b: b, rows: make([]store.Row, len(b.Events))}
	var err error
	for i := range b.Events {
		if op.rows[i], err = store.Pack(b.Session, b.Stream, &b.Events[i]); err != nil {
			return nil, err
		}
		op.rows[i].Seq = b.After + 1 + int64(i)
	}
	op.sends, err = layout.PackOrders(b.Sends)
	return op, err
}

func (o *appendOp) apply(w *writer) (refused, broken error) {
	o.pos, o.wrote = 0, false
	f, refused, broken := w.fence(o.b)
	if refused != nil || broken != nil {
		return refused, broken
	}
	if f.again {
		o.pos = f.pos
		return nil, nil
	}
	if f.s.Seq != o.b.After {
		return store.ErrConflict, nil
	}
	fresh, refused, broken := w.checkSends(o.sends, true)
	if refused != nil || broken != nil {
		return refused, broken
	}
	o.wrote = true
	return nil, o.write(w, &f.s, fresh)
}

// fence is what an append must know before it writes.
type fence struct {
	s     layout.Stream
	again bool           // the batch's key is present
	pos   store.Position // and that is its position
}

// fence reads owner, stream and key. The batch's epoch must be that of whoever
// owns the session now.
func (w *writer) fence(b *store.Batch) (f fence, refused, broken error) {
	owned := string(b.Session)
	if b.Session == belay.SystemSession {
		owned = string(b.Stream)
	}
	epoch, found, broken := w.epoch(owned)
	if broken != nil {
		return f, nil, broken
	}
	if !found || epoch != b.Epoch {
		return f, store.ErrStale, nil
	}
	f.s, found, refused, broken = w.streamIn(b.Session, b.Stream)
	if refused != nil || broken != nil || !found || b.Key == "" {
		return f, refused, broken
	}
	var pos int64
	f.again, broken = w.row("SELECT pos FROM keys WHERE stream=? AND key=?", []any{f.s.ID, shortKey(b.Key)}, &pos)
	f.pos = store.Position(pos)
	return f, nil, broken
}

func (o *appendOp) write(w *writer, s *layout.Stream, fresh []layout.Order) error {
	o.link(w, s)
	if err := w.save(s); err != nil {
		return err
	}
	w.links = o.chain(s.ID, w.links[:0])
	var err error
	if o.pos, err = w.insertEvents(w.links); err != nil {
		return err
	}
	return o.writeRest(w, s, fresh)
}

// link moves a stream's row behind the batch.
func (o *appendOp) link(w *writer, s *layout.Stream) {
	now := store.Micros(w.now())
	o.hashes = make([][32]byte, len(o.rows))
	for i := range o.rows {
		r := &o.rows[i]
		if r.Time == 0 {
			r.Time = now
		}
		r.Time = max(r.Time, s.Time)
		s.Time = r.Time
		s.Hash, w.buf = store.Link(s.Hash, r, w.buf)
		o.hashes[i] = s.Hash
		w.grown += len(w.buf)
	}
	s.Seq += int64(len(o.rows))
	s.Runnable, s.Wake = 0, store.Micros(o.b.Lane.Wake)
	if o.b.Lane.Runnable {
		s.Runnable = 1
	}
}

// link is a fact in its place.
type link struct {
	stream int64
	row    *store.Row
	hash   *[32]byte
}

// chain adds the batch's facts to links.
func (o *appendOp) chain(stream int64, links []link) []link {
	for i := range o.rows {
		links = append(links, link{stream, &o.rows[i], &o.hashes[i]})
	}
	return links
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

// insertEvents writes facts, a few in one statement, and returns the position of
// the last, 0 if there is none. They stand one after the other.
func (w *writer) insertEvents(links []link) (pos store.Position, err error) {
	for part := range slices.Chunk(links, rowsAtOnce) {
		args := w.args[:0]
		for _, l := range part {
			r := l.row
			number, err := w.typeNumber(r.Type)
			if err != nil {
				return 0, err
			}
			args = append(args, l.stream, r.Seq, r.Time, number, r.Version, r.Requires, r.IDs, blobOrNull(r.Refs), notNil(r.Data), l.hash[:])
		}
		w.args = args
		last, err := w.insert(insertEvents[len(part)], args...)
		if err != nil {
			return 0, err
		}
		pos = store.Position(last)
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

func (o *appendOp) writeRest(w *writer, s *layout.Stream, fresh []layout.Order) error {
	if o.b.Key != "" {
		if err := w.saveKey(s.ID, shortKey(o.b.Key), int64(o.pos)); err != nil {
			return err
		}
	}
	if st := o.b.State; st != nil {
		w.grown += len(st.Data)
		if err := w.exec("INSERT INTO states (stream, seq, version, data, sum) VALUES (?,?,?,?,?) "+
			"ON CONFLICT (stream) DO UPDATE SET seq=excluded.seq, version=excluded.version, data=excluded.data, sum=excluded.sum",
			s.ID, st.Seq, st.Version, notNil(st.Data), layout.StateSum(s.Name, st)); err != nil {
			return err
		}
	}
	for _, id := range o.b.Consumed {
		if err := w.exec("DELETE FROM inbox WHERE stream=? AND id=?", s.ID, string(id)); err != nil {
			return err
		}
	}
	for i := range fresh {
		if err := w.enqueue(&fresh[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) saveKey(stream int64, key []byte, pos int64) error {
	return w.exec("INSERT INTO keys (stream, key, pos, sum) VALUES (?,?,?,?)", stream, key, pos, layout.KeySum(stream, key, pos))
}

func (o *appendOp) committed(w *writer) {
	if o.wrote {
		w.db.stats.appends.Add(1)
		o.tell(w)
	}
}

// tell counts the facts and notes them for whoever is told of them.
func (o *appendOp) tell(w *writer) {
	w.db.stats.events.Add(int64(len(o.rows)))
	if w.told == nil {
		return
	}
	first := o.pos - store.Position(len(o.rows)) + 1
	for i := range o.rows {
		w.written = append(w.written, store.Written{Position: first + store.Position(i), Session: o.b.Session, Stream: o.b.Stream, Row: o.rows[i]})
	}
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
