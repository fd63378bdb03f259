package chat

import (
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/screen"
)

// composer is the message that a person composes.
type composer struct{ text string }

func (c *composer) Text() string    { return c.text }
func (c *composer) Set(s string)    { c.text = s }
func (c *composer) Clear()          { c.text = "" }
func (c *composer) Insert(s string) { c.text += s }

// Key takes a key.
func (c *composer) Key(k screen.Key) {
	if k.Name == "backspace" {
		_, n := utf8.DecodeLastRuneInString(c.text)
		c.text = c.text[:len(c.text)-n]
		return
	}
	c.text += k.Text
}

// Lines are the message's lines, and where the cursor is.
func (c *composer) Lines() (lines []string, row, col int) {
	lines = strings.Split(c.text, "\n")
	return lines, len(lines) - 1, screen.Width(lines[len(lines)-1])
}
