package wire

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Body is a request's bytes in pieces, which are shared and never change: what
// was encoded for an earlier request is sent again without being copied.
type Body struct{ pieces [][]byte }

// Add appends pieces; they must not change any more.
func (b *Body) Add(pieces ...[]byte) { b.pieces = append(b.pieces, pieces...) }

// Len is the number of bytes.
func (b *Body) Len() int64 {
	var n int64
	for _, p := range b.pieces {
		n += int64(len(p))
	}
	return n
}

// Reader reads the body from its start; any number may at once.
func (b *Body) Reader() io.ReadCloser {
	rest := net.Buffers(slices.Clone(b.pieces)) // reading takes them away
	return io.NopCloser(&rest)
}

// Body is a request: what never changes in a conversation first, then the messages,
// then what belongs to this request only. So the bytes of a request begin with
// those of the one before it, which providers cache. Where messages begin with a
// comma each, the first has none at the beginning of the head's list.
func (c *Prefixes) Body(r model.Request, dialect string, head func(model.Request) ([]byte, error), add func(dst []byte, m *belay.Message) ([]byte, error), tail func(model.Request) ([]byte, error)) (*Body, error) {
	first, err := c.Head(dialect, r, head)
	msgs, merr := c.Encode(dialect, r.Messages, add)
	last, terr := tail(r)
	if err := errors.Join(err, merr, terr); err != nil {
		return nil, err
	}
	b := &Body{pieces: make([][]byte, 0, len(msgs)+2)}
	b.Add(first)
	for _, p := range append(msgs, last) {
		if len(b.pieces) == 1 && len(p) > 0 && p[0] == ',' && first[len(first)-1] == '[' {
			p = p[1:]
		}
		if len(p) > 0 {
			b.Add(p)
		}
	}
	return b, nil
}
