package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// packedOrder is an order as the inbox stores it.
type packedOrder struct {
	o    *belay.Order
	time int64
	name string
	body []byte
	same []byte // digest of what makes two orders of one id the same
}

func packOrder(o *belay.Order) (packedOrder, error) {
	if o.ID == "" || o.Stream == "" || o.Session == "" || o.Command == nil {
		return packedOrder{}, belay.Errorf(belay.CodeBadCommand, "an order needs an id, a session, a stream and a command").At(string(o.ID))
	}
	name, body, err := belay.EncodeCommand(o.Command)
	if err != nil {
		return packedOrder{}, belay.Errorf(belay.CodeBadCommand, "a command can't be encoded").At(string(o.ID)).Wrap(err)
	}
	p := packedOrder{o: o, time: store.Micros(o.Time), name: name, body: body}
	p.same = commandSum(string(o.ID), digestOf(string(o.Stream), name, string(body)))
	return p, nil
}

// commandSum is a command's digest and a checksum of that and the id, because
// they stay when the command itself is gone.
func commandSum(id string, digest []byte) []byte {
	return binary.BigEndian.AppendUint32(digest[:len(digest):len(digest)], uint32(sumOf(id+string(digest))))
}

// rowSum is a digest of the order's row in the inbox.
func (p *packedOrder) rowSum() []byte {
	var us [8]byte
	binary.BigEndian.PutUint64(us[:], uint64(p.time))
	return digestOf(string(p.o.Stream), string(p.o.ID), p.o.Principal, string(us[:]), p.name, string(p.body))
}

// digestOf is half a SHA-256 over parts and their lengths.
func digestOf(parts ...string) []byte {
	b := make([]byte, 0, 1024) // most need no more, and so nothing of the heap
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return sum[:16]
}

// Enqueue makes orders durable. The ids of all orders that ever came in are
// kept, so that a repetition is known after the first was consumed.
func (db *DB) Enqueue(ctx context.Context, orders ...belay.Order) error {
	packed, err := packOrders(orders)
	if err != nil {
		return err
	}
	return db.do(ctx, enqueueOp(packed))
}

func packOrders(orders []belay.Order) (packed []packedOrder, err error) {
	packed = make([]packedOrder, len(orders))
	for i := range orders {
		if packed[i], err = packOrder(&orders[i]); err != nil {
			return nil, err
		}
	}
	return packed, nil
}

type enqueueOp []packedOrder

func (e enqueueOp) apply(w *writer) (refused, broken error) {
	fresh, refused, broken := w.checkSends(e, false)
	if refused != nil || broken != nil {
		return refused, broken
	}
	for i := range fresh {
		if err := w.enqueue(&fresh[i]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// checkSends leaves out the orders that came in before and refuses those that
// can't come in. Orders for a session that was deleted are refused too, or left
// out when they come with facts.
func (w *writer) checkSends(orders []packedOrder, withFacts bool) (fresh []packedOrder, refused, broken error) {
	for _, p := range orders {
		known, err := w.sameAs(p, fresh)
		if err != nil {
			return nil, nil, err
		}
		if known != nil {
			if !bytes.Equal(known, p.same) {
				return nil, belay.Errorf(belay.CodeIDConflict, "the command id is taken by another command").At(string(p.o.ID)).
					WithHint("use a new id for another command"), nil
			}
			continue
		}
		_, there, refused, broken := w.streamIn(p.o.Session, p.o.Stream)
		if refused == nil && broken == nil && !there {
			_, refused, broken = w.buried(p.o.Session)
			if withFacts && belay.CodeOf(refused) == belay.CodeDeleted {
				continue
			}
		}
		if refused != nil || broken != nil {
			return nil, refused, broken
		}
		fresh = append(fresh, p)
	}
	return fresh, nil, nil
}

// sameAs is the digest under which an order's id is known, or nil.
func (w *writer) sameAs(p packedOrder, fresh []packedOrder) (known []byte, err error) {
	for i := range fresh {
		if fresh[i].o.ID == p.o.ID {
			return fresh[i].same, nil
		}
	}
	_, err = w.row("SELECT sum FROM commands WHERE id=?", []any{string(p.o.ID)}, &known)
	return known, err
}

// enqueue writes an order that checkSends let through.
func (w *writer) enqueue(p *packedOrder) error {
	s, found, refused, broken := w.streamIn(p.o.Session, p.o.Stream)
	if refused != nil || broken != nil {
		return cmpErr(broken, refused)
	}
	if !found {
		if err := w.save(&s); err != nil {
			return err
		}
	}
	if err := w.exec("INSERT INTO commands (id, sum) VALUES (?,?)", string(p.o.ID), p.same); err != nil {
		return err
	}
	w.grown += len(p.body)
	return w.exec("INSERT INTO inbox (stream, id, principal, time, name, body, sum) VALUES (?,?,?,?,?,?,?)",
		s.id, string(p.o.ID), p.o.Principal, p.time, p.name, p.body, p.rowSum())
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// Inbox lists what waits for a stream, oldest first.
func (db *DB) Inbox(ctx context.Context, s belay.StreamID) (orders []belay.Order, err error) {
	err = db.query(ctx, "SELECT s.session, i.id, i.principal, i.time, i.name, i.body, i.sum "+
		"FROM streams s JOIN inbox i ON i.stream=s.id WHERE s.name=? ORDER BY i.num", []any{string(s)},
		func(rows *sql.Rows) error {
			o := belay.Order{Stream: s}
			p := packedOrder{o: &o}
			var sum []byte
			if err := rows.Scan(&o.Session, &o.ID, &o.Principal, &p.time, &p.name, &p.body, &sum); err != nil {
				return err
			}
			if !bytes.Equal(sum, p.rowSum()) {
				return store.Damaged("inbox/"+string(o.ID), "a waiting command isn't what was written")
			}
			o.Time = store.FromMicros(p.time)
			if o.Command, err = belay.DecodeCommand(p.name, p.body); err != nil {
				return store.Damaged("inbox/"+string(o.ID), "a waiting command can't be read").Wrap(err)
			}
			orders = append(orders, o)
			return nil
		})
	if err != nil {
		return nil, err
	}
	return orders, nil
}
