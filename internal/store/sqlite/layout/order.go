package layout

import (
	"encoding/binary"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Order is an order as the inbox stores it.
type Order struct {
	Order *belay.Order
	Time  int64
	Name  string
	Body  []byte
	Same  []byte // digest of what makes two orders of one id the same
}

// PackOrder encodes an order; one without its parts is CodeBadCommand.
func PackOrder(o *belay.Order) (Order, error) {
	if o.ID == "" || o.Stream == "" || o.Session == "" || o.Command == nil {
		return Order{}, belay.Errorf(belay.CodeBadCommand, "an order needs an id, a session, a stream and a command").At(string(o.ID))
	}
	name, body, err := belay.EncodeCommand(o.Command)
	if err != nil {
		return Order{}, belay.Errorf(belay.CodeBadCommand, "a command can't be encoded").At(string(o.ID)).Wrap(err)
	}
	p := Order{Order: o, Time: store.Micros(o.Time), Name: name, Body: body}
	p.Same = CommandSum(string(o.ID), ShortDigest(string(o.Stream), name, string(body)))
	return p, nil
}

// RowSum is a digest of the order's row in the inbox.
func (p *Order) RowSum() []byte {
	var us [8]byte
	binary.BigEndian.PutUint64(us[:], uint64(p.Time))
	return ShortDigest(string(p.Order.Stream), string(p.Order.ID), p.Order.Principal, string(us[:]), p.Name, string(p.Body))
}

// PackOrders encodes several orders, in their order.
func PackOrders(orders []belay.Order) (packed []Order, err error) {
	packed = make([]Order, len(orders))
	for i := range orders {
		if packed[i], err = PackOrder(&orders[i]); err != nil {
			return nil, err
		}
	}
	return packed, nil
}

// CommandSum is a command's digest and a checksum of that and the id, because
// they stay when the command itself is gone.
func CommandSum(id string, digest []byte) []byte {
	return binary.BigEndian.AppendUint32(digest[:len(digest):len(digest)], uint32(sumOf(id+string(digest))))
}
