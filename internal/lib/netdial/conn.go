package netdial

import (
	"bytes"
	"io"
	"net"
	"sync"
)

// conn is a connection over which a request goes out in as few pieces as can be.
// The standard client sends the head of a request by itself when it doesn't know
// how long the body will be in coming: the far end is woken for it, and with two
// processors that is what the body then waits for. Here the head waits for the
// beginning of the body, which is in memory. The client also makes room for each
// body anew, 32 KiB; this one lends it.
type conn struct {
	net.Conn
	head []byte // of a request whose body comes next
}

const roomBytes = 64 << 10

var rooms = sync.Pool{New: func() any { return new([roomBytes]byte) }}

// Write sends p, unless it is a head alone: that goes with what follows it.
func (c *conn) Write(p []byte) (int, error) {
	if len(c.head) > 0 {
		n, err := c.ReadFrom(bytes.NewReader(p))
		return int(n), err
	}
	if !headAlone(p) {
		return c.Conn.Write(p)
	}
	c.head = append(c.head, p...)
	return len(p), nil
}

// headAlone reports whether p is the whole head of a request whose body must follow
// without an answer in between, and nothing of the body. Encrypted bytes are none.
func headAlone(p []byte) bool {
	if !bytes.HasPrefix(p, []byte("POST ")) || bytes.Index(p, []byte("\r\n\r\n")) != len(p)-4 || bytes.Contains(p, []byte("\r\nExpect:")) {
		return false
	}
	_, length, found := bytes.Cut(p, []byte("\r\nContent-Length: "))
	return found && length[0] >= '1' && length[0] <= '9'
}

// ReadFrom sends what r has, as it comes.
func (c *conn) ReadFrom(r io.Reader) (sent int64, err error) {
	room := rooms.Get().(*[roomBytes]byte)
	defer rooms.Put(room)
	held := copy(room[:], c.head)
	c.head = nil
	for {
		n, end := r.Read(room[held:])
		if held+n > 0 {
			wrote, err := c.Conn.Write(room[:held+n])
			sent += int64(max(wrote-held, 0))
			if err != nil {
				return sent, err
			}
			held = 0
		}
		if end == io.EOF {
			return sent, nil
		}
		if end != nil {
			return sent, end
		}
	}
}
