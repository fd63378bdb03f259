package window

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// maxTerm is how many bytes of a word count; what is longer is data.
const maxTerm = 128

const (
	none = iota
	lower
	upper
	digit
	joint // an underscore: it is within a word, and between its parts
	alone // a word of its own, in scripts that have no spaces
)

func kindOf(r rune) int {
	switch {
	case r >= 'a' && r <= 'z':
		return lower
	case r >= 'A' && r <= 'Z':
		return upper
	case r >= '0' && r <= '9':
		return digit
	case r == '_':
		return joint
	case r < utf8.RuneSelf || r == utf8.RuneError:
		return none
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return alone
	case unicode.IsUpper(r):
		return upper
	case unicode.IsLetter(r), unicode.IsMark(r):
		return lower
	case unicode.IsDigit(r):
		return digit
	}
	return none
}

// eachTerm takes the words of a text in small letters, and identifiers also in their
// parts: parseHTTPRequest is that, parse, http and request. What take is given is
// overwritten afterwards.
func eachTerm(text string, take func([]byte)) { split(text, word{}, take) }

// eachWord is eachTerm without parts.
func eachWord(text string, take func([]byte)) { split(text, word{whole: true}, take) }

func split(text string, w word, take func([]byte)) {
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		i += n
		switch kind := kindOf(r); {
		case kind == none && w.last == none:
		case kind == none:
			w.end(take)
		case kind == alone:
			w.end(take)
			w.add(r, kind, none)
			w.end(take)
		case len(w.text) < maxTerm:
			next := none
			if i < len(text) && text[i] < utf8.RuneSelf {
				next = kindOf(rune(text[i]))
			}
			w.add(r, kind, next)
		}
	}
	w.end(take)
}

// word is one in the making.
type word struct {
	text  []byte
	parts []int // where parts begin
	last  int   // kind of the last letter
	whole bool  // parts don't matter
}

// add appends a letter. next is the kind of the one behind it: of two capitals the
// second begins a part if a small letter follows, as in HTTPRequest.
func (w *word) add(r rune, kind, next int) {
	begins := w.last != kind && (w.last != upper || kind != lower) || kind == upper && next == lower
	if begins && w.last != none && kind != joint && !w.whole {
		w.parts = append(w.parts, len(w.text))
	}
	w.text, w.last = utf8.AppendRune(w.text, unicode.ToLower(r)), kind
}

func (w *word) end(take func([]byte)) {
	whole := bytes.Trim(w.text, "_")
	if len(whole) > 0 {
		take(whole)
	}
	if len(w.parts) > 0 {
		from := 0
		for _, at := range append(w.parts, len(w.text)) {
			if p := bytes.Trim(w.text[from:at], "_"); len(p) > 0 && len(p) < len(whole) {
				take(p)
			}
			from = at
		}
	}
	w.text, w.parts, w.last = w.text[:0], w.parts[:0], none
}
