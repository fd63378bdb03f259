package window

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/tokens"
)

// Use follows what a model is given and what it makes of it. An item counts as cited if
// a later answer or argument has its path, or two of its words that nothing showed
// before: what was used without a trace counts as unused.
type Use struct {
	items []item
	paths map[string][]int // items by the paths of files that they show
	calls map[belay.CallID]call
	owner map[uint64]int // of a word, by its hash: the item that showed it first, from 1; 0: something else did
}

// Bounds of what tells an item.
const (
	leastWord   = 6 // characters
	leastPath   = 4 // bytes; a shorter path may be any word
	leastShared = 2
	maxItemName = 80 // bytes
)

type item struct {
	belay.GivenItem
	cited bool
}

type call struct{ name, path string }

// Take follows the next message. given is whether what it shows counts as given.
func (u *Use) Take(m belay.Message, given bool) {
	if u.owner == nil {
		u.paths, u.calls, u.owner = map[string][]int{}, map[belay.CallID]call{}, map[uint64]int{}
	}
	if m.Role == belay.RoleAssistant {
		u.said(m)
		return
	}
	for _, p := range m.Flat().Parts {
		switch {
		case p.Result != nil && given:
			c := u.calls[p.Result.ID]
			u.give(strings.TrimSpace(cmp.Or(p.Result.Name, c.name)+" "+c.path), c.path, p.Result.Text)
		case p.Result != nil:
			u.show(p.Result.Text, 0)
		case p.Whole != nil && given:
			u.chunks(p.Text)
		default:
			u.show(p.Text, 0)
		}
	}
}

// chunks takes an excerpt: each chunk that it shows is an item.
func (u *Use) chunks(text string) {
	head, rest, _ := strings.Cut(text, chunkMark)
	u.show(head, 0)
	for rest != "" {
		var c string
		c, rest, _ = strings.Cut(rest, "\n"+chunkMark)
		name, _, _ := strings.Cut(c, "\n")
		u.give(chunkMark[1:]+strings.TrimSuffix(name, "]"), "", c)
	}
}

// give adds an item.
func (u *Use) give(name, path, text string) {
	u.items = append(u.items, item{GivenItem: belay.GivenItem{Name: event.CutText(name, maxItemName), Tokens: int64(tokens.Rough(text))}})
	if len(path) >= leastPath {
		u.paths[path] = append(u.paths[path], len(u.items)-1)
	}
	u.show(text, len(u.items))
}

// show notes which words are known from now on, and by whom.
func (u *Use) show(text string, by int) {
	eachWord(text, func(word []byte) {
		if h := hash(word); utf8.RuneCount(word) >= leastWord {
			if _, known := u.owner[h]; !known {
				u.owner[h] = by
			}
		}
	})
}

// said marks the items that an answer cites, and takes its calls.
func (u *Use) said(m belay.Message) {
	var all strings.Builder
	for _, p := range m.Parts {
		all.WriteString(p.Text + "\n")
		if p.Call == nil {
			continue
		}
		all.Write(p.Call.Args)
		var args struct{ Path string }
		_ = json.Unmarshal(p.Call.Args, &args) // a call without a path has none
		u.calls[p.Call.ID] = call{p.Call.Name, args.Path}
	}
	text := all.String()
	for path, items := range u.paths {
		if strings.Contains(text, path) {
			for _, i := range items {
				u.items[i].cited = true
			}
			delete(u.paths, path)
		}
	}
	shared, told := map[int]int{}, map[uint64]bool{}
	eachWord(text, func(word []byte) {
		h := hash(word)
		if by := u.owner[h]; by > 0 && !told[h] {
			told[h] = true
			if shared[by]++; shared[by] == leastShared {
				u.items[by-1].cited = true
			}
		}
	})
	u.show(text, 0)
}

// Sum is the use so far.
func (u *Use) Sum() (s belay.ContextUse) {
	for _, it := range u.items {
		s.Given += it.Tokens
		if it.cited {
			s.Cited += it.Tokens
			continue
		}
		s.Uncited = append(s.Uncited, it.GivenItem)
	}
	s.Uncited = Largest(s.Uncited)
	return s
}

// Largest are the items of most tokens, as many as are told.
func Largest(items []belay.GivenItem) []belay.GivenItem {
	slices.SortStableFunc(items, func(a, b belay.GivenItem) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return slices.Clip(items[:min(len(items), belay.MaxUncited)])
}

// hash is FNV-1a.
func hash(word []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range word {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}
