package process

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// maxLine bounds how far back a carriage return reaches.
const maxLine = 32 << 10

// TerminalText passes on what a terminal would show of what is written to it, as
// text: escape sequences and control characters are dropped, and of a line that
// is written again and again, like a progress bar, only the last form is left.
// It holds back the line that isn't finished; Flush passes that on.
type TerminalText struct {
	Dst io.Writer

	line  []byte
	back  bool // a carriage return came: what follows replaces the line
	state byte // of an escape sequence
	err   error
}

// States of Plain.
const (
	inText    = iota
	inEscape  // after ESC
	inControl // after ESC [: to a letter
	inString  // after ESC ] and the like: to BEL or ESC \
	inStringEscape
	inCharset // after ESC and an intermediate: one more
)

const esc, bel, del = 0x1b, 0x07, 0x7f

// Write takes all of b or fails for good.
func (p *TerminalText) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && p.err == nil {
		if p.state == inText {
			if k := plainText(b); k > 0 {
				p.text(b[:k])
				b = b[k:]
				continue
			}
		}
		p.control(b[0])
		b = b[1:]
	}
	if p.err != nil {
		return 0, p.err
	}
	return n, nil
}

// plainText is how many bytes at the start of b are no control characters.
func plainText(b []byte) int {
	for i, c := range b {
		if c < ' ' && c != '\t' && c != 0 || c == del {
			return i
		}
	}
	return len(b)
}

func (p *TerminalText) text(b []byte) {
	if p.back {
		p.line, p.back = p.line[:0], false
	}
	if p.line = append(p.line, b...); len(p.line) > maxLine {
		p.Flush() //nolint:errcheck // Write returns it
	}
}

func (p *TerminalText) control(c byte) {
	switch p.state {
	case inEscape:
		p.state = afterEscape(c)
		return
	case inControl:
		if c >= 0x40 && c <= 0x7e {
			p.state = inText
		}
		if c != esc { // a sequence that is cut off ends with the next one
			return
		}
	case inString:
		if c == esc {
			p.state = inStringEscape
		} else if c == bel || c == '\n' { // an unterminated string must not swallow everything
			p.state = inText
		}
		return
	case inStringEscape, inCharset:
		p.state = inText
		return
	}
	switch c {
	case esc:
		p.state = inEscape
	case '\n':
		p.line, p.back = append(p.line, '\n'), false
		p.Flush() //nolint:errcheck // Write returns it
	case '\r':
		p.back = true
	case '\b':
		_, size := utf8.DecodeLastRune(p.line)
		p.line = p.line[:len(p.line)-size]
	}
}

func afterEscape(c byte) byte {
	switch {
	case c == '[':
		return inControl
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return inString
	case c >= 0x20 && c <= 0x2f:
		return inCharset
	case c == esc:
		return inEscape
	}
	return inText
}

// Flush passes on the line that isn't finished.
func (p *TerminalText) Flush() error {
	if p.err == nil && len(p.line) > 0 {
		_, p.err = p.Dst.Write(p.line)
	}
	p.line, p.back = p.line[:0], false
	return p.err
}

// PlainText is b as Plain passes it on.
func PlainText(b []byte) []byte {
	var out bytes.Buffer
	p := TerminalText{Dst: &out}
	p.Write(b) //nolint:errcheck // a buffer takes everything
	p.Flush()  //nolint:errcheck // as above
	return out.Bytes()
}

// fewBytes are too few to tell.
const fewBytes = 32

// Binary reports whether the beginning of an output is no text: more than a tenth
// of it are bytes that text doesn't have.
func Binary(b []byte) bool {
	odd := 0
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			if utf8.FullRune(b[i:]) { // not just cut off
				odd++
			}
		case r < ' ' && !bytes.ContainsRune([]byte("\t\n\v\f\r\b\a\x1b"), r) || r == del:
			odd++
		}
		i += size
	}
	return len(b) >= fewBytes && odd*10 > len(b)
}
