package screen

import (
	"slices"
	"strings"
	"testing"
)

// decoded returns the events of bytes that come in chunks of a size, and nothing after.
func decoded(text string, chunk int) []Event {
	var got []Event
	k := &keys{emit: func(e Event) { got = append(got, e) }}
	for part := range slices.Chunk([]byte(text), chunk) {
		k.take(part)
	}
	k.decode(true)
	return got
}

// TestKeysHaveNames: however the bytes are cut, the same keys come out.
func TestKeysHaveNames(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  []Event
	}{
		{"aA é界", []Event{Key{"a", "a"}, Key{"A", "A"}, Key{"space", " "}, Key{"é", "é"}, Key{"界", "界"}}},
		{"\r\n\t\x7f", []Event{Key{Name: "enter"}, Key{Name: "ctrl+j"}, Key{Name: "tab"}, Key{Name: "backspace"}}},
		{"\x1b\r\x1bb\x1b[Z", []Event{Key{Name: "alt+enter"}, Key{Name: "alt+b"}, Key{Name: "shift+tab"}}},
		{"\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x1b[H\x1b[F", []Event{Key{Name: "up"}, Key{Name: "down"}, Key{Name: "ctrl+right"}, Key{Name: "delete"}, Key{Name: "home"}, Key{Name: "end"}}},
		{"\x03\x04\x07\x12\x16\x1a\x0c", []Event{Key{Name: "ctrl+c"}, Key{Name: "ctrl+d"}, Key{Name: "ctrl+g"}, Key{Name: "ctrl+r"}, Key{Name: "ctrl+v"}, Key{Name: "ctrl+z"}, Key{Name: "ctrl+l"}}},
		{"\x1b", []Event{Key{Name: "esc"}}},
		{"\x1b\x1b", []Event{Key{Name: "esc"}, Key{Name: "esc"}}},
		{"\x1b[I\x1b[O", []Event{Focus{On: true}, Focus{}}},
		{"\xff\xc3(", []Event{Key{"\uFFFD", "\uFFFD"}, Key{"\uFFFD", "\uFFFD"}, Key{"(", "("}}},
		{"x\x1b[200~a\rb\r\nc\xffd\x1b[A\x1b[201~y", []Event{Key{"x", "x"}, Paste{"a\nb\nc\uFFFDd\x1b[A"}, Key{"y", "y"}}},
		{"\x1b[200~\x1b[201~", []Event{Paste{""}}},
	} {
		for _, chunk := range []int{1, 2, 3, 7, 4096} {
			if got := decoded(c.bytes, chunk); !slices.Equal(got, c.want) {
				t.Errorf("%q in chunks of %d: %q, want %q", c.bytes, chunk, got, c.want)
			}
		}
	}
}

// TestALongPasteIsOneEvent: a megabyte, in the small pieces that a terminal gives.
func TestALongPasteIsOneEvent(t *testing.T) {
	text := strings.Repeat("line of a long paste \x1b[20 界\n", 40_000)
	got := decoded(string(pasteStart)+text+string(pasteEnd), 100)
	if len(got) != 1 || got[0] != (Paste{Text: text}) {
		t.Errorf("%d events", len(got))
	}
}

// FuzzKeys: any bytes make events that are UTF-8, and the same ones however they are cut.
func FuzzKeys(f *testing.F) {
	f.Add("a\x1b[A\x1b[200~\xff\x1b[201~")
	f.Add("\x1b]11;rgb:0/0/0\x1b\\\x1bP1$r\x1b\\\x1b[?2026;2$y\x1b[<0;1;1M")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range decoded(text, 5) {
			if k, ok := e.(Key); ok && strings.ToValidUTF8(k.Text, "") != k.Text {
				t.Errorf("%q", k)
			}
		}
	})
}
