package chat

import (
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/screen"
)

// files are the names that "@" completes, and the messages that Up brings back.
type files struct {
	names []string // of the workspace; nil: not read yet
	said  []string // messages of people in this workspace, the newest last
	asked bool     // the names are being read
}

// maxOffered is how many candidates are offered for a word.
const maxOffered = 50

// completions offers what completes the word that is being typed.
func (c typing) completions() {
	w, ok := c.comp.Completing()
	if !ok || c.entry != nil {
		return
	}
	if w.Sign == '/' {
		c.comp.Offer(w, commandsLike(w.Text))
		return
	}
	if c.files.names != nil {
		c.comp.Offer(w, filesLike(c.files.names, w.Text))
	}
	if w.Text == "" && !c.files.asked { // each "@" sees the files that there are by then
		c.files.asked = true
		dir := c.conv.workspace
		c.jobs.start(func(ctx context.Context) func() {
			names, err := c.Desk.Files(ctx, dir)
			return func() {
				c.files.asked = false
				if err != nil {
					return // then nothing is completed
				}
				c.files.names = names
				if w, ok := c.comp.Completing(); ok && w.Sign == '@' {
					c.comp.Offer(w, filesLike(names, w.Text))
				}
			}
		})
	}
}

// filesLike are the names that have the characters of a text in its order, the closest
// first.
func filesLike(names []string, text string) (all []screen.Candidate) {
	type scored struct {
		name  string
		score int
	}
	var found []scored
	for _, n := range names {
		if s, ok := likeness(strings.ToLower(n), strings.ToLower(text)); ok {
			found = append(found, scored{n, s})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	for _, f := range found[:min(len(found), maxOffered)] {
		all = append(all, screen.Candidate{Text: f.name})
	}
	return all
}

// likeness is how close a name comes to a text: whole pieces and the file's own name
// count, length counts against it. false: it doesn't have the characters in order.
func likeness(name, text string) (score int, ok bool) {
	base := strings.LastIndexByte(name, '/') + 1
	switch i := strings.Index(name[base:], text); {
	case i == 0:
		score = 1000
	case i > 0:
		score = 500
	case strings.Contains(name, text):
		score = 250
	default:
		rest := name
		for _, r := range text {
			at := strings.IndexRune(rest, r)
			if at < 0 {
				return 0, false
			}
			rest = rest[at+1:]
		}
	}
	return score - len(name), true
}
