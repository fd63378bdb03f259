// Package sse reads server-sent events as the WHATWG HTML standard says, section
// 9.2: lines end in LF, CR LF or CR, fields with the same name but data replace
// each other, and what has no blank line behind it is no event. Memory is bounded
// by the largest event, and that by the reader's limit.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// Event is one event that has data.
type Event struct {
	Name string // empty: message
	Data []byte
}

// ErrTooLong is the error of an event beyond the limit.
var ErrTooLong = errors.New("an event of the stream is too long")

// Reader reads a stream. One goroutine may use it.
type Reader struct {
	ID    string        // the last one that an event had; a stream that is continued begins with it
	Retry time.Duration // how long the server wants its client to wait; 0: it said nothing

	lines *bufio.Scanner
	limit int
	begun bool
}

// NewReader is a reader of events of at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, limit)
	lines.Split(splitLines())
	return &Reader{lines: lines, limit: limit}
}

// Next is the next event; io.EOF is the end of the stream.
func (r *Reader) Next() (Event, error) {
	var e Event
	for r.lines.Scan() {
		line := r.lines.Bytes()
		if !r.begun {
			r.begun = true
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if len(line) == 0 {
			if len(e.Data) > 0 {
				e.Data = e.Data[:len(e.Data)-1]
				return e, nil
			}
			e = Event{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if e.Data = append(append(e.Data, value...), '\n'); len(e.Data) > r.limit {
				return Event{}, ErrTooLong
			}
		case "event":
			e.Name = string(value)
		case "id":
			if !bytes.Contains(value, []byte("\x00")) {
				r.ID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil && strings.Trim(string(value), "0123456789") == "" {
				r.Retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	switch err := r.lines.Err(); {
	case err == nil:
		return Event{}, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return Event{}, ErrTooLong
	default:
		return Event{}, err
	}
}

// splitLines splits off lines without their ends. A line ends with its CR, so that
// an event is complete before more comes; a LF behind it is dropped when it comes.
// What was searched for an end isn't searched again when more of the line has come.
func splitLines() bufio.SplitFunc {
	afterCR, searched := false, 0
	return func(data []byte, _ bool) (advance int, line []byte, err error) {
		if afterCR && len(data) > 0 {
			afterCR = false
			if data[0] == '\n' {
				advance, data = 1, data[1:]
			}
		}
		n := bytes.IndexAny(data[searched:], "\r\n")
		if n < 0 {
			searched = len(data)
			return advance, nil, nil // a last line without an end is none
		}
		n, searched = searched+n, 0
		afterCR = data[n] == '\r'
		return advance + n + 1, data[:n:n], nil
	}
}
