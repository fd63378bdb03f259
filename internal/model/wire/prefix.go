package wire

import (
	"container/list"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Prefixes keeps the encoded heads and messages of conversations, so that a request
// encodes what is new only and begins with the very bytes of the one before it.
// It is bounded by bytes over all conversations; what was dropped is encoded
// again and comes out the same, because encoding follows from the message alone.
//
// A message is known by the place of its parts in memory: conversations share
// their messages between requests and never change them. An entry holds on to
// the parts, so a place can't come to mean another message.
type Prefixes struct {
	mu     sync.Mutex
	budget int
	size   int
	order  *list.List // of *prefix, the one used last in front
	byHead map[talk]*list.Element
}

// talk names a conversation in a dialect: what one vendor's model is sent isn't
// what another is. A head isn't of one conversation: it is named by what it says.
type talk struct {
	dialect string
	first   *belay.Part

	model, system string
	tools         *model.ToolDef
}

// prefix is one conversation's messages, encoded, or its head.
type prefix struct {
	talk  talk
	busy  sync.Mutex // one request at a time encodes a conversation
	parts []*belay.Part
	ends  []int    // of each message, counted over all blocks
	block [][]byte // grown at the end; bytes that were handed out never change
	size  int

	tools []model.ToolDef // of a head: held on to, so that their place stays theirs
}

// blockSize is how much is put together, so that long conversations are few pieces.
const blockSize = 64 << 10

// NewPrefixes keeps up to budget bytes.
func NewPrefixes(budget int) *Prefixes {
	return &Prefixes{budget: budget, order: list.New(), byHead: map[talk]*list.Element{}}
}

// Encode returns the messages' encodings one after the other, those that are
// kept as they are. add appends one message's encoding to dst; what it writes
// follows from the dialect and the message alone.
func (c *Prefixes) Encode(dialect string, msgs []belay.Message, add func(dst []byte, m *belay.Message) ([]byte, error)) ([][]byte, error) {
	if len(msgs) == 0 || len(msgs[0].Parts) == 0 {
		return encodeAll(msgs, add)
	}
	p := c.take(talk{dialect: dialect, first: &msgs[0].Parts[0]})
	p.busy.Lock()
	defer p.busy.Unlock()
	before := p.size
	p.keep(msgs)
	for i := len(p.parts); i < len(msgs); i++ {
		if len(msgs[i].Parts) == 0 {
			break
		}
		if err := p.add(&msgs[i], add); err != nil {
			return nil, err
		}
	}
	out := append([][]byte(nil), p.block...)
	rest, err := encodeAll(msgs[len(p.parts):], add)
	c.grown(p, before)
	return append(out, rest...), err
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
	p := c.take(talk{dialect: dialect, model: r.Model, system: r.System, tools: &r.Tools[0]})
	p.busy.Lock()
	defer p.busy.Unlock()
	if len(p.block) > 0 && len(p.tools) == len(r.Tools) {
		return p.block[0], nil
	}
	head, err := encode(of)
	if err != nil {
		return nil, err
	}
	before := p.size
	p.tools, p.block, p.size = r.Tools, [][]byte{head}, len(head)
	c.grown(p, before)
	return head, nil
}

func encodeAll(msgs []belay.Message, add func([]byte, *belay.Message) ([]byte, error)) ([][]byte, error) {
	var b []byte
	var err error
	for i := range msgs {
		if b, err = add(b, &msgs[i]); err != nil {
			return nil, err
		}
	}
	if len(b) == 0 {
		return nil, nil
	}
	return [][]byte{b}, nil
}

// take finds or makes the entry of a conversation.
func (c *Prefixes) take(t talk) *prefix {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byHead[t]; el != nil {
		c.order.MoveToFront(el)
		return el.Value.(*prefix)
	}
	p := &prefix{talk: t}
	c.byHead[t] = c.order.PushFront(p)
	return p
}

// grown counts what an entry gained and drops the ones not used for longest.
func (c *Prefixes) grown(p *prefix, before int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byHead[p.talk]; el == nil || el.Value.(*prefix) != p {
		return // dropped meanwhile
	}
	c.size += p.size - before
	for c.size > c.budget && c.order.Len() > 0 {
		old := c.order.Back()
		o := old.Value.(*prefix)
		if o != p && !o.busy.TryLock() {
			break // in use: the next request drops it
		}
		c.order.Remove(old)
		delete(c.byHead, o.talk)
		c.size -= o.size
		if o != p {
			o.busy.Unlock()
		}
	}
}

// keep drops what isn't the beginning of msgs any more.
func (p *prefix) keep(msgs []belay.Message) {
	n := 0
	for n < len(p.parts) && n < len(msgs) && len(msgs[n].Parts) > 0 && p.parts[n] == &msgs[n].Parts[0] {
		n++
	}
	if n == len(p.parts) {
		return
	}
	p.parts = p.parts[:n]
	p.ends = p.ends[:n]
	size := 0
	if n > 0 {
		size = p.ends[n-1]
	}
	at := 0
	for i, b := range p.block {
		if at+len(b) >= size {
			// What follows would be overwritten in memory that was handed out.
			p.block[i] = append([]byte(nil), b[:size-at]...)
			p.block = p.block[:i+1]
			break
		}
		at += len(b)
	}
	p.size = size
}

func (p *prefix) add(m *belay.Message, add func([]byte, *belay.Message) ([]byte, error)) error {
	n := len(p.block)
	if n == 0 || len(p.block[n-1]) >= blockSize {
		p.block = append(p.block, nil)
		n++
	}
	b, err := add(p.block[n-1], m)
	if err != nil {
		return err
	}
	p.size += len(b) - len(p.block[n-1])
	p.block[n-1] = b
	p.parts = append(p.parts, &m.Parts[0])
	p.ends = append(p.ends, p.size)
	return nil
}
