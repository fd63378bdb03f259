package verify

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// chain follows one stream's facts.
type chain struct {
	s    *layout.Stream
	seq  int64    // of the last fact
	pos  int64    // its position
	time int64    // its time
	prev [32]byte // its stored hash
	lost bool     // prev isn't the hash of the fact before the next one

	doubt *doubt // about the last fact
}

// doubt is a fact whose stored hash isn't the one of its bytes. Which of the
// two was changed shows in the next fact's hash, or in the stream's row.
type doubt struct {
	row          store.Row
	before       [32]byte // the hash it follows
	is, computed [32]byte
}

// stream checks a stream's facts from the first to the end that its row has.
func (v *verification) stream(ctx context.Context, s *layout.Stream) error {
	c := chain{s: s, prev: store.Genesis(s.Session, s.Name)}
	for more := true; more; {
		var part []layout.Event
		err := v.each(ctx, "SELECT "+layout.EventColumns+" FROM events WHERE stream=? AND seq>? ORDER BY seq LIMIT 512", []any{s.ID, c.seq}, func(rows *sql.Rows) error {
			var e layout.Event
			if err := e.Scan(rows.Scan); err != nil {
				return fmt.Errorf("after fact %d: %w", c.seq+int64(len(part)), err)
			}
			part = append(part, e)
			return nil
		})
		if err != nil {
			return err
		}
		more = len(part) == portion
		for i := range part {
			if err := v.fact(ctx, &c, &part[i]); err != nil {
				return err
			}
		}
	}
	v.end(&c)
	return nil
}

func (v *verification) fact(ctx context.Context, c *chain, e *layout.Event) error {
	place := store.RowName(c.s.Name, e.Row.Seq)
	if e.Row.Seq <= c.seq {
		return fmt.Errorf("after fact %d: %w", c.seq, errOrder)
	}
	if e.Row.Seq != c.seq+1 {
		v.settle(c, nil)
		v.problem(store.RowName(c.s.Name, c.seq+1), "facts up to %d are not there", e.Row.Seq-1)
		c.lost = true
	}
	if e.Pos <= c.pos {
		v.problem(place, "its position %d isn't after the fact's before it, %d", e.Pos, c.pos)
	}
	name, ok := v.types[e.TypeNumber]
	if !ok {
		v.problem(place, "its type, number %d, has no name", e.TypeNumber)
	}
	e.Row.Type = name
	var sum, is [32]byte
	sum, v.buf = store.Link(c.prev, &e.Row, v.buf)
	if copy(is[:], e.Hash); len(e.Hash) != len(is) {
		v.problem(place, "its hash has %d bytes", len(e.Hash))
	}
	good := sum == is || c.lost
	if v.settle(c, func(prev [32]byte) bool {
		sum, v.buf = store.Link(prev, &e.Row, v.buf)
		return sum == is
	}) {
		good = true
	}
	if !good {
		c.doubt = &doubt{row: e.Row, before: c.prev, is: is, computed: sum}
	}
	c.seq, c.pos, c.time, c.prev, c.lost = e.Row.Seq, e.Pos, e.Row.Time, is, false
	v.Events++
	if !good {
		return nil
	}
	return v.inside(ctx, c.s, &e.Row, e.Pos)
}

// inside looks at what a fact says and names.
func (v *verification) inside(ctx context.Context, s *layout.Stream, r *store.Row, pos int64) error {
	place := store.RowName(s.Name, r.Seq)
	e, err := r.Unpack(v.Runtime, s.Session, s.Name)
	if err != nil {
		v.problem(place, "it is what was written and can't be read: %v", err)
		return nil
	}
	for _, ref := range e.Refs {
		if err := v.ref(ctx, place, ref); err != nil {
			return err
		}
	}
	refs, err := v.withoutExpired(ctx, store.RefsIn(r.Data), layout.Naming{Output: layout.Output{Session: s.Session}, Pos: pos}, e.Data)
	for _, ref := range refs {
		if err == nil {
			err = v.ref(ctx, place, ref)
		}
	}
	return err
}

// expirations notes which outputs were let go.
func (v *verification) expirations(ctx context.Context) error {
	return v.each(ctx, layout.ExpiredQuery, nil, v.let.Scan)
}

