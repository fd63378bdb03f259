package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// bounded is a listener that keeps no more than so many connections at once;
// who comes then waits in the system's queue.
type bounded struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, slots: make(chan struct{}, most), done: make(chan struct{})}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	return &counted{Conn: c, free: func() { <-b.slots }}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Listener.Close()
}

// counted gives its slot back when it is closed first.
type counted struct {
	net.Conn
	once sync.Once
	free func()
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.free)
	return err
}

// connection is the key of a request's connection.
type connection struct{}

// streamBuffer bounds what the kernel keeps of a stream that its client doesn't take, in
// bytes; by itself it would keep some MiB.
const streamBuffer = 128 << 10

// narrow keeps little of an answer without an end that a client doesn't take.
func narrow(r *http.Request) {
	c, _ := r.Context().Value(connection{}).(net.Conn)
	if t, is := c.(*tls.Conn); is {
		c = t.NetConn()
	}
	if of, is := c.(*counted); is {
		c = of.Conn
	}
	if b, is := c.(interface{ SetWriteBuffer(bytes int) error }); is {
		b.SetWriteBuffer(streamBuffer) //nolint:errcheck // one that can't costs more
	}
}
