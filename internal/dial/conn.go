package dial

import (
	"io"
	"net"
	"sync"
)

// conn is a connection that lends the room through which a request's body goes
// out: the standard one makes room anew for each, 32 KiB.
type conn struct{ net.Conn }

const roomBytes = 64 << 10

var rooms = sync.Pool{New: func() any { return new([roomBytes]byte) }}

// ReadFrom writes what r has to the connection.
func (c conn) ReadFrom(r io.Reader) (int64, error) {
	room := rooms.Get().(*[roomBytes]byte)
	defer rooms.Put(room)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, room[:])
}
