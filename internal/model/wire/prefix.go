package wire

import (
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
)

// Prefixes keeps the encoded heads and messages of conversations, so that a request
// encodes what is new only and begins with the very bytes of the one before it.
// What the cache has no room for is encoded again and comes out the same, because
// encoding follows from the messages alone.
//
// A message is known by the place of its parts in memory: conversations share
// their messages between requests and never change them. An entry holds on to
// the parts, so a place can't come to mean another message.
type Prefixes struct{ known lru.Part[talk, *prefix] }

// talk names a conversation in a dialect: what one vendor's model is sent isn't
// what another is. A head isn't of one conversation: it is named by what it says.
type talk struct {
	dialect string
	first   *belay.Part

	model, system string
	tools         *model.ToolDef
	count         int // of tools
}

// prefix is one conversation's messages, encoded, or its head.
type prefix struct {
	busy     sync.Mutex // one request at a time encodes a conversation
	messages []spoken
	bytes    [][]byte // of each message; what was handed out never changes
	size     int      // of these
}

// spoken tells messages apart.
type spoken struct {
	role  belay.Role
	first *belay.Part
}

func spokenOf(m *belay.Message) spoken {
	if len(m.Parts) == 0 {
		return spoken{role: m.Role}
	}
	return spoken{m.Role, &m.Parts[0]}
}

// NewPrefixes keeps what it keeps in c.
func NewPrefixes(c *lru.Cache) *Prefixes { return &Prefixes{lru.Of[talk, *prefix](c)} }

// Encode returns the encoding of each message, those that are kept as they are. add
// appends one message's encoding to dst; what it writes follows from the dialect,
// the message and those before it.
func (c *Prefixes) Encode(dialect string, msgs []belay.Message, add func(dst []byte, m *belay.Message) ([]byte, error)) ([][]byte, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	t := talk{dialect: dialect, first: spokenOf(&msgs[0]).first}
	p := c.take(t)
	defer p.busy.Unlock()
	n := 0
	for n < min(len(p.messages), len(msgs)) && p.messages[n] == spokenOf(&msgs[n]) {
		n++
	}
	for _, b := range p.bytes[n:] {
		p.size -= len(b)
	}
	if n < len(p.messages) { // clipped: what follows is in memory that was handed out
		p.messages, p.bytes = slices.Clip(p.messages[:n]), slices.Clip(p.bytes[:n])
	}
	for i := n; i < len(msgs); i++ {
		b, err := add(nil, &msgs[i])
		if err != nil {
			return nil, err
		}
		p.messages, p.bytes = append(p.messages, spokenOf(&msgs[i])), append(p.bytes, b)
		p.size += len(b)
	}
	c.known.Put(t, p, p.size)
	return slices.Clip(p.bytes), nil
}

// Head returns the encoding of what requests begin with, the one that is kept
// when model, instructions and tools are the same, in whatever conversation;
// encode gets nothing else of the request. Tools are the same when they are in the
// same place in memory.
func (c *Prefixes) Head(dialect string, r model.Request, encode func(model.Request) ([]byte, error)) ([]byte, error) {
	of := model.Request{Model: r.Model, System: r.System, Tools: r.Tools}
	if len(r.Tools) == 0 {
		return encode(of)
	}
	t := talk{dialect: dialect, model: r.Model, system: r.System, tools: &r.Tools[0], count: len(r.Tools)}
	p := c.take(t)
	defer p.busy.Unlock()
	if len(p.bytes) == 0 {
		head, err := encode(of)
		if err != nil {
			return nil, err
		}
		p.bytes = [][]byte{head}
		c.known.Put(t, p, len(head))
	}
	return p.bytes[0], nil
}

// take finds or makes the entry of a conversation, which is its caller's until it
// isn't busy any more.
func (c *Prefixes) take(t talk) *prefix {
	p := c.known.Share(t, func() *prefix { return &prefix{} })
	p.busy.Lock()
	return p
}
