// Package tokens counts tokens offline: what is made for a model, once, as facts say
// it, and whole requests. Whole requests are counted by the vocabularies that OpenAI
// publishes and, for vendors that publish none, by a factor; for facts a rough count
// must do, which is the same whenever it is made. It promises that a program that
// counts only for facts loads no vocabulary, and that a text of any length costs
// bounded time. What was used is what the provider reports.
//
// count.go counts texts, picture.go pictures, estimate.go messages and requests.
package tokens

import (
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Default is the vocabulary used for models whose own isn't public.
const Default = "o200k_base"

// A text is counted in pieces, so that no text takes longer than its length; of
// one that is longer than maxExact evenly spaced samples are counted.
const (
	maxPiece = 4 << 10
	maxExact = 64 << 10
	samples  = maxExact / maxPiece
)

// vocabulary is a table of some megabytes that is made when it is first asked for.
type vocabulary struct {
	make func() *codec.Codec
	once sync.Once
	is   *codec.Codec
}

var (
	o200k  = vocabulary{make: codec.NewO200kBase}
	cl100k = vocabulary{make: codec.NewCl100kBase}
)

// named is a vocabulary by its name; one that isn't known is the default one.
func named(name string) *vocabulary {
	if name == "cl100k_base" {
		return &cl100k
	}
	return &o200k
}

func (v *vocabulary) load() *codec.Codec {
	v.once.Do(func() { v.is = v.make() })
	return v.is
}

// Count is the number of tokens of a text. It loads the vocabulary if it must, which
// takes some 25 ms and 7 MB once in a process. An unknown name is Default.
// Up to 64 KiB it is Whole, and beyond it is extrapolated from samples.
func Count(vocab, text string) int {
	c := named(vocab).load()
	if len(text) <= maxExact {
		return count(c, text)
	}
	n, stride := 0, (len(text)-maxPiece)/(samples-1)
	for i := range samples {
		n += count(c, text[i*stride:i*stride+maxPiece])
	}
	return int(int64(n) * int64(len(text)) / maxExact)
}

// Whole is the number of tokens of a text, all of which is counted. It is exact for a
// text in which letters or digits end every 4 KiB, and may else be off by two for each
// 4 KiB. Bytes that aren't UTF-8 count as they would be replaced.
func Whole(vocab, text string) int { return count(named(vocab).load(), text) }

func count(c *codec.Codec, text string) int {
	n := 0
	for text != "" {
		var p string
		p, text = piece(text)
		k, err := c.Count(p)
		if err != nil { // the splitter gave up
			k = Rough(p)
		}
		n += k
	}
	return n
}

// piece cuts the beginning off a long text: where no token goes over the cut if there
// is such a place, else between two characters.
func piece(text string) (head, rest string) {
	if len(text) <= maxPiece {
		return text, ""
	}
	at := maxPiece
	for i := at - 1; i > 0; i-- {
		if apart(text[i-1], text[i]) {
			return text[:i], text[i:]
		}
	}
	for at > maxPiece-utf8.UTFMax && !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at], text[at:]
}

// apart reports whether no token has both of two bytes that follow each other: the
// vocabularies split behind a run of letters or of digits, whatever follows, but for an
// apostrophe.
func apart(a, b byte) bool {
	x, y := kindOf(a), kindOf(b)
	if x == capital {
		x = letter
	}
	if y == capital {
		y = letter
	}
	return (x == letter || x == digit) && x != y && b < utf8.RuneSelf && b != '\''
}

// Rough is about the number of tokens of a text, without a vocabulary and in one
// pass. Prose in English and code come out within a fifth of Default's count,
// other languages too high.
func Rough(text string) int {
	var s Sum
	s.Add(text)
	return s.Rough()
}

// Sum counts a text that comes in pieces as it would be counted whole. The zero value is
// the empty text.
type Sum struct {
	quarters int  // of a token
	run      byte // the kind of the last byte; 0: there is none
	length   int  // of the run so far
}

// Add takes the next piece.
func (s *Sum) Add(piece string) {
	quarters, run, length := s.quarters, s.run, s.length
	for i := range len(piece) {
		b := piece[i]
		k := kindOf(b)
		if k != run {
			run, length = k, 0
		}
		quarters += cost(k, length)
		length++
	}
	*s = Sum{quarters, run, length}
}

// Rough is what the function Rough says of the text so far.
func (s *Sum) Rough() int {
	if s.run == 0 {
		return 0
	}
	return max(1, (s.quarters+3)/4)
}

// Text is what the function Text says of the text so far.
func (s *Sum) Text() int64 { return perMessage + int64(s.Rough()) }

const (
	letter = iota + 1
	capital
	digit
	blank
	newline
	mark
	lead // of a character that isn't ASCII
	trail
)

func kindOf(b byte) byte {
	switch {
	case b >= 'a' && b <= 'z':
		return letter
	case b >= 'A' && b <= 'Z':
		return capital
	case b >= '0' && b <= '9':
		return digit
	case b == ' ' || b == '\t' || b == '\r':
		return blank
	case b == '\n':
		return newline
	case b < 0x80:
		return mark
	case b >= 0xc0:
		return lead
	}
	return trail
}

// cost is what a byte of a run adds, in quarters of a token.
func cost(kind byte, length int) int {
	switch kind {
	case letter: // a word is a token, a long one more
		switch {
		case length == 0:
			return 4
		case length >= 7 && length%4 == 3:
			return 4
		}
	case capital: // begins a word of its own, or is an abbreviation
		if length%3 == 0 {
			return 2
		}
	case digit:
		if length%3 == 0 {
			return 4
		}
	case blank: // one belongs to the word behind it, more are a token
		if length == 1 {
			return 4
		}
	case newline:
		if length == 0 {
			return 3
		}
	case mark:
		if length%2 == 0 {
			return 3
		}
	case lead:
		return 3
	case trail:
		if length == 1 {
			return 1
		}
	}
	return 0
}
