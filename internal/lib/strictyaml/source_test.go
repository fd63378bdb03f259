package strictyaml_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

func text() strictyaml.Text {
	return strictyaml.Text{Name: "a.yaml", Noun: "letter", Code: belay.CodeUsage, Hint: "read the manual", Empty: "write something"}
}

func TestMistakesHaveAPlaceAndAHint(t *testing.T) {
	for _, c := range []struct{ text, where, says string }{
		{"", "a.yaml", "the letter is empty"},
		{"# nothing\n---\n", "a.yaml", "the letter is empty"},
		{"a: \xff", "a.yaml", "isn't UTF-8"},
		{"a: 1\nb: &x 2\n", "a.yaml:2:4", "anchors"},
		{"a: !!str 2\n", "a.yaml:1:4", "tags"},
		{"a: [1\n", "a.yaml:", ""},
		{"a: 1\na: 2\n", "a.yaml:2:", "already defined"},
		{strings.Repeat("[", 200), "a.yaml:1:101", "100 levels"},
		{strings.Repeat(" ", strictyaml.MaxBytes+1), "a.yaml", "are the most"},
		{"a: 1\n---\nb: 2\n", "a.yaml:3:1", "a second document begins; a letter is one"},
		{"word: [no]\n", "a.yaml:1:7", "want text here, have a list"},
		{"more: 1\n", "a.yaml:1:1", "unknown field"},
	} {
		root, err := text().Document([]byte(c.text))
		if err == nil {
			var v struct {
				A    int    `yaml:"a"`
				Word string `yaml:"word"`
			}
			err = text().Decode(root, &v)
		}
		e, ok := err.(*belay.Error)
		if !ok || e.Code != belay.CodeUsage || !strings.HasPrefix(e.Where, c.where) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%.40q: got %#v", c.text, err)
		}
	}
}

func TestTheMostInnerKnownPlaceIsNamed(t *testing.T) {
	root, err := text().Document([]byte("a:\n  - b: 1\n    c: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path []any
		want string
	}{
		{nil, "a.yaml:1:1"},
		{[]any{"a", 0, "c"}, "a.yaml:3:8"},
		{[]any{"a", 0, "x"}, "a.yaml:2:5"},
		{[]any{"a", 7}, "a.yaml:2:3"},
		{[]any{"x", 0}, "a.yaml:1:1"},
	} {
		if got := text().ErrorAt(root, c.path, "no").Where; got != c.want {
			t.Errorf("%v: got %s, want %s", c.path, got, c.want)
		}
	}
	if strictyaml.At(root, "a", 0, "c") == nil || strictyaml.At(root, "a", 1) != nil || strictyaml.Line(strictyaml.At(root, "a", 0)) != 2 {
		t.Error("a node is not where it is")
	}
}

// JSON is read as what it says, however it is escaped.
func TestJSONIsReadAsItIs(t *testing.T) {
	for _, want := range []string{
		"a\u0085b", "a\u2028b\u2029c", "a\r\nb\rc", "😀 \U0010ffff", "tab\there", "\x01\x1f\x7f", "\ufeffx", `back\slash "q" / `, "\b\f",
		"  lead\n\n trail  \n", "<>&", "${n} # : - {", "\ud7ff\ue000\uffff", "~", "null", "1e3",
	} {
		b, err := json.Marshal(map[string]string{"k": want})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []string{string(b), ascii(string(b))} {
			root, err := text().Document([]byte(raw))
			if err != nil {
				t.Errorf("%s: %v", raw, err)
				continue
			}
			var got struct {
				K string `yaml:"k"`
			}
			if err := text().Decode(root, &got); err != nil || got.K != want {
				t.Errorf("%s: got %q, %v, want %q", raw, got.K, err, want)
			}
		}
	}
}

func ascii(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		if u < 128 {
			b.WriteByte(byte(u))
		} else {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}
