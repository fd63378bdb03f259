package screen

import (
	"encoding/base64"
	"strings"
	"unicode"
)

// Bell makes the terminal ring.
const Bell = "\a"

// Notification returns the sequence by which a terminal shows a notification (OSC 9).
func Notification(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	return "\x1b]9;" + text + "\a"
}

// Copy returns the sequence by which a terminal puts a text into the clipboard (OSC 52).
func Copy(text string) string {
	return "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
}

// Send writes a sequence that moves and prints nothing, such as Bell, with the next
// frame.
func (s *Screen) Send(sequence string) { s.change(func() { s.sent += sequence }) }
