package event

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// A text never takes more than TextLen says, and CutText keeps its promise.
func TestTextLenIsWhatJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\x00-\x20"\\<>&]{0,40}`)).Draw(t, "s")
		raw, err := Encode(ModelDelta{Text: s})
		if err != nil {
			t.Fatal(err)
		}
		var in struct {
			Text json.RawMessage `json:"text"`
		}
		if err := json.Unmarshal(raw, &in); err != nil {
			t.Fatal(err)
		}
		if got, most := len(in.Text)-2, TextLen(s); got > most {
			t.Fatalf("%q takes %d bytes, TextLen says %d", s, got, most)
		}
		n := rapid.IntRange(0, 60).Draw(t, "n")
		cut := CutText(s, n)
		if TextLen(cut) > n || s[:len(cut)] != cut || utf8.ValidString(s) && !utf8.ValidString(cut) {
			t.Fatalf("CutText(%q, %d) = %q", s, n, cut)
		}
	})
}
