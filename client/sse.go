package client

import (
	"bufio"
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
	var data strings.Builder
	some := false
	for {
		line, err := d.read()
		if err != nil {
			return frame{}, err
		}
		if len(line) == 0 {
			if some {
				f.id, f.data = d.id, strings.TrimSuffix(data.String(), "\n")
				return f, nil
			}
			f = frame{}
			continue
		}
		name, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			some = true
			data.WriteString(value)
			data.WriteByte('\n')
			if data.Len() > maxFrame {
				return frame{}, tooLong()
			}
		case "event":
			f.kind = value
		case "id":
			if !strings.Contains(value, "\x00") {
				d.id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil && digits(value) {
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
		c, err := d.r.ReadByte()
		if err != nil {
			return nil, err
		}
		if d.skipLF {
			d.skipLF = false
			if c == '\n' {
				continue
			}
		}
		switch {
		case c == '\r':
			d.skipLF = true
			return d.begin(), nil
		case c == '\n':
			return d.begin(), nil
		case len(d.line) >= maxFrame:
			return nil, tooLong()
		}
		d.line = append(d.line, c)
	}
}

// begin drops the mark that a stream may begin with.
func (d *decoder) begin() []byte {
	line := d.line
	if !d.started {
		d.started = true
		line = []byte(strings.TrimPrefix(string(line), "\ufeff"))
	}
	return line
}

func tooLong() error {
	return belay.Errorf(belay.CodeTooLarge, "an event of the stream has more than %d bytes", maxFrame)
}
