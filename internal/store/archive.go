package store

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/belay-run/belay"
)

// Stored is a fact as it is kept: the stream it stands in and the bytes that
// the hash chain covers.
type Stored struct {
	Stream belay.StreamID
	Row    Row
}

// Archive moves whole sessions from store to store, byte for byte.
type Archive interface {
	// Stored yields the facts of a session up to a position, in the order in
	// which they were appended. Each is checked against its stream's chain.
	Stored(ctx context.Context, session belay.SessionID, upTo Position) iter.Seq2[Stored, error]
	// Restore makes a session with facts that another store kept. It is one
	// transaction: everything is there after it, or nothing. It is refused with
	// CodeIDConflict when a stream of it exists here, and with CodeStoreDamaged
	// when the facts don't end where Heads says. A session that was deleted may
	// come back; its epochs go on.
	Restore(ctx context.Context, r Restoration) error
}

// Restoration is a session on its way into a store.
type Restoration struct {
	Session belay.SessionID
	Heads   []Head                      // every stream with facts, and where it ends
	Facts   iter.Seq2[Stored, error]    // in the order of Stored; may be run again
	Lanes   map[belay.StreamID]Lane     // what folding the facts says
	Inbox   []belay.Order               // accepted commands that no fact answers yet
	Keep    func(context.Context) error // puts the content that the facts name; called when an earlier deletion of the session is over. May be nil
}

// Exists is the error of Restore for a session that is here already.
func Exists(s belay.StreamID) *belay.Error {
	return belay.Errorf(belay.CodeIDConflict, "it exists in this store already").At(string(s))
}

// Chains follows the streams of a session while their facts are written or
// read again in the order of Stored.
type Chains struct {
	session belay.SessionID
	heads   map[belay.StreamID]*Head
	order   []*Head
	buf     []byte
}

// NewChains is at the beginning of every stream of a session.
func NewChains(session belay.SessionID) *Chains {
	return &Chains{session: session, heads: map[belay.StreamID]*Head{}}
}

// Add moves a stream on by one fact, which must be the next one.
func (c *Chains) Add(f *Stored) (*Head, error) {
	h := c.heads[f.Stream]
	if h == nil {
		h = &Head{Stream: f.Stream, Session: c.session, Hash: Genesis(c.session, f.Stream)}
		c.heads[f.Stream] = h
		c.order = append(c.order, h)
	}
	switch at := FromMicros(f.Row.Time); {
	case f.Row.Seq != h.Seq+1:
		return h, Damaged(RowName(f.Stream, f.Row.Seq), "it doesn't follow the fact before it")
	case at.Before(h.Time):
		return h, Damaged(RowName(f.Stream, f.Row.Seq), "its time lies before that of the fact before it")
	default:
		h.Time = at
	}
	h.Seq = f.Row.Seq
	h.Hash, c.buf = Link(h.Hash, &f.Row, c.buf)
	return h, nil
}

// Heads are the ends of the streams, in the order of their first facts.
func (c *Chains) Heads() []Head {
	heads := make([]Head, len(c.order))
	for i, h := range c.order {
		heads[i] = *h
	}
	return heads
}

// End compares the streams with where they must end.
func (c *Chains) End(want []Head) error {
	if len(want) != len(c.order) {
		return Damaged(string(c.session), "it has facts of other streams than its heads name")
	}
	for _, w := range want {
		h := c.heads[w.Stream]
		if h == nil || h.Seq != w.Seq || h.Hash != w.Hash {
			return Damaged(string(w.Stream), "its facts don't end where its head says")
		}
	}
	return nil
}

// refDepth is how deep references are looked for: deeper than anything that is
// recorded, and shallow enough that a made-up text costs little.
const refDepth = 100

// RefsIn lists the content that a JSON text names: objects with a digest and a
// size, wherever they are. What isn't JSON names nothing.
func RefsIn(text []byte) []belay.Ref { return refsIn(nil, text, refDepth) }

func refsIn(refs []belay.Ref, raw json.RawMessage, depth int) []belay.Ref {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if depth == 0 || len(raw) == 0 || !bytes.Contains(raw, []byte("sha256:")) {
		return refs
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, v := range list {
			refs = refsIn(refs, v, depth-1)
		}
	case '{':
		var ref struct {
			Digest belay.Digest `json:"digest"`
			Size   *int64       `json:"size"`
			Media  string       `json:"media"`
		}
		if json.Unmarshal(raw, &ref) == nil && ref.Size != nil && ref.Digest.Valid() {
			refs = append(refs, belay.Ref{Digest: ref.Digest, Size: *ref.Size, Media: ref.Media})
		}
		var object map[string]json.RawMessage
		_ = json.Unmarshal(raw, &object)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			refs = refsIn(refs, object[key], depth-1)
		}
	}
	return refs
}
