package window

import (
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay/event"
)

// Long is the number of tokens from which on a model is given an excerpt of a text.
const Long = 8000

// What an excerpt has at most: about 6,000 tokens in all.
const (
	bestChunks = 3
	shownRows  = 50
	rowBytes   = 60
	shownBytes = 6 << 10 // of a chunk; only one of long lines has more
	linesBytes = 16 << 10
)

// Excerpt shows a text that is too long to be sent: its beginning, a list of its
// chunks, those that fit a question, and its end where that may be the question. source
// is the text's name for whoever reads on.
func (x *Index) Excerpt(source, text, query string, least float64, end bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[belay] This is too long to be shown: %d bytes, %d lines. Here are its beginning, its chunks, and the ones that fit the task. context_read with source %s reads any chunk or lines, or finds words.\n",
		len(text), x.Chunks[len(x.Chunks)-1].Last(), source)
	x.show(&b, text, 1, 0)
	x.list(&b, text)
	for _, h := range x.Best(text, query, least, bestChunks) {
		if h.Chunk > 1 && (!end || h.Chunk < len(x.Chunks)) {
			x.show(&b, text, h.Chunk, 0)
		}
	}
	if end && len(x.Chunks) > 1 {
		x.show(&b, text, len(x.Chunks), 0)
	}
	return b.String()
}

// Fitting shows the chunks of a text that fit a question, the best first, in at most so
// many bytes. more is how many others would fit the question.
func (x *Index) Fitting(text, query string, least float64, most int) (shown string, more int) {
	var b strings.Builder
	for _, h := range x.Best(text, query, least, len(x.Chunks)) {
		var one strings.Builder
		if x.show(&one, text, h.Chunk, 0); b.Len()+one.Len() > most {
			more++
			continue
		}
		b.WriteString(one.String())
	}
	return b.String(), more
}

// Question is what a model asks of a text: a chunk by its number, lines, or words.
// Without any it is which chunks there are.
type Question struct {
	Chunk       int // from 1
	Offset      int // bytes of the chunk that are left out
	Line, Until int // lines, from 1; Until 0 is the first one alone
	Words       string
}

// Answer is what a model reads of the index's text.
func (x *Index) Answer(text string, q Question) (string, error) {
	var b strings.Builder
	switch {
	case len(x.Chunks) == 0:
		return "it is empty", nil
	case q.Chunk > len(x.Chunks) || q.Chunk < 0:
		return "", fmt.Errorf("there is no chunk %d; there are %d", q.Chunk, len(x.Chunks))
	case q.Chunk > 0:
		if n := len(x.Chunks[q.Chunk-1].Of(text)); q.Offset < 0 || q.Offset >= n {
			return "", fmt.Errorf("the chunk has %d bytes", n)
		}
		x.show(&b, text, q.Chunk, q.Offset)
	case q.Line > 0:
		return x.lines(text, q.Line, max(q.Line, q.Until))
	case q.Words != "":
		hits := x.Best(text, q.Words, 0, bestChunks)
		if len(hits) == 0 {
			return "", errors.New("no chunk has any of these words")
		}
		for _, h := range hits {
			x.show(&b, text, h.Chunk, 0)
		}
	default:
		x.list(&b, text)
	}
	return b.String(), nil
}

// chunkMark is how a chunk begins where it is shown.
const chunkMark = "[chunk "

// show writes a chunk from an offset on.
func (x *Index) show(b *strings.Builder, text string, number, offset int) {
	c := x.Chunks[number-1]
	part := strings.ToValidUTF8(c.Of(text)[offset:], "")
	fmt.Fprintf(b, chunkMark+"%d of %d, lines %d-%d]\n", number, len(x.Chunks), c.Line, c.Last())
	shown := event.CutText(part, shownBytes)
	b.WriteString(strings.TrimSuffix(shown, "\n") + "\n")
	if len(shown) < len(part) {
		fmt.Fprintf(b, "[… %d more bytes: chunk %d, offset %d]\n", len(part)-len(shown), number, offset+len(shown))
	}
}

// list writes which chunks there are, many of them together, and how each begins.
func (x *Index) list(b *strings.Builder, text string) {
	b.WriteString("[chunks: their lines, and how they begin]\n")
	step := (len(x.Chunks) + shownRows - 1) / shownRows
	for i := 0; i < len(x.Chunks); i += step {
		j := min(i+step, len(x.Chunks)) - 1
		if fmt.Fprintf(b, "%d", i+1); j > i {
			fmt.Fprintf(b, "-%d", j+1)
		}
		begins := strings.TrimSpace(x.Chunks[i].Of(text))
		begins, _, _ = strings.Cut(begins, "\n")
		fmt.Fprintf(b, ": %d-%d: %s\n", x.Chunks[i].Line, x.Chunks[j].Last(), event.CutText(begins, rowBytes))
	}
}

// lines are lines of the text, as many as may be shown at once.
func (x *Index) lines(text string, from, to int) (string, error) {
	last := x.Chunks[len(x.Chunks)-1].Last()
	if from > last {
		return "", fmt.Errorf("there are %d lines", last)
	}
	to = min(to, last)
	var b strings.Builder
	for _, c := range x.Chunks {
		if c.Last() < from {
			continue
		}
		line := c.Line
		for l := range strings.Lines(c.Of(text)) {
			switch {
			case line < from:
			case line > to:
				return b.String(), nil
			case b.Len() > 0 && b.Len()+len(l) > linesBytes:
				fmt.Fprintf(&b, "[… lines %d-%d]\n", line, to)
				return b.String(), nil
			case len(l) > linesBytes:
				fmt.Fprintf(&b, "%s\n[… line %d has %d bytes]\n", event.CutText(l, linesBytes), line, len(l))
			default:
				b.WriteString(l)
			}
			line++
		}
	}
	return b.String(), nil
}

// asks bounds what of a long text counts as its question.
const asks = 500

// Ask is what of a person's text counts as a question: of a long one its beginning and
// its end, where people say what is to be done.
func Ask(text string) string {
	if len(text) <= 4*asks {
		return text
	}
	return text[:asks] + "\n" + text[len(text)-asks:]
}
