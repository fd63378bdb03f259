package screen

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// typed gives a composer keys by name; a name of one character is typed.
func typed(c *Composer, names ...string) {
	for _, name := range names {
		k := Key{Name: name}
		if utf8.RuneCountInString(name) == 1 {
			k.Text = name
		} else if text, ok := strings.CutPrefix(name, "text:"); ok {
			for _, r := range text {
				c.Key(Key{Name: string(r), Text: string(r)})
			}
			continue
		}
		c.Key(k)
	}
}

// shows returns the rows of a composer, with "|" at the cursor.
func shows(c *Composer, width int) string {
	lines, row, col := c.Lines(width)
	at, x := 0, 0
	for at < len(lines[row]) && x < col {
		one := split(lines[row][at:])[0]
		at, x = at+len(one.text), x+Width(one.text)
	}
	lines[row] = lines[row][:at] + "|" + lines[row][at:]
	return strings.Join(lines, "/")
}

// TestEditing: what keys make of a message.
func TestEditing(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"text:hello wide world", "ctrl+left", "backspace", "x"}, "hello widex|world"},
		{[]string{"text:one two", "alt+b", "alt+d"}, "one |"},
		{[]string{"text:one two", "ctrl+w", "text:three"}, "one three|"},
		{[]string{"text:one", "alt+enter", "text:two", "home", "up"}, "|one/two"},
		{[]string{"text:one", "ctrl+j", "text:two", "up", "ctrl+k"}, "one|two"},
		{[]string{"text:one two", "ctrl+u", "text:x", "ctrl+y"}, "xone two|"},
		{[]string{"text:one two", "ctrl+a", "delete", "ctrl+d", "right", "ctrl+e"}, "e two|"},
		{[]string{"text:abc", "ctrl+w", "ctrl+_"}, "abc|"},
		{[]string{"text:one ", "text:two", "ctrl+_"}, "one |"},
		{[]string{"ctrl+_", "backspace", "delete", "up", "down"}, "|"},
		{[]string{"e", "\u0301", "x", "left", "backspace"}, "|x"},
		{[]string{"界", "界", "left"}, "界|界"},
		{[]string{"text:abcdefghijklmnopqrstuvwxy", "up"}, "abcde|fghijklmnopqrst/uvwxy"},
		{[]string{"text:abcdefghijklmnopqrstuvwxy", "up", "down", "down"}, "abcdefghijklmnopqrst/uvwxy|"},
		{[]string{"text:abcdefghijklmnopqrst"}, "abcdefghijklmnopqrst|"},
	} {
		e := &Composer{}
		e.Lines(20)
		typed(e, c.keys...)
		if got := shows(e, 20); got != c.want {
			t.Errorf("%q: %q, want %q", c.keys, got, c.want)
		}
	}
}

// TestAKeyOfNobody is told apart from one that edits.
func TestAKeyOfNobody(t *testing.T) {
	c := &Composer{}
	if c.Key(Key{Name: "f5"}) || !c.Key(Key{Name: "left"}) || !c.Key(Key{Name: "a", Text: "a"}) {
		t.Error("a key was taken, or wasn't")
	}
}

// TestPastes: a long one is a chip and is sent whole, a short one is text.
func TestPastes(t *testing.T) {
	ten := strings.Repeat("line\n", 10)
	c := &Composer{}
	c.Paste(ten)
	if c.Text() != ten || len(c.cells) != 50 {
		t.Errorf("ten lines: %q", shows(c, 80))
	}
	c.Clear()
	long := strings.Repeat("line\t\x1b[31m\n", 124)
	typed(c, "text:see: ")
	c.Paste(long)
	c.Paste(strings.Repeat("x", 1<<20))
	if got := shows(c, 80); got != "see: [pasted 124 lines][pasted 1048576 characters]|" {
		t.Errorf("%q", got)
	}
	if c.Text() != "see: "+long+strings.Repeat("x", 1<<20) {
		t.Errorf("the text has %d bytes", len(c.Text()))
	}
	kept := c.Draft()
	typed(c, "backspace", "left", "ctrl+a", "delete")
	if got := shows(c, 80); got != "|ee: [pasted 124 lines]" {
		t.Errorf("%q", got)
	}
	c.Restore(kept)
	if got := shows(c, 80); !strings.HasSuffix(got, " characters]|") {
		t.Errorf("%q", got)
	}
}

// TestNothingComposedControlsTheTerminal: what isn't visible has a sign.
func TestNothingComposedControlsTheTerminal(t *testing.T) {
	c := &Composer{}
	c.Insert("a\x1b[2J\x07\u009b1m\u202eb\tc\xff\x7fd")
	if got := shows(c, 80); got != "a␛[2J␇\uFFFD1m\uFFFDb    c\uFFFD␡d|" {
		t.Errorf("%q", got)
	}
}

// TestOlderMessages: browsing keeps what was being composed.
func TestOlderMessages(t *testing.T) {
	c := &Composer{}
	if c.Older() || c.Newer() {
		t.Error("an empty history has a message")
	}
	c.SetHistory([]string{"first", "second"})
	typed(c, "text:mine")
	c.Older()
	c.Older()
	if got := shows(c, 80); got != "first|" || !c.Browsing() || c.Older() {
		t.Errorf("%q", got)
	}
	c.Newer()
	c.Newer()
	if got := shows(c, 80); got != "mine|" || c.Browsing() || c.Newer() {
		t.Errorf("%q", got)
	}
	c.Older()
	typed(c, "!")
	if got := shows(c, 80); got != "second!|" || c.Browsing() {
		t.Errorf("%q", got)
	}
}