// withoutExpired leaves out the outputs of a fact that were let go after it and
// aren't there any more. What the fact names in another way too has to be there.
func (v *verification) withoutExpired(ctx context.Context, refs []belay.Ref, n layout.Naming, p event.Payload) ([]belay.Ref, error) {
	if len(v.let) == 0 || len(refs) == 0 || !event.NamesOutputs(event.TypeOf(p)) {
		return refs, nil
	}
	rest, outputs := event.WithoutOutputs(p)
	text, err := json.Marshal(rest)
	if err != nil {
		return refs, err
	}
	for _, ref := range outputs {
		var ok, found bool
		if n.Digest, ok = store.RawDigest(ref.Digest); !ok || v.let[n.Output] <= n.Pos || quotes(text, n.Digest) {
			continue
		}
		if _, found, err = v.content(ctx, n.Digest); err != nil {
			return nil, err
		}
		if !found {
			v.expired[n.Digest] = true
			refs = slices.DeleteFunc(refs, func(r belay.Ref) bool { return r.Digest == ref.Digest })
		}
	}
	return refs, nil
}

// settle tells what is wrong with the last fact. follows reports whether what
// comes next follows from a hash; it does from the one that was written.
// The result says that it followed from the last fact's bytes.
func (v *verification) settle(c *chain, follows func(prev [32]byte) bool) bool {
	d := c.doubt
	if d == nil {
		return false
	}
	c.doubt = nil
	place := store.RowName(c.s.Name, d.row.Seq)
	switch {
	case follows == nil:
		v.problem(place, "its bytes or its hash were changed")
	case follows(d.computed):
		v.problem(place, "its hash was changed")
		return true
	case follows(d.is):
		v.problem(place, "its bytes were changed%s", v.changedByte(d))
	default:
		v.problem(place, "its bytes or its hash were changed")
	}
	return false
}

// end compares the last fact with the stream's row.
func (v *verification) end(c *chain) {
	v.settle(c, func(prev [32]byte) bool { return prev == c.s.Hash })
	place := "streams/" + string(c.s.Name)
	switch {
	case c.seq < c.s.Seq:
		v.problem(store.RowName(c.s.Name, c.seq+1), "facts up to %d are not there", c.s.Seq)
	case c.seq > c.s.Seq:
		v.problem(place, "it ends at fact %d, but its row says %d", c.seq, c.s.Seq)
	case c.prev != c.s.Hash:
		v.problem(place, "its row has another hash than its last fact")
	case c.time != c.s.Time:
		v.problem(place, "its row has another time than its last fact")
	}
	if c.seq > 0 {
		v.Streams++
		v.Heads = append(v.Heads, store.Head{Stream: c.s.Name, Session: c.s.Session, Seq: c.s.Seq, Hash: c.s.Hash, Time: store.FromMicros(c.s.Time)})
	}
}

// quotes reports whether a JSON text names content.
func quotes(text []byte, d [32]byte) (named bool) {
	store.Quoted(text, func(other [32]byte) { named = named || other == d })
	return named
}

// mostTries is how many bytes a check hashes to find out which byte changed.
const mostTries = 4 << 20

// changedByte looks for the one byte whose change makes a fact's hash right
// again: first single bits, which is what disks and memory flip.
func (v *verification) changedByte(d *doubt) string {
	b := d.row.Canonical(append([]byte(nil), d.before[:]...))
	at := len(b)
	for _, f := range []struct {
		name  string
		bytes []byte
	}{{"the payload", d.row.Data}, {"the references", d.row.Refs}, {"the identities", d.row.IDs}} {
		at -= len(f.bytes)
		for bits := 1; bits <= 8; bits += 7 {
			if i, was := v.mend(b, at, len(f.bytes), bits == 1, d.is); i >= 0 {
				return fmt.Sprintf(": byte %d of %s is %#02x, was %#02x", i, f.name, f.bytes[i], was)
			}
		}
		at -= len(binary.AppendUvarint(nil, uint64(len(f.bytes))))
	}
	return ""
}

// mend tries other values for n bytes of b, one at a time.
func (v *verification) mend(b []byte, at, n int, bits bool, want [32]byte) (index int, was byte) {
	for i := range n {
		is := b[at+i]
		for x := 1; x < 256; x++ {
			if bits && x&(x-1) != 0 {
				continue
			}
			if v.tries += len(b); v.tries > mostTries {
				b[at+i] = is
				return -1, 0
			}
			if b[at+i] = is ^ byte(x); sha256.Sum256(b) == want {
				return i, b[at+i]
			}
		}
		b[at+i] = is
	}
	return -1, 0
}
