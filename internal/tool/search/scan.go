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

	cut func(content []byte) func(from, to int) []byte // takes out secrets that are cut; nil: there are none
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

// line is one of the file that is being searched.
type line struct {
	number, at int // at is where it begins
	text       []byte
}

// scanner searches files one after the other, line by line.
type scanner struct {
	order
	in *bufio.Reader

	// Of the file that is being searched:
	past   []line // the lines before that aren't shown yet
	last   int    // number of the line shown last
	follow int    // lines of context still to be shown
	at     int    // where the line begins
	again  func() []byte
	part   func(from, to int) []byte // of the file, without the secrets of which it has a part
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
	s.again = func() []byte { return content(e) }
	s.reader(f, &r)
	return r
}

// content is a file that isn't too large to look for secrets in all of it.
func content(e fswalk.Entry) []byte {
	f, _, err := e.Open()
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil || len(b) > longest {
		return nil
	}
	return b
}

// shown is a part of a line as it may be shown.
func (s *scanner) shown(l line, from, to int) []byte {
	if s.cut == nil || s.again == nil {
		return l.text[from:to]
	}
	if s.part == nil {
		b := s.again()
		known := s.cut(b)
		s.part = func(from, to int) []byte {
			if to > len(b) {
				return nil
			}
			return known(from, to)
		}
	}
	if p := s.part(l.at+from, l.at+to); p != nil {
		return p
	}
	return s.cut(l.text)(from, to)
}

// reader searches what a reader gives.
func (s *scanner) reader(f io.Reader, r *result) {
	s.in.Reset(f)
	s.past, s.last, s.follow, s.at, s.part = nil, 0, 0, 0, nil
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
		s.at += len(line)
		for long { // the rest of the line
			line, err = s.in.ReadSlice('\n')
			s.at += len(line)
			long = errors.Is(err, bufio.ErrBufferFull)
		}
	}
}

var newline = []byte{'\n'}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }

// line searches one line, and shows it if it matches or stands near one that does;
// false ends the file.
func (s *scanner) line(number int, text []byte, r *result) bool {
	switch hit := s.m.match(text); {
	case hit && s.mode == modeContent:
		r.matches++
		return s.matched(line{number, s.at, text}, r)
	case hit:
		r.matches++
		return s.mode == modeCount
	case s.follow > 0:
		s.follow--
		s.last = number
		r.text = s.appendShown(r.text, line{number, s.at, text}, '-', -1)
		r.ends[len(r.ends)-1] = len(r.text)
	case s.before > 0:
		s.past = append(s.past, line{number, s.at, bytes.Clone(text)})
		if len(s.past) > s.before {
			s.past = s.past[1:]
		}
	}
	return true
}

// matched shows a line that matches, with those before it; false ends the file.
func (s *scanner) matched(l line, r *result) bool {
	if s.before+s.after > 0 && s.last > 0 && l.number-len(s.past) > s.last+1 {
		r.text = append(r.text, "--\n"...)
	}
	for _, p := range s.past {
		r.text = s.appendShown(r.text, p, '-', -1)
	}
	at := 0
	if len(l.text) > lineSize {
		at = s.m.re.FindIndex(l.text)[0]
	}
	r.text = s.appendShown(r.text, l, ':', at)
	r.ends = append(r.ends, len(r.text))
	s.past, s.last, s.follow = nil, l.number, s.after
	r.stopped = len(r.ends) >= s.most || len(r.text) >= s.room
	return !r.stopped
}

// appendShown appends a line as it is shown, with its number. at is what must be
// seen of a long line.
func (s *scanner) appendShown(t []byte, l line, sign byte, at int) []byte {
	t = append(strconv.AppendInt(t, int64(l.number), 10), sign)
	return append(s.appendLine(t, l, at), '\n')
}

// appendLine appends a line, or the part of a long one around a place.
func (s *scanner) appendLine(t []byte, l line, at int) []byte {
	if len(l.text) <= lineSize {
		return append(t, s.shown(l, 0, len(l.text))...)
	}
	from := 0
	if at > lineSize*2/3 {
		from = min(at-lineSize/3, len(l.text)-lineSize)
	}
	to := min(from+lineSize, len(l.text))
	for from > 0 && from < to && !utf8.RuneStart(l.text[from]) {
		from++
	}
	for to < len(l.text) && to > from && !utf8.RuneStart(l.text[to]) {
		to--
	}
	if from > 0 {
		t = append(t, "…"...)
	}
	t = append(t, s.shown(l, from, to)...)
	if to < len(l.text) {
		t = append(t, "… ["...)
		t = strconv.AppendInt(t, int64(len(l.text)), 10)
		t = append(t, " bytes]"...)
	}
	return t
}