// TestSearchingMessages: Ctrl+R finds the newest that contains the query, and again the
// one before it.
func TestSearchingMessages(t *testing.T) {
	c := &Composer{}
	c.SetHistory([]string{"fix the test", "Test it", "other"})
	typed(c, "text:mine")
	c.Search()
	if !c.Captures("enter") || !c.Captures("esc") {
		t.Error("the search doesn't have the keys")
	}
	typed(c, "text:test")
	if got := shows(c, 80); got != "search: test|/Test it" {
		t.Errorf("%q", got)
	}
	typed(c, "ctrl+r", "ctrl+r")
	if got := shows(c, 80); got != "search: test|/fix the test" {
		t.Errorf("%q", got)
	}
	typed(c, "q")
	if got := shows(c, 80); got != "search: testq|  (nothing fits)" {
		t.Errorf("%q", got)
	}
	typed(c, "backspace", "enter")
	if got := shows(c, 80); got != "Test it|" || c.Captures("enter") {
		t.Errorf("%q", got)
	}
	c.Set("mine")
	c.Search()
	typed(c, "esc")
	if got := shows(c, 80); got != "mine|" {
		t.Errorf("%q", got)
	}
}

// TestCompletion: candidates come when they come; those of another word are for nothing.
func TestCompletion(t *testing.T) {
	c := &Composer{}
	typed(c, "text:see @in")
	w, ok := c.Completing()
	if !ok || w != (Word{'@', "in"}) || c.Captures("tab") {
		t.Fatalf("%v, %v", w, ok)
	}
	c.Offer(w, []Candidate{{Text: "internal/"}, {Text: "index.go", Detail: "a file"}})
	if got := c.List(30, "> "); !slices.Equal(got, []string{"> @internal/", "  @index.go   a file"}) {
		t.Errorf("%q", got)
	}
	typed(c, "down", "enter")
	if got := shows(c, 80); got != "see @index.go |" || c.Captures("tab") {
		t.Errorf("%q", got)
	}
	typed(c, "text:@int", "t")
	c.Offer(Word{'@', "int"}, []Candidate{{Text: "internal/"}})
	if c.Captures("tab") {
		t.Error("candidates of another word were taken")
	}
	typed(c, "backspace")
	c.Offer(Word{'@', "int"}, []Candidate{{Text: "internal/"}})
	typed(c, "e") // the list stays while the next one is looked for, but nothing is taken from it
	typed(c, "tab")
	if got := shows(c, 80); got != "see @index.go @inte|" || c.Captures("enter") {
		t.Errorf("%q", got)
	}
	c.Offer(Word{'@', "inte"}, []Candidate{{Text: "internal/"}})
	typed(c, "tab")
	if w, _ := c.Completing(); w != (Word{'@', "internal/"}) {
		t.Errorf("a folder ends the word: %v", w)
	}
	typed(c, "esc")
	c.Clear()
	typed(c, "text:/he")
	w, _ = c.Completing()
	c.Offer(w, []Candidate{{Text: "help"}})
	if w != (Word{'/', "he"}) || !c.Captures("enter") {
		t.Errorf("%v", w)
	}
	typed(c, "text:lp")
	c.Offer(Word{'/', "help"}, []Candidate{{Text: "help"}})
	if c.Captures("enter") {
		t.Error("a whole command can't be sent")
	}
	typed(c, "esc")
	if _, ok := c.Completing(); ok || c.List(80, "> ") != nil {
		t.Error("the list isn't gone")
	}
	c.Set("a /no")
	if _, ok := c.Completing(); ok {
		t.Error("a command in the middle of a message")
	}
}

// TestAComposerHoldsItsShape: after any keys, its rows are as wide as they may be, the
// cursor is in them, and the text is UTF-8.
func TestAComposerHoldsItsShape(t *testing.T) {
	keys := []string{"left", "right", "up", "down", "home", "end", "ctrl+left", "ctrl+right", "backspace", "delete", "ctrl+w", "ctrl+k", "ctrl+u", "ctrl+y", "ctrl+_", "ctrl+j", "tab", "enter", "esc"}
	texts := []string{"a", " ", "界", "\u0301", "👩", "\u200d", "🇩", "é", "@", "/", "\u202e", "\t", "\n", "\xff"}
	rapid.Check(t, func(t *rapid.T) {
		c := &Composer{}
		c.SetHistory([]string{"one\ntwo", "界界界"})
		for range rapid.IntRange(0, 60).Draw(t, "keys") {
			switch rapid.IntRange(0, 8).Draw(t, "kind") {
			case 0, 1, 2:
				typed(c, rapid.SampledFrom(keys).Draw(t, "key"))
			case 3:
				c.Paste(strings.Repeat(rapid.SampledFrom(texts).Draw(t, "pasted"), 12))
			case 4:
				c.Older()
			case 5:
				c.Newer()
			case 6:
				w, _ := c.Completing()
				c.Offer(w, []Candidate{{Text: "one"}, {Text: "two/"}})
			default:
				text := rapid.SampledFrom(texts).Draw(t, "text")
				c.Key(Key{Name: text, Text: text})
			}
			width := rapid.IntRange(1, 30).Draw(t, "width")
			lines, row, col := c.Lines(width)
			if row < 0 || row >= len(lines) || col < 0 || col > width {
				t.Fatalf("the cursor is at %d, %d of %q", row, col, lines)
			}
			for _, l := range lines {
				if Width(l) > width || strings.ContainsAny(l, "\n\t\x1b\r") {
					t.Fatalf("width %d: %q", width, l)
				}
			}
			if !utf8.ValidString(c.Text()) {
				t.Fatalf("%q", c.Text())
			}
		}
	})
}
