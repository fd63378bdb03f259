package process

import (
	"slices"
	"unicode/utf8"
)

// Preview keeps the head and the tail of what is written to it, and counts.
// The zero value keeps nothing but the count; it uses constant memory.
type Preview struct {
	Head, Tail int // bytes to keep of each

	head []byte
	tail []byte // up to twice as much, so that it isn't moved with each write
	n    int64
}

// Write never fails.
func (p *Preview) Write(b []byte) (int, error) {
	p.n += int64(len(b))
	k := min(p.Head-len(p.head), len(b))
	p.head, p.tail = append(p.head, b[:k]...), append(p.tail, b[k:]...)
	if over := len(p.tail) - p.Tail; over > p.Tail {
		p.tail = append(p.tail[:0], p.tail[over:]...)
	}
	return len(b), nil
}

// Parts are the head, how many bytes are left out, and the tail. Head and tail
// are cut where a character ends.
func (p *Preview) Parts() (head []byte, left int64, tail []byte) {
	tail = p.tail[max(0, len(p.tail)-p.Tail):]
	if p.n == int64(len(p.head)+len(tail)) {
		return slices.Concat(p.head, tail), 0, nil
	}
	head = p.head[:WholeRunes(p.head)]
	tail = cutStart(tail)
	return head, p.n - int64(len(head)) - int64(len(tail)), tail
}

// WholeRunes is how many bytes of b end where a character ends: all of them,
// unless b stops in the middle of one.
func WholeRunes(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}

// cutStart drops the rest of a character at the start of b.
func cutStart(b []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
