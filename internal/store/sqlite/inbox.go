package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// inbox is the waiting commands of streams, and the lanes and states that say which
// streams have something to do.
type inbox struct{ *access }

// Enqueue makes orders durable. The ids of all orders that ever came in are
// kept, so that a repetition is known after the first was consumed.
func (in *inbox) Enqueue(ctx context.Context, orders ...belay.Order) error {
	packed, err := layout.PackOrders(orders)
	if err != nil {
		return err
	}
	return in.do(ctx, enqueueOp(packed))
}

type enqueueOp []layout.Order

func (e enqueueOp) apply(w *writer) error {
	fresh, err := w.checkSends(e, false)
	for i := range fresh {
		if err == nil {
			err = w.enqueue(&fresh[i])
		}
	}
	return err
}

// checkSends leaves out the orders that came in before and refuses those that
// can't come in. Orders for a session that was deleted are refused too, or left
// out when they come with facts.
func (w *writer) checkSends(orders []layout.Order, withFacts bool) (fresh []layout.Order, err error) {
	for _, p := range orders {
		known, err := w.sameAs(p, fresh)
		if err != nil {
			return nil, err
		}
		if known != nil {
			if !bytes.Equal(known, p.Same) {
				return nil, refusal{belay.Errorf(belay.CodeIDConflict, "the command id is taken by another command").At(string(p.Order.ID)).
					WithHint("use a new id for another command")}
			}
			continue
		}
		_, there, err := w.streamIn(p.Order.Session, p.Order.Stream)
		if err == nil && !there {
			if _, err = w.buried(p.Order.Session); withFacts && belay.CodeOf(err) == belay.CodeDeleted {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, p)
	}
	return fresh, nil
}

// sameAs is the digest under which an order's id is known, or nil.
func (w *writer) sameAs(p layout.Order, fresh []layout.Order) (known []byte, err error) {
	for i := range fresh {
		if fresh[i].Order.ID == p.Order.ID {
			return fresh[i].Same, nil
		}
	}
	_, err = w.row("SELECT sum FROM commands WHERE id=?", []any{string(p.Order.ID)}, &known)
	return known, err
}

// enqueue writes an order that checkSends let through.
func (w *writer) enqueue(p *layout.Order) error {
	s, found, err := w.streamIn(p.Order.Session, p.Order.Stream)
	if no, refused := errors.AsType[refusal](err); refused {
		err = no.error // too late to refuse: something may be written
	}
	if err == nil && !found {
		err = w.save(&s)
	}
	if err == nil {
		err = w.know(p)
	}
	if err != nil {
		return err
	}
	w.grown += len(p.Body)
	return w.exec("INSERT INTO inbox (stream, id, principal, time, name, body, sum) VALUES (?,?,?,?,?,?,?)",
		s.ID, string(p.Order.ID), p.Order.Principal, p.Time, p.Name, p.Body, p.RowSum())
}

// know writes that an order came in.
func (w *writer) know(p *layout.Order) error {
	return w.exec("INSERT INTO commands (id, sum) VALUES (?,?)", string(p.Order.ID), p.Same)
}

// Inbox lists what waits for a stream, oldest first.
func (in *inbox) Inbox(ctx context.Context, s belay.StreamID) (orders []belay.Order, err error) {
	err = in.query(ctx, "SELECT s.session, i.id, i.principal, i.time, i.name, i.body, i.sum "+
		"FROM streams s JOIN inbox i ON i.stream=s.id WHERE s.name=? ORDER BY i.num", []any{string(s)},
		func(rows *sql.Rows) error {
			o := belay.Order{Stream: s}
			p := layout.Order{Order: &o}
			var sum []byte
			if err := rows.Scan(&o.Session, &o.ID, &o.Principal, &p.Time, &p.Name, &p.Body, &sum); err != nil {
				return err
			}
			if !bytes.Equal(sum, p.RowSum()) {
				return store.Damaged("inbox/"+string(o.ID), "a waiting command isn't what was written")
			}
			o.Time = store.FromMicros(p.Time)
			if o.Command, err = belay.DecodeCommand(p.Name, p.Body); err != nil {
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
