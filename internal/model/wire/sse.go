package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/belay-run/belay/internal/model"
)

// maxEvent bounds one event of a stream, in bytes. Pictures come in one event.
const maxEvent = 32 << 20

// buffers are for streams: 4 KB, as much as a connection is read at once.
var buffers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// Event is one message of a server-sent stream.
type Event struct {
	Name string // empty: message
	Data []byte // valid until the next event
}

// Events reads a stream of server-sent events. Source: the WHATWG HTML standard,
// section 9.2: lines end in LF, CR LF or CR; a blank line ends an event; one that
// isn't ended is no event. Memory is bounded by the largest event, and that by
// maxEvent.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		br := buffers.Get().(*bufio.Reader)
		br.Reset(r)
		defer func() {
			br.Reset(nil)
			buffers.Put(br)
		}()
		if bom, err := br.Peek(3); err == nil && string(bom) == "\uFEFF" {
			br.Discard(3) //nolint:errcheck // it was peeked
		}
		var e reader
		for {
			line, err := e.line(br)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(Event{}, err)
				}
				return
			}
			if ev, whole := e.take(line); whole && !yield(ev, nil) {
				return
			}
		}
	}
}

// reader collects an event.
type reader struct {
	buf  []byte // the line, when it is longer than the buffer
	data []byte
	name string
	any  bool // data was seen
	cr   bool // the line before ended in CR: a LF now belongs to it
}

// line reads one line without its end. A line that the stream breaks off in the
// middle of is none.
func (e *reader) line(br *bufio.Reader) ([]byte, error) {
	e.buf = e.buf[:0]
	for {
		if e.cr {
			e.cr = false
			if b, err := br.Peek(1); err == nil && b[0] == '\n' {
				br.Discard(1) //nolint:errcheck // it was peeked
			}
		}
		if _, err := br.Peek(1); err != nil {
			return nil, err
		}
		have, _ := br.Peek(br.Buffered())
		i := bytes.IndexAny(have, "\r\n")
		if i < 0 {
			if len(e.buf)+len(have) > maxEvent {
				return nil, tooLarge
			}
			e.buf = append(e.buf, have...)
			br.Discard(len(have)) //nolint:errcheck // it was peeked
			continue
		}
		if len(e.buf)+i > maxEvent {
			return nil, tooLarge
		}
		e.cr = have[i] == '\r'
		e.buf = append(e.buf, have[:i]...)
		br.Discard(i + 1) //nolint:errcheck // it was peeked
		return e.buf, nil
	}
}

var tooLarge = &model.Error{Class: "transient", Code: "TOO_LARGE", Message: "the provider's stream has a message that is too large"}

// take adds a line; a blank one ends the event, if it has data.
func (e *reader) take(line []byte) (Event, bool) {
	if len(line) == 0 {
		ev, whole := Event{Name: e.name, Data: e.data}, e.any
		e.name, e.any = "", false
		e.data = e.data[:0]
		return ev, whole
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if e.any {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.any = true
	case "event":
		e.name = string(value)
	}
	return Event{}, false
}
