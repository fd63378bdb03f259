package mcp

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/process"
)

// lines are a server's standard output: what may be a message goes to the protocol,
// a line that can't be goes where its errors go. Nothing is held back.
type lines struct {
	messages io.Writer
	others   io.Writer
	within   io.Writer // where the line that was begun goes; nil: none was
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if l.within == nil {
			p = bytes.TrimLeft(p, " \t\r\n")
			if len(p) == 0 {
				break
			}
			if l.within = l.others; p[0] == '{' || p[0] == '[' {
				l.within = l.messages
			}
		}
		end := bytes.IndexByte(p, '\n') + 1
		part := p[:end]
		if end == 0 {
			part = p
		}
		if _, err := l.within.Write(part); err != nil {
			return 0, err
		}
		if p = p[len(part):]; end > 0 {
			l.within = nil
		}
	}
	return n, nil
}

// endNoted is what a server says, read by the protocol, which stops where it doesn't
// understand. end is closed when all of it was read.
type endNoted struct {
	*io.PipeReader
	end  chan struct{}
	once sync.Once
}

// Read implements io.Reader.
func (r *endNoted) Read(p []byte) (int, error) {
	n, err := r.PipeReader.Read(p)
	if err == io.EOF {
		r.once.Do(func() { close(r.end) })
	}
	return n, err
}

// input is where a server reads its messages.
type input struct{ proc *process.Process }

// Write implements io.Writer. A server that doesn't read is an error.
func (w input) Write(p []byte) (int, error) { return w.proc.Write(p, patience) }

// Close implements io.Closer: no more messages come.
func (w input) Close() error { return w.proc.CloseInput() }

// patience is how long a server may leave a message unread.
const patience = 30 * time.Second

// errorOutput is what a server prints besides its messages: kept up to a limit, and
// its end remembered.
type errorOutput struct {
	mu   sync.Mutex
	to   io.Writer // nil: it isn't kept
	n    int
	last []byte
}

// Bounds of what a server prints besides its messages.
const (
	maxErrors = 4 << 20
	maxTail   = 4 << 10
)

// Write implements io.Writer. It takes everything.
func (o *errorOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to != nil && o.n < maxErrors {
		o.to.Write(p[:min(len(p), maxErrors-o.n)]) //nolint:errcheck // what can't be kept is missing where it is read
	}
	o.n += len(p)
	o.last = append(o.last, p...)
	if len(o.last) > maxTail {
		o.last = append([]byte(nil), o.last[len(o.last)-maxTail:]...)
	}
	return len(p), nil
}

// tail is the end of it.
func (o *errorOutput) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return visible(string(o.last))
}
