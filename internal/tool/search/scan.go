//go:build unix

package search

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/workspace/fswalk"
)

const (
	beginning = 256 << 10 // bytes of a file that tell whether it is text before anything of it is searched
	longest   = 1 << 20   // bytes of one line that are searched
	lineSize  = 300       // bytes of a line that are shown
)

// What a search shows.
const (
	modeContent = "content"
	modeFiles   = "files"
	modeCount   = "count"
)

// order is what to look for in each file, and how much to keep of it.
type order struct {
	m             *matcher
	mode          string
	before, after int // lines of context
	most          int // matches to show of one file
	room          int // bytes to show of one file
}

// result is what came of one file.
type result struct {
	path    string
	text    []byte // the matches as they are shown
	ends    []int  // where the text of each match ends
	matches int    // that were found; the search may have ended early
	binary  bool
	long    bool // a line was too long to be searched to its end
	stopped bool // more matches may follow
	err     error
}

// scanner searches files one after the other, line by line.
type scanner struct {
	order
	in *bufio.Reader

	// Of the file that is being searched:
	past   [][]byte // the lines before as they would be shown, and aren't yet
	last   int      // number of the line shown last
	follow int      // lines of context still to be shown
}

func newScanner(o order) *scanner {
	return &scanner{order: o, in: bufio.NewReaderSize(nil, longest)}
}

// file searches one file.
func (s *scanner) file(e fswalk.Entry) result {
	r := result{path: e.Path}
	f, _, err := e.Open()
	if err != nil {
		r.err = err
		return r
	}
	defer f.Close()
	s.reader(f, &r)
	return r
}

// reader searches what a reader gives.
func (s *scanner) reader(f io.Reader, r *result) {
	s.in.Reset(f)
	s.past, s.last, s.follow = nil, 0, 0
	head, _ := s.in.Peek(beginning) // an error comes again
	if r.binary = bytes.IndexByte(head, 0) >= 0; r.binary {
		return
	}
	for number := 1; ; number++ {
		line, err := s.in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		ended := errors.Is(err, io.EOF)
		switch {
		case err != nil && !long && !ended:
			r.err = err
			return
		case len(line) == 0:
			return
		case bytes.IndexByte(line, 0) >= 0:
			*r = result{path: r.path, binary: true}
			return
		}
		r.long = r.long || long
		if !s.line(number, trimCR(bytes.TrimSuffix(line, newline)), r) {
			return
		}
		for long { // the rest of the line
			_, err = s.in.ReadSlice('\n')
			long = errors.Is(err, bufio.ErrBufferFull)
		}
	}
}

var newline = []byte{'\n'}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }

// line searches one line, and shows it if it matches or stands near one that does;
// false ends the file.
func (s *scanner) line(number int, line []byte, r *result) bool {
	switch hit := s.m.match(line); {
	case hit && s.mode == modeContent:
		r.matches++
		return s.matched(number, line, r)
	case hit:
		r.matches++
		return s.mode == modeCount
	case s.follow > 0:
		s.follow--
		s.last = number
		r.text = appendShown(r.text, number, '-', line, -1)
		r.ends[len(r.ends)-1] = len(r.text)
	case s.before > 0:
		s.past = append(s.past, appendShown(nil, number, '-', line, -1))
		if len(s.past) > s.before {
			s.past = s.past[1:]
		}
	}
	return true
}

// matched shows a line that matches, with those before it; false ends the file.
func (s *scanner) matched(number int, line []byte, r *result) bool {
	if s.before+s.after > 0 && s.last > 0 && number-len(s.past) > s.last+1 {
		r.text = append(r.text, "--\n"...)
	}
	for _, p := range s.past {
		r.text = append(r.text, p...)
	}
	at := 0
	if len(line) > lineSize {
		at = s.m.re.FindIndex(line)[0]
	}
	r.text = appendShown(r.text, number, ':', line, at)
	r.ends = append(r.ends, len(r.text))
	s.past, s.last, s.follow = nil, number, s.after
	r.stopped = len(r.ends) >= s.most || len(r.text) >= s.room
	return !r.stopped
}

// appendShown appends a line as it is shown, with its number. at is what must be
// seen of a long line.
func appendShown(t []byte, number int, sign byte, line []byte, at int) []byte {
	t = append(strconv.AppendInt(t, int64(number), 10), sign)
	return append(appendLine(t, line, at), '\n')
}

// appendLine appends a line, or the part of a long one around a place.
func appendLine(t, line []byte, at int) []byte {
	if len(line) <= lineSize {
		return append(t, line...)
	}
	from := 0
	if at > lineSize*2/3 {
		from = min(at-lineSize/3, len(line)-lineSize)
	}
	to := min(from+lineSize, len(line))
	for from > 0 && from < to && !utf8.RuneStart(line[from]) {
		from++
	}
	for to < len(line) && to > from && !utf8.RuneStart(line[to]) {
		to--
	}
	if from > 0 {
		t = append(t, "…"...)
	}
	t = append(t, line[from:to]...)
	if to < len(line) {
		t = append(t, "… ["...)
		t = strconv.AppendInt(t, int64(len(line)), 10)
		t = append(t, " bytes]"...)
	}
	return t
}
