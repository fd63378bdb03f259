package screen

import (
	"slices"
	"strings"
	"unicode"
)

// Word is what is being typed and can be completed: a file behind "@", a command
// behind "/" at the beginning of the message.
type Word struct {
	Sign rune   // '@' or '/'
	Text string // behind the sign, up to the cursor
}

// Candidate completes a word.
type Candidate struct {
	Text   string // instead of the word's text; one that ends in "/" can be completed further
	Detail string // says more about it
}

// list is what completes the word at the cursor.
type list struct {
	word       Word // the zero value: nothing can be completed
	offered    Word // that the candidates are for
	candidates []Candidate
	chosen     int
	dismissed  bool // for as long as this word is typed
}

// maxCandidates is how many candidates are shown at a time.
const maxCandidates = 8

// refresh is called with the word that is at the cursor now.
func (l *list) refresh(w Word) {
	if w == l.word {
		return
	}
	if w.Sign != l.word.Sign {
		*l = list{}
	}
	l.word = w
}

func (l *list) close() { *l = list{} }

// Completing returns the word at the cursor that can be completed. The caller finds
// candidates for it, beside, and gives them to Offer.
func (c *Composer) Completing() (w Word, ok bool) {
	return c.list.word, c.list.word.Sign != 0 && !c.list.dismissed
}

// Offer gives the candidates of a word, the best first. They are for nothing when
// another word is at the cursor meanwhile.
func (c *Composer) Offer(w Word, candidates []Candidate) {
	if w != c.list.word {
		return
	}
	c.list.offered, c.list.candidates, c.list.chosen = w, candidates, 0
}

// Captures reports whether a key is for the composer whatever else it means: the
// history is searched, or the key chooses among candidates.
func (c *Composer) Captures(key string) bool {
	if c.history.searching {
		return true
	}
	if !c.list.open() {
		return false
	}
	switch key {
	case "up", "down", "tab", "esc", "ctrl+p", "ctrl+n":
		return true
	case "enter": // sends the message if the word is whole, or nothing is known of it yet
		return c.list.offered == c.list.word && !slices.ContainsFunc(c.list.candidates, func(one Candidate) bool { return one.Text == c.list.word.Text })
	}
	return false
}

func (l *list) open() bool { return l.word.Sign != 0 && !l.dismissed && len(l.candidates) > 0 }

// chooses takes a key of the list.
func (c *Composer) chooses(key string) bool {
	l := &c.list
	switch n := len(l.candidates); key {
	case "up", "ctrl+p":
		l.chosen = (l.chosen + n - 1) % n
	case "down", "ctrl+n":
		l.chosen = (l.chosen + 1) % n
	case "esc":
		l.dismissed = true
	default:
		if l.offered != l.word {
			return true // what is shown is for a word that was typed before
		}
		c.complete(l.candidates[l.chosen].Text)
	}
	return true
}

// complete replaces the word at the cursor.
func (c *Composer) complete(text string) {
	word := c.list.word
	c.change()
	from := c.at - len(split(word.Text))
	if !strings.HasSuffix(text, "/") {
		text += " "
	}
	added := split(text)
	c.cells = slices.Replace(c.cells, from, c.at, added...)
	c.at = from + len(added)
	c.list.close()
	c.moved()
}

// List returns the rows that show the candidates, the chosen one marked by mark and the
// others by as many spaces. It is empty when nothing can be completed.
func (c *Composer) List(width int, mark string) []string {
	l := &c.list
	if !l.open() || c.history.searching {
		return nil
	}
	from := max(0, min(l.chosen-maxCandidates/2, len(l.candidates)-maxCandidates))
	shown := l.candidates[from:min(from+maxCandidates, len(l.candidates))]
	wide := 0
	for _, one := range shown {
		wide = max(wide, Width(one.Text))
	}
	lines := make([]string, len(shown))
	for i, one := range shown {
		head := strings.Repeat(" ", Width(mark))
		if from+i == l.chosen {
			head = mark
		}
		line := head + string(l.word.Sign) + clean(one.Text)
		if one.Detail != "" {
			line += strings.Repeat(" ", wide-Width(one.Text)+2) + clean(one.Detail)
		}
		lines[i] = Cut(line, width)
	}
	return lines
}

// clean returns text as the composer shows it.
func clean(text string) string {
	var b strings.Builder
	for _, one := range split(text) {
		b.WriteString(one.shown())
	}
	return b.String()
}

// wordAt returns the word before the cursor that can be completed.
func (c *Composer) wordAt() Word {
	from := c.at
	for from > 0 && c.cells[from-1].label == "" && !strings.ContainsFunc(c.cells[from-1].text, unicode.IsSpace) {
		from--
	}
	var b strings.Builder
	for _, one := range c.cells[from:c.at] {
		b.WriteString(one.text)
	}
	switch text := b.String(); {
	case strings.HasPrefix(text, "@"):
		return Word{Sign: '@', Text: text[1:]}
	case strings.HasPrefix(text, "/") && from == 0:
		return Word{Sign: '/', Text: text[1:]}
	}
	return Word{}
}
