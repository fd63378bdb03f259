package client

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// maxFrame bounds one event of a stream, in bytes.
const maxFrame = 8 << 20

// frame is one server-sent event.
type frame struct {
	kind string // empty: the field was missing
	id   string // of the last event that had one
	data string
}

// decoder reads server-sent events as the HTML standard says: lines end with
// CR, LF or both, fields with the same name but data replace each other, and what
// stands before the end without an empty line behind it is no event.
type decoder struct {
	r       *bufio.Reader
	id      string
	retry   time.Duration // as the server wishes; 0: it said nothing
	started bool
	skipLF  bool
	line    []byte
}

func newDecoder(r io.Reader) *decoder { return &decoder{r: bufio.NewReader(r)} }

// next is the next event that has data. The end of the stream is io.EOF, an
// event that is too long belay.CodeTooLarge.
func (d *decoder) next() (frame, error) {
	var f frame
	var data []byte
	some := false
	for {
		line, err := d.read()
		if err != nil {
			return frame{}, err
		}
		if len(line) == 0 {
			if some {
				f.id, f.data = d.id, string(data[:len(data)-1])
				return f, nil
			}
			f = frame{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			some = true
			if data = append(append(data, value...), '\n'); len(data) > maxFrame {
				return frame{}, tooLong()
			}
		case "event":
			f.kind = string(value)
		case "id":
			if !bytes.Contains(value, []byte("\x00")) {
				d.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil && digits(string(value)) {
				d.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// read is the next line without its end. A last line without an end is none.
func (d *decoder) read() ([]byte, error) {
	d.line = d.line[:0]
	for {
		if _, err := d.r.Peek(1); err != nil {
			return nil, err
		}
		here, _ := d.r.Peek(d.r.Buffered()) // there is something
		if d.skipLF {
			if d.skipLF = false; here[0] == '\n' {
				d.r.Discard(1) //nolint:errcheck // it is buffered
				continue
			}
		}
		n, ended := endOfLine(here)
		if len(d.line)+n > maxFrame {
			return nil, tooLong()
		}
		d.line = append(d.line, here[:n]...)
		if ended {
			d.skipLF = here[n] == '\r'
			n++
		}
		d.r.Discard(n) //nolint:errcheck // it is buffered
		if ended {
			return d.begin(), nil
		}
	}
}

// endOfLine is how much of a text belongs to its first line, and whether the line ends there.
func endOfLine(text []byte) (n int, ended bool) {
	n = len(text)
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		n, ended = i, true
	}
	if i := bytes.IndexByte(text[:n], '\r'); i >= 0 {
		n, ended = i, true
	}
	return n, ended
}

// begin drops the mark that a stream may begin with.
func (d *decoder) begin() []byte {
	line := d.line
	if !d.started {
		d.started = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

func tooLong() error {
	return belay.Errorf(belay.CodeTooLarge, "an event of the stream has more than %d bytes", maxFrame)
}
