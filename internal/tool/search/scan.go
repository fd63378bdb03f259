//go:build unix

package search

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/workspace/fswalk"
)

const (
	window   = 256 << 10 // bytes of a file that are looked at at once
	longest  = 1 << 20   // bytes of one line that are searched
	maxPast  = 64 << 10  // bytes that are kept for the lines before a match
	lineSize = 300       // bytes of a line that are shown
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
	bytes   int64  // that were searched
	binary  bool
	long    bool // a line was too long to be searched to its end
	stopped bool // more matches may follow
	err     error
}

// scanner searches files one after the other. One goroutine owns it.
type scanner struct {
	order
	buf []byte

	// Of the file that is being searched:
	res      *result
	start    int // the lines before are searched, and kept as context
	end      int // of what was read
	number   int // of the line that begins at counted
	counted  int
	shown    int // the line after the last one shown
	follow   int // lines of context still to be shown
	lastShow int // place in buf after the last line shown
}

func newScanner(o order) *scanner {
	return &scanner{order: o, buf: make([]byte, window)}
}

// file searches one file.
func (s *scanner) file(e fswalk.Entry) (r result) {
	r.path = e.Path
	f, info, err := e.Open()
	if err != nil {
		r.err = err
		return r
	}
	defer f.Close()
	s.reader(f, info.Size(), &r)
	return r
}

// reader searches what a reader gives; size is a guess where it ends.
func (s *scanner) reader(f io.Reader, size int64, r *result) {
	s.res = r
	s.start, s.end, s.number, s.counted, s.shown, s.follow, s.lastShow = 0, 0, 1, 0, 0, 0, 0
	for {
		n, err := s.fill(f, size)
		r.bytes += int64(n)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			r.err = err
			return
		}
		if bytes.IndexByte(s.buf[s.end-n:s.end], 0) >= 0 {
			*r = result{path: r.path, bytes: r.bytes, binary: true}
			return
		}
		stop := s.end
		if !ended {
			stop = s.start + bytes.LastIndexByte(s.buf[s.start:s.end], '\n') + 1
		}
		if stop > s.start {
			if !s.region(stop) {
				return
			}
		} else if s.end-s.start >= longest {
			if ended = !s.skipLine(f); ended {
				return
			}
			continue
		}
		if ended {
			return
		}
		s.shift(stop)
	}
}

// fill reads on. At the end of the file it says so with what it has read.
func (s *scanner) fill(f io.Reader, size int64) (n int, err error) {
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for s.end < len(s.buf) && err == nil {
		var m int
		m, err = f.Read(s.buf[s.end:])
		n, s.end = n+m, s.end+m
		if err == nil && s.res.bytes+int64(n) == size {
			err = io.EOF
		}
	}
	return n, err
}

// shift drops what is searched, but for the lines that may be shown before a match.
func (s *scanner) shift(stop int) {
	keep := stop
	for range s.before {
		at := bytes.LastIndexByte(s.buf[:max(keep-1, 0)], '\n') + 1
		if stop-at > maxPast || keep == 0 {
			break
		}
		keep = at
	}
	if s.count(keep); s.counted > keep {
		s.number -= bytes.Count(s.buf[keep:s.counted], newline)
	}
	copy(s.buf, s.buf[keep:s.end])
	s.start, s.end, s.counted = stop-keep, s.end-keep, 0
	s.lastShow = max(s.lastShow-keep, 0)
	if len(s.buf) > window && s.end < window {
		s.buf = s.buf[:window:window]
	}
}

// count counts lines up to a place.
func (s *scanner) count(to int) {
	if to > s.counted {
		s.number += bytes.Count(s.buf[s.counted:to], newline)
		s.counted = to
	}
}

var newline = []byte{'\n'}

// region searches whole lines from start to stop; false ends the file.
func (s *scanner) region(stop int) bool {
	text := s.buf[:stop]
	for at := s.start; at < stop; {
		hit := s.m.seek(text, at)
		if hit >= stop {
			break
		}
		begin := max(bytes.LastIndexByte(text[:hit], '\n')+1, at)
		end := stop
		if n := bytes.IndexByte(text[hit:], '\n'); n >= 0 {
			end = hit + n
		}
		if s.m.re.Match(trimCR(text[begin:end])) {
			if s.res.matches++; !s.matched(begin, end) {
				return false
			}
		}
		at = end + 1
	}
	s.trail(stop)
	s.start = stop
	return true
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// matched shows a line that matches, with its context; false ends the file.
func (s *scanner) matched(begin, end int) bool {
	switch s.mode {
	case modeFiles:
		return false
	case modeCount:
		return true
	}
	s.trail(begin)
	from := begin
	for range s.before {
		if from <= s.lastShow {
			break
		}
		from = bytes.LastIndexByte(s.buf[:from-1], '\n') + 1
	}
	from = max(from, s.lastShow)
	s.count(from)
	if s.before+s.after > 0 && s.shown > 0 && s.number > s.shown {
		s.res.text = append(s.res.text, "--\n"...)
	}
	for from < begin {
		from = s.show(from, '-', -1)
	}
	at := 0
	if end-begin > lineSize {
		if loc := s.m.re.FindIndex(trimCR(s.buf[begin:end])); loc != nil {
			at = loc[0]
		}
	}
	s.show(begin, ':', at)
	s.follow = s.after
	s.res.ends = append(s.res.ends, len(s.res.text))
	if len(s.res.ends) >= s.most || len(s.res.text) >= s.room {
		s.res.stopped = true
		return false
	}
	return true
}

// trail shows the lines that follow a match, up to a place.
func (s *scanner) trail(to int) {
	for s.follow > 0 && s.lastShow < to && s.shown > 0 {
		s.follow--
		s.show(s.lastShow, '-', -1)
		s.res.ends[len(s.res.ends)-1] = len(s.res.text)
	}
}

// show writes the line that begins at a place, with its number, and gives the
// place of the next. at is what must be seen of a long line.
func (s *scanner) show(begin int, sign byte, at int) int {
	s.count(begin)
	end, next := s.end, s.end
	if n := bytes.IndexByte(s.buf[begin:s.end], '\n'); n >= 0 {
		end, next = begin+n, begin+n+1
	}
	t := strconv.AppendInt(s.res.text, int64(s.number), 10)
	t = appendLine(append(t, sign), trimCR(s.buf[begin:end]), at)
	s.res.text = append(t, '\n')
	s.shown, s.lastShow = s.number+1, next
	return next
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

// skipLine searches the beginning of a line that is too long and passes over
// the rest; false at the end of the file.
func (s *scanner) skipLine(f io.Reader) bool {
	s.res.long = true
	if !s.region(s.end) {
		return false
	}
	s.count(s.end)
	for {
		n, err := f.Read(s.buf)
		s.res.bytes += int64(n)
		if i := bytes.IndexByte(s.buf[:n], '\n'); i >= 0 {
			copy(s.buf, s.buf[i+1:n])
			s.start, s.end, s.counted, s.lastShow = 0, n-i-1, 0, 0
			s.number++
			return true
		}
		if err != nil {
			return false
		}
	}
}
