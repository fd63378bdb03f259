package chat

import (
	"testing"
	"time"
)

// TestKeysDoWhatTheyMeanHere holds the table of keys against what each means in each
// situation.
func TestKeysDoWhatTheyMeanHere(t *testing.T) {
	idle, working := situation{}, situation{working: true}
	with := func(s situation, f func(*situation)) situation { f(&s); return s }
	composed := func(s situation) situation { return with(s, func(s *situation) { s.composed = true }) }
	for _, c := range []struct {
		key   string
		s     situation
		again bool
		want  action
	}{
		{"enter", idle, false, nothing},
		{"enter", composed(idle), false, submit},
		{"enter", composed(working), false, submit},
		{"alt+enter", composed(idle), false, toComposer},
		{"tab", composed(working), false, enqueue},
		{"tab", composed(idle), false, toComposer},
		{"?", idle, false, help},
		{"?", composed(idle), false, toComposer},
		{"tab", with(composed(working), func(s *situation) { s.asked = true }), false, toQuestion},
		{"up", idle, false, older},
		{"up", composed(idle), false, toComposer},
		{"up", with(composed(idle), func(s *situation) { s.browsing = true }), false, older},
		{"up", with(working, func(s *situation) { s.waits = true }), false, takeBack},
		{"up", with(composed(working), func(s *situation) { s.waits = true }), false, toComposer},
		{"down", idle, false, toComposer},
		{"down", with(composed(idle), func(s *situation) { s.browsing = true }), false, newer},
		{"esc", working, false, interrupt},
		{"esc", composed(working), false, interrupt},
		{"esc", idle, false, nothing},
		{"esc", idle, true, rewind},
		{"esc", composed(idle), true, nothing},
		{"ctrl+c", composed(working), false, clear},
		{"ctrl+c", working, false, interrupt},
		{"ctrl+c", idle, false, warn},
		{"ctrl+c", composed(working), true, leave},
		{"ctrl+c", working, true, leave},
		{"ctrl+d", working, false, leave},
		{"ctrl+d", composed(idle), false, toComposer},
		{"shift+tab", working, false, nextMode},
		{"ctrl+v", composed(working), false, fromClipboard},
		{"y", idle, false, toComposer},
	} {
		if got := bind(c.key, c.s, c.again); got != c.want {
			t.Errorf("%s in %+v, again %v: %q, want %q", c.key, c.s, c.again, got, c.want)
		}
	}
}

// TestASecondPressCountsForASecond: a key is pressed twice if nothing came between and
// not more than a second passed.
func TestASecondPressCountsForASecond(t *testing.T) {
	var p twice
	at := time.Unix(0, 0)
	after := func(key string, d time.Duration) bool { at = at.Add(d); return p.press(key, at) }
	for i, c := range []struct {
		key  string
		d    time.Duration
		want bool
	}{
		{"esc", 0, false}, {"esc", time.Second, true}, {"esc", time.Millisecond, false}, {"esc", 2 * time.Second, false},
		{"a", 0, false}, {"esc", 0, false}, {"ctrl+c", 0, false}, {"ctrl+c", 500 * time.Millisecond, true},
	} {
		if got := after(c.key, c.d); got != c.want {
			t.Errorf("press %d of %s: %v, want %v", i, c.key, got, c.want)
		}
	}
}
