package browser

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// wire is a network between the page and its server, which can be cut.
type wire struct {
	url string

	mu    sync.Mutex
	away  bool // no connection is taken
	open  map[net.Conn]bool
	until atomic.Int64 // nothing passes before, in nanoseconds since 1970
}

// wire puts a network before a server, which is started again to be reached over it.
func (s *server) wire() *wire {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	w := &wire{url: "http://" + l.Addr().String(), open: map[net.Conn]bool{}}
	s.kill()
	s.flags = append(s.flags, "--host", l.Addr().String(), "--origin", w.url)
	s.start(strings.TrimPrefix(s.url, "http://"))
	var wg sync.WaitGroup
	s.t.Cleanup(func() {
		l.Close() //nolint:errcheck // the test is over
		w.cut()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { w.carry(in, strings.TrimPrefix(s.url, "http://")) })
		}
	})
	return w
}

// carry passes what comes in to an address, and back.
func (w *wire) carry(in net.Conn, to string) {
	defer in.Close() //nolint:errcheck // it may be closed
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close() //nolint:errcheck // it may be closed
	w.mu.Lock()
	away := w.away
	w.open[in], w.open[out] = true, true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, in)
		delete(w.open, out)
	}()
	if away {
		return
	}
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		wg.Go(func() {
			io.Copy(slow{way[0], w}, way[1]) //nolint:errcheck // the other end sees it
			in.Close()                       //nolint:errcheck // both ways end together
			out.Close()                      //nolint:errcheck // both ways end together
		})
	}
	wg.Wait()
}

// slow writes when the wire doesn't stall.
type slow struct {
	net.Conn
	w *wire
}

func (s slow) Write(b []byte) (int, error) {
	time.Sleep(time.Until(time.Unix(0, s.w.until.Load())))
	return s.Conn.Write(b)
}

// cut ends all connections, and takes none until it is mended.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = true
	for c := range w.open {
		c.Close() //nolint:errcheck // it is cut
	}
}

// stall lets nothing pass for a while; connections stay.
func (w *wire) stall(d time.Duration) { w.until.Store(time.Now().Add(d).UnixNano()) }

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = false
}
