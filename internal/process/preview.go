package process

import "unicode/utf8"

// Preview keeps the head and the tail of what is written to it, and counts.
// The zero value keeps nothing but the count; it uses constant memory.
type Preview struct {
	Head, Tail int // bytes to keep of each

	head []byte
	tail []byte // ring once it is full
	next int    // where the ring continues
	n    int64
}

// Write never fails.
func (p *Preview) Write(b []byte) (int, error) {
	n := len(b)
	p.n += int64(n)
	if k := min(p.Head-len(p.head), len(b)); k > 0 {
		p.head = append(p.head, b[:k]...)
		b = b[k:]
	}
	if over := len(b) - p.Tail; over > 0 {
		b = b[over:]
		p.tail, p.next = p.tail[:0], 0
	}
	if k := min(p.Tail-len(p.tail), len(b)); k > 0 {
		p.tail = append(p.tail, b[:k]...)
		b = b[k:]
	}
	for len(b) > 0 {
		k := copy(p.tail[p.next:], b)
		b = b[k:]
		p.next = (p.next + k) % p.Tail
	}
	return n, nil
}

// Len is how many bytes were written.
func (p *Preview) Len() int64 { return p.n }

// Whole reports whether nothing is left out.
func (p *Preview) Whole() bool { return p.n <= int64(len(p.head)+len(p.tail)) }

// Parts are the head, how many bytes are left out, and the tail. Head and tail
// are cut where a character ends.
func (p *Preview) Parts() (head []byte, left int64, tail []byte) {
	tail = append(append([]byte{}, p.tail[p.next:]...), p.tail[:p.next]...)
	if p.Whole() {
		return append(append([]byte{}, p.head...), tail...), 0, nil
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
