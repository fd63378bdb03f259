package memory

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// order is a command as it would be stored.
type order struct {
	belay.Order        // without its Command
	name        string // the command's wire form
	body        string
}

// same is what makes two orders of one id the same.
func (o *order) same() string { return string(o.Stream) + "\x00" + o.name + "\x00" + o.body }

func packOrders(orders []belay.Order) ([]order, error) {
	out := make([]order, 0, len(orders))
	for _, o := range orders {
		if o.ID == "" || o.Stream == "" || o.Session == "" || o.Command == nil {
			return nil, belay.Errorf(belay.CodeBadCommand, "an order needs an id, a session, a stream and a command").At(string(o.ID))
		}
		name, body, err := belay.EncodeCommand(o.Command)
		if err != nil {
			return nil, belay.Errorf(belay.CodeBadCommand, "a command can't be encoded").At(string(o.ID)).Wrap(err)
		}
		o.Time, o.Command = store.FromMicros(store.Micros(o.Time)), nil
		out = append(out, order{o, name, string(body)})
	}
	return out, nil
}

// Enqueue makes orders durable.
func (s *Store) Enqueue(ctx context.Context, orders ...belay.Order) error {
	packed, err := packOrders(orders)
	if err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	fresh, err := s.d.fresh(packed, false)
	if err != nil {
		return err
	}
	for _, o := range fresh {
		s.d.enqueue(o)
	}
	s.done()
	return nil
}

// fresh leaves out the orders that came in before and refuses those that can't.
// Orders for a deleted session are refused too, or left out beside facts.
func (d *Data) fresh(orders []order, withFacts bool) ([]order, error) {
	var fresh []order
	seen := map[belay.CommandID]string{}
	for _, o := range orders {
		known, ok := d.commands[o.ID]
		if !ok {
			known, ok = seen[o.ID]
		}
		if ok && known != o.same() {
			return nil, belay.Errorf(belay.CodeIDConflict, "the command id is taken by another command").At(string(o.ID)).
				WithHint("use a new id for another command")
		}
		if ok {
			continue
		}
		if _, err := d.buried(o.Session); err != nil {
			if withFacts {
				continue
			}
			return nil, err
		}
		if err := inSession(d.streams[o.Stream], o.Session); err != nil {
			return nil, err
		}
		seen[o.ID] = o.same()
		fresh = append(fresh, o)
	}
	return fresh, nil
}

func (d *Data) enqueue(o order) {
	st := d.stream(o.Session, o.Stream)
	d.commands[o.ID] = o.same()
	st.inbox = append(st.inbox, o)
}

func (st *stream) consume(id belay.CommandID) {
	st.inbox = slices.DeleteFunc(st.inbox, func(o order) bool { return o.ID == id })
}

// Inbox lists what waits for a stream, oldest first.
func (s *Store) Inbox(ctx context.Context, id belay.StreamID) ([]belay.Order, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	st := s.d.streams[id]
	if st == nil {
		return nil, nil
	}
	var out []belay.Order
	for _, p := range st.inbox {
		var err error
		o := p.Order
		if o.Command, err = belay.DecodeCommand(p.name, []byte(p.body)); err != nil {
			return nil, store.Damaged("inbox/"+string(o.ID), "a waiting command can't be read").Wrap(err)
		}
		out = append(out, o)
	}
	return out, nil
}
