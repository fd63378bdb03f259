package jcs

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string literal; the opening quote is next.
func (p *parser) text() (string, error) {
	open := p.pos
	p.pos++
	var b strings.Builder
	run := p.pos // start of characters that stand for themselves
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == '"':
			b.Write(p.src[run:p.pos])
			p.pos++
			return b.String(), nil
		case c == '\\':
			b.Write(p.src[run:p.pos])
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			run = p.pos
		case c < 0x20:
			return "", p.fail(Syntax, p.pos, "control character %#02x inside a string must be escaped", c)
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.src[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fail(Encoding, p.pos, "byte %#02x inside a string is not UTF-8", c)
			}
			p.pos += size
		}
	}
	return "", p.fail(Syntax, open, "a string has no closing quote")
}

// escape reads one escape; the backslash is next. A surrogate pair is one.
func (p *parser) escape() (rune, error) {
	at := p.pos
	p.pos++
	if p.pos >= len(p.src) {
		return 0, p.fail(Syntax, at, "the text ends inside an escape")
	}
	c := p.src[p.pos]
	p.pos++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, p.fail(Syntax, at, `a backslash must be followed by one of "\/bfnrtu`)
	}
	r, ok := p.hex4()
	if !ok {
		return 0, p.fail(Syntax, at, `\u must be followed by four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if p.take('\\') && p.take('u') {
		if low, ok := p.hex4(); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return full, nil
			}
		}
	}
	return 0, p.fail(Encoding, at, `\u%04x is half of a surrogate pair`, r)
}

func (p *parser) hex4() (rune, bool) {
	if len(p.src)-p.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.pos : p.pos+4] {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if c < '0' || d < 0 || c < 'A' && c > '9' {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	p.pos += 4
	return r, true
}

// appendString writes s as RFC 8785 spells it: only what must be escaped is.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			dst = append(dst, c)
			continue
		}
		if j := strings.IndexByte("\"\\\b\f\n\r\t", c); j >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[j])
			continue
		}
		dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(dst, '"')
}

// compareUTF16 orders strings by their UTF-16 code units, as RFC 8785 sorts
// keys. It differs from the order of bytes where one side is beyond the basic
// plane and the other above the surrogates.
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		// A lead byte of four (0xF0 and up) is a surrogate in UTF-16, below
		// U+E000…U+FFFF, whose lead bytes are 0xEE and 0xEF.
		if x >= 0xF0 && (y == 0xEE || y == 0xEF) {
			return -1
		}
		if y >= 0xF0 && (x == 0xEE || x == 0xEF) {
			return 1
		}
		if x < y {
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}
