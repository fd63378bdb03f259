// Package window says what of a long text a model is given. It promises that a text is
// cut between lines only, that the same text and question give the same choice
// everywhere, and that no text takes more memory than its chunks, or more time than
// its length.
//
// chunk.go cuts texts, term.go finds their words, relevance.go compares chunks with a
// question, excerpt.go shows a text that is too long to be sent.
package window

import (
	"strings"

	"github.com/belay-run/belay/internal/model/tokens"
)

// ChunkTokens is about how many tokens a chunk of a text has.
const ChunkTokens = 1000

// Packer puts things into groups, in order and whole, so that no group is larger than
// its limit. One thing that is larger is a group of its own.
type Packer struct {
	Limit int
	size  int // of the group so far
	begun bool
}

// Add takes a thing of a size and reports whether it begins a group.
func (p *Packer) Add(size int) bool {
	if p.begun && p.size+size <= p.Limit {
		p.size += size
		return false
	}
	p.begun, p.size = true, size
	return true
}

// Chunk is a run of whole lines of a text.
type Chunk struct {
	From, To    int // bytes
	Line, Lines int // its first one, from 1, and how many
	terms       int
}

// Last is the chunk's last line.
func (c Chunk) Last() int { return c.Line + c.Lines - 1 }

// Of is the chunk's part of its text.
func (c Chunk) Of(text string) string { return text[c.From:c.To] }

// Split cuts a text into chunks of at most so many tokens, as facts count them. A line
// that has more is a chunk of its own.
func Split(text string, limit int) (all []Chunk) {
	p := Packer{Limit: limit}
	for at, line := 0, 1; at < len(text); line++ {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if p.Add(tokens.Rough(text[at:end])) {
			all = append(all, Chunk{From: at, Line: line})
		}
		c := &all[len(all)-1]
		c.To, c.Lines = end, c.Lines+1
		at = end
	}
	return all
}
