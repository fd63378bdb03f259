package screen

import "strings"

// history is what was sent before, and where in it the composer is.
type history struct {
	messages  []string // the newest last
	back      int      // how many messages back the composer shows; 0: its own draft
	own       draft    // what was composed when browsing began
	searching bool
	query     string
	found     int // the message that the search shows; -1: none fits
}

// SetHistory gives the messages that were sent before, the newest last.
func (c *Composer) SetHistory(messages []string) {
	c.history.messages, c.history.back = messages, 0
}

// Browsing reports whether the composer shows an older message, unchanged.
func (c *Composer) Browsing() bool { return c.history.back > 0 }

// Older shows the message before the one that is shown, and reports whether there is one.
func (c *Composer) Older() bool { return c.browse(c.history.back + 1) }

// Newer shows the message after the one that is shown; behind the newest comes what
// was composed when browsing began.
func (c *Composer) Newer() bool { return c.browse(c.history.back - 1) }

func (c *Composer) browse(back int) bool {
	h := &c.history
	if back < 0 || back > len(h.messages) {
		return false
	}
	if h.back == 0 {
		h.own = c.snapshot()
	}
	if back == 0 {
		c.draft = h.own
	} else {
		cells := split(h.messages[len(h.messages)-back])
		c.draft = draft{cells: cells, at: len(cells)}
	}
	h.back, c.typing = back, false
	c.list.close()
	return true
}

// Search begins to search the messages that were sent before. Keys are the search's
// until one is taken by Enter, Tab or a move, or it is left by Esc.
func (c *Composer) Search() {
	c.history.searching, c.history.query = true, ""
	c.history.find(len(c.history.messages))
}

// find looks for the newest message before one that contains the query.
func (h *history) find(before int) {
	for i := before - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.messages[i]), strings.ToLower(h.query)) {
			h.found = i
			return
		}
	}
	if before == len(h.messages) { // one that was found stays when nothing older fits
		h.found = -1
	}
}

// searches takes a key of the search.
func (c *Composer) searches(k Key) bool {
	h := &c.history
	switch {
	case k.Text != "":
		h.query += k.Text
		h.find(len(h.messages))
	case k.Name == "backspace":
		h.query = withoutLast(h.query)
		h.find(len(h.messages))
	case k.Name == "ctrl+r", k.Name == "up":
		h.find(h.found)
	case k.Name == "esc", k.Name == "ctrl+c", k.Name == "ctrl+g":
		h.searching = false
	default:
		h.searching = false
		if h.found >= 0 {
			c.browse(len(h.messages) - h.found)
		}
	}
	return true
}

func withoutLast(text string) string {
	cells := split(text)
	if len(cells) == 0 {
		return ""
	}
	return strings.TrimSuffix(text, cells[len(cells)-1].text)
}

// lines shows the search: its query with the cursor, and the message that was found.
func (h *history) lines(width int) (lines []string, row, col int) {
	query := &Composer{}
	query.Set("search: " + h.query)
	if len(h.messages) == 0 || h.found < 0 {
		query.Insert("  (nothing fits)")
		query.at -= len("  (nothing fits)")
		return query.Lines(width)
	}
	lines, row, col = query.Lines(width)
	found := &Composer{}
	found.Set(h.messages[h.found])
	below, _, _ := found.Lines(width)
	return append(lines, below...), row, col
}
