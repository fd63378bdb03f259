package term

import "testing"

// Guarantee: V44.
func TestDetachKeysDoNotReachTheProgram(t *testing.T) {
	const p, q = "\x10", "\x11"
	for typed, want := range map[string]string{
		"abc":         "abc",
		"a" + q + "b": "a" + q + "b",
		"a" + p + "b": "a" + p + "b",
		"a" + p + q:   "a!",
		p + p + q:     p + "!",
		p + p + "x":   p + p + "x",
		p + "x" + q:   p + "x" + q,
	} {
		for cut := range len(typed) + 1 { // they may come in any pieces
			var d detaching
			rest, detach := d.take([]byte(typed[:cut]))
			if !detach {
				var more []byte
				more, detach = d.take([]byte(typed[cut:]))
				rest = append(rest, more...)
			}
			got := string(rest)
			if detach {
				got += "!"
			}
			if got != want {
				t.Errorf("%q cut at %d gives %q, want %q", typed, cut, got, want)
			}
		}
	}
}
