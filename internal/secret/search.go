package secret

import (
	"cmp"
	"slices"
)

// search finds the first of many texts, after Wu and Manber: it looks at two
// bytes at a time and, as long as they end no text's beginning, jumps ahead by
// almost the length of the shortest text. It doesn't change once made.
type search struct {
	window int              // length of the shortest text
	shift  [1 << 16]uint8   // by two bytes: how far the next candidate is at least
	ending map[uint16][]int // by two bytes: texts whose window ends with them
	first  [256][]int       // by first byte, for prefixes
	forms  []spelling       // longest first
}

func newSearch(forms []spelling) *search {
	if len(forms) == 0 {
		return nil
	}
	t := &search{forms: slices.Clone(forms), ending: map[uint16][]int{}, window: len(forms[0].text)}
	slices.SortStableFunc(t.forms, func(a, b spelling) int { return cmp.Compare(len(b.text), len(a.text)) })
	for _, f := range t.forms {
		t.window = min(t.window, len(f.text))
	}
	t.window = min(t.window, 200)
	for i := range t.shift {
		t.shift[i] = uint8(t.window - 1)
	}
	for n, f := range t.forms {
		t.first[f.text[0]] = append(t.first[f.text[0]], n)
		for j := 1; j < t.window; j++ {
			p := pair(f.text[j-1], f.text[j])
			t.shift[p] = min(t.shift[p], uint8(t.window-1-j))
			if j == t.window-1 {
				t.ending[p] = append(t.ending[p], n)
			}
		}
	}
	return t
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// next is the leftmost text in b at or after from, and of several there the
// longest; nil when there is none.
func (t *search) next(b []byte, from int) (int, *spelling) {
	for end := from + t.window - 1; end < len(b); {
		p := pair(b[end-1], b[end])
		if jump := t.shift[p]; jump > 0 {
			end += int(jump)
			continue
		}
		at := end - t.window + 1
		for _, n := range t.ending[p] {
			if text := t.forms[n].text; len(b)-at >= len(text) && string(b[at:at+len(text)]) == text {
				return at, &t.forms[n]
			}
		}
		end++
	}
	return len(b), nil
}

// open is where the end of b, from on, may be the beginning of a text that
// continues after b; len(b) when it can't be.
func (t *search) open(b []byte, from int) int {
	for at := max(from, len(b)-len(t.forms[0].text)+1); at < len(b); at++ {
		for _, n := range t.first[b[at]] {
			if text := t.forms[n].text; len(text) > len(b)-at && text[:len(b)-at] == string(b[at:]) {
				return at
			}
		}
	}
	return len(b)
}
