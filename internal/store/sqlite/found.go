package sqlite

import (
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// foundOp begins a session that nobody knows, with the facts of its streams.
type foundOp struct {
	f      *store.NewSession
	orders []layout.Order // those that the streams sent one another, too
	parts  []*appendOp
	claim  *claimWriterOp // nil: the session becomes no writer
	pos    store.Position // the answer
	wrote  bool
}

func (*foundOp) keepsHeads() {}

// Found begins a session. Everything that needs no transaction is done here, in
// the caller's goroutine.
func (l *factLog) Found(ctx context.Context, f store.NewSession) (store.Position, error) {
	if err := f.Check(); err != nil {
		return 0, err
	}
	op := &foundOp{f: &f, parts: make([]*appendOp, len(f.Batches))}
	var err error
	for o := range f.Told() { // they are answered already and wait in no inbox
		p, err := layout.PackOrder(o)
		if err != nil {
			return 0, err
		}
		op.orders = append(op.orders, p)
	}
	for i := range f.Batches {
		if op.parts[i], err = packAppend(f.Fresh(i)); err != nil {
			return 0, err
		}
	}
	if f.Writes != "" {
		op.claim = &claimWriterOp{session: f.Session, epoch: 1, path: f.Writes, shared: f.Shared}
	}
	if err := l.do(ctx, op); err != nil {
		return 0, err
	}
	return op.pos, nil
}

func (o *foundOp) apply(w *writer) (refused, broken error) {
	o.pos, o.wrote = 0, false
	known, err := o.known(w)
	if err != nil {
		return nil, err
	}
	if known {
		return store.ErrConflict, nil
	}
	if o.claim != nil {
		if refused, broken = o.claim.look(w); refused != nil || broken != nil {
			return refused, broken
		}
	}
	if err := o.write(w); err != nil {
		return nil, err
	}
	o.wrote = true
	return nil, nil
}

// known reports whether the store has something of the session, its streams or
// its commands. It is one statement, because it is asked for every new session.
func (o *foundOp) known(w *writer) (bool, error) {
	session := string(o.f.Session)
	q := strings.Builder{}
	q.WriteString("SELECT 1 FROM owners WHERE key=? UNION ALL SELECT 1 FROM tombstones WHERE session=? UNION ALL SELECT 1 FROM streams WHERE session=?")
	args := append(w.args[:0], session, session, session)
	for _, p := range o.parts {
		q.WriteString(" UNION ALL SELECT 1 FROM streams WHERE name=?")
		args = append(args, string(p.b.Stream))
	}
	for i := range o.orders {
		q.WriteString(" UNION ALL SELECT 1 FROM commands WHERE id=?")
		args = append(args, string(o.orders[i].Order.ID))
	}
	w.args = args
	var is int64
	return w.row(q.String(), args, &is)
}

func (o *foundOp) write(w *writer) error {
	if err := o.writeOwner(w); err != nil {
		return err
	}
	for part := range slices.Chunk(o.orders, rowsAtOnce) {
		args := w.args[:0]
		for i := range part {
			args = append(args, string(part[i].Order.ID), part[i].Same)
		}
		w.args = args
		if err := w.exec(insertCommands[len(part)], args...); err != nil {
			return err
		}
	}
	return o.writeParts(w)
}

var insertCommands = inserts("INSERT INTO commands (id, sum)", "(?,?)")

// writeParts writes what the streams begin with, those of all in few statements.
func (o *foundOp) writeParts(w *writer) error {
	streams := make([]layout.Stream, len(o.parts))
	for i, p := range o.parts {
		streams[i] = layout.NewStream(p.b.Stream, p.b.Session)
		p.link(w, &streams[i])
	}
	if err := w.saveNew(streams); err != nil {
		return err
	}
	w.links = w.links[:0]
	for i, p := range o.parts {
		w.links = p.chain(streams[i].ID, w.links)
	}
	var err error
	if o.pos, err = w.insertEvents(w.links); err != nil {
		return err
	}
	end := o.pos
	for i, p := range slices.Backward(o.parts) {
		p.pos, end = end, end-store.Position(len(p.rows))
		if err := p.writeRest(w, &streams[i], nil); err != nil {
			return err
		}
	}
	return nil
}

// writeOwner writes who has the session, and the claim that goes with it.
func (o *foundOp) writeOwner(w *writer) error {
	session, now, by := string(o.f.Session), w.now(), &o.f.Owner
	id, lease := "", int64(0)
	if o.f.Keep > 0 {
		id, lease = by.ID, store.Micros(now.Add(o.f.Keep))
	}
	if err := w.exec("INSERT INTO owners (key, "+ownerColumns+", sum) VALUES (?,?,?,?,?,?,1,?,?)",
		session, id, by.Host, by.PID, by.Start, store.Micros(now), lease, layout.EpochSum(session, 1)); err != nil {
		return err
	}
	if o.f.Keep > 0 {
		w.setOwner(session, 1)
	}
	if o.claim != nil {
		return o.claim.write(w)
	}
	return nil
}

func (o *foundOp) committed(w *writer) {
	if !o.wrote {
		return
	}
	if o.f.Keep > 0 {
		w.claims[string(o.f.Session)] = 1
	}
	w.db.stats.appends.Add(1)
	for _, p := range o.parts {
		p.tell(w)
	}
}
