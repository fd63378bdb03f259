package window

import (
	"cmp"
	"math"
	"slices"
)

// Of BM25: how much a word counts that a chunk has again, and how much a chunk's length.
const (
	saturation = 1.2
	byLength   = 0.75
)

// maxQuery is how many words of a question count.
const maxQuery = 128

// Index is what is remembered of a text: its chunks. It holds nothing of the text.
type Index struct {
	Chunks []Chunk
	terms  int // of all
}

// NewIndex cuts a text into chunks and counts their words.
func NewIndex(text string, limit int) *Index {
	x := &Index{Chunks: Split(text, limit)}
	for i := range x.Chunks {
		c := &x.Chunks[i]
		eachTerm(c.Of(text), func([]byte) { c.terms++ })
		x.terms += c.terms
	}
	return x
}

// Size is about how many bytes of memory the index takes.
func (x *Index) Size() int { return 64 + 40*len(x.Chunks) }

// Scores compares each chunk of the index's text with a question, by BM25. ideal is
// the sum of what the question's words are worth.
func (x *Index) Scores(text, query string) (scores []float64, ideal float64) {
	words := map[string]int{}
	eachTerm(query, func(term []byte) {
		if _, known := words[string(term)]; !known && len(words) < maxQuery {
			words[string(term)] = len(words)
		}
	})
	scores = make([]float64, len(x.Chunks))
	have := make([]int32, len(x.Chunks)*len(words)) // how often a chunk has a word
	in := make([]int, len(words))                   // chunks that have it
	for i, c := range x.Chunks {
		row := have[i*len(words) : (i+1)*len(words)]
		eachTerm(c.Of(text), func(term []byte) {
			if w, ok := words[string(term)]; ok {
				if row[w]++; row[w] == 1 {
					in[w]++
				}
			}
		})
	}
	all, mean := float64(len(x.Chunks)), float64(x.terms)/float64(max(1, len(x.Chunks)))
	worth := make([]float64, len(words))
	for w, n := range in {
		worth[w] = math.Log(1 + (all-float64(n)+0.5)/(float64(n)+0.5))
		ideal += worth[w]
	}
	for i, c := range x.Chunks {
		for w, n := range have[i*len(words) : (i+1)*len(words)] {
			if n > 0 {
				scores[i] += worth[w] * float64(n) * (saturation + 1) / (float64(n) + saturation*(1-byLength+byLength*float64(c.terms)/mean))
			}
		}
	}
	return scores, ideal
}

// Hit is a chunk that fits a question.
type Hit struct {
	Chunk     int     // its number, from 1
	Relevance float64 // 0 to 1
}

// Best are the chunks of the index's text whose relevance to a question is at least
// that, the best first, at most so many.
func (x *Index) Best(text, query string, least float64, most int) (hits []Hit) {
	scores, ideal := x.Scores(text, query)
	for i, s := range scores {
		if r := min(1, s/ideal); s > 0 && r >= least {
			hits = append(hits, Hit{i + 1, r})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Relevance, a.Relevance) })
	return hits[:min(len(hits), most)]
}
