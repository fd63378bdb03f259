package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/secret"
	"pgregory.net/rapid"
)

const value = `p<ss/w"rd+\näé&%`

// Guarantee: X1.
func TestKnownFormsDoNotPass(t *testing.T) {
	var s secret.Scrubber
	if !s.Add("DB_PASSWORD", value) {
		t.Fatal("the value is refused")
	}
	quoted, _ := json.Marshal(value)
	twice, _ := json.Marshal(string(quoted))
	each := func(format string) (s string) {
		for i := range len(value) {
			s += fmt.Sprintf(format, value[i])
		}
		return s
	}
	for name, in := range map[string]string{
		"as it is":           "x" + value + "y",
		"twice":              value + value,
		"in JSON":            string(quoted),
		"in a query":         "https://h/?k=" + url.QueryEscape(value),
		"in a path":          "https://h/" + url.PathEscape(value) + "/x",
		"in base64":          base64.StdEncoding.EncodeToString([]byte(value)),
		"in URL base64":      base64.URLEncoding.EncodeToString([]byte(value)),
		"in basic auth":      "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+value)),
		"shifted by one":     base64.StdEncoding.EncodeToString([]byte("u" + value + "tail")),
		"shifted by two":     base64.StdEncoding.EncodeToString([]byte("us" + value + "t")),
		"at the very end":    strings.Repeat("-", 1000) + value,
		"in a larger field":  `{"a":` + string(quoted) + `}`,
		"in JSON in JSON":    string(twice),
		"in hexadecimal":     hex.EncodeToString([]byte("a" + value + "b")),
		"in HEXADECIMAL":     strings.ToUpper(hex.EncodeToString([]byte(value))),
		"each byte in a URL": "k=" + each("%%%02X"),
		"each byte in a url": "k=" + each("%%%02x"),
		"in a small url":     "k=" + strings.ToLower(url.QueryEscape(value)),
		"each byte in JSON":  `"` + each(`\u%04x`) + `"`,
		"that in JSON":       `"` + each(`\\u%04x`) + `"`,
		"each byte in C":     `"` + each(`\x%02x`) + `"`,
		"in HTML":            "<p>" + html.EscapeString(value) + "</p>",
		"in HTML of others":  "<p>" + `p&lt;ss/w&quot;rd+\näé&amp;%` + "</p>",
		"in JSON of others":  `"p<ss\/w\"rd+\\näé&%"`,
		"in JSON in ASCII":   `"p<ss/w\"rd+\\n\u00e4\u00e9&%"`,
	} {
		got := s.String(in)
		if !strings.Contains(got, "[redacted:DB_PASSWORD]") || leaks(got) {
			t.Errorf("%s: %q becomes %q", name, in, got)
		}
		if b := s.Bytes([]byte(in)); string(b) != got {
			t.Errorf("%s: Bytes gives %q, String %q", name, b, got)
		}
	}
}

// leaks reports whether a text still has the value or most of an encoding of it.
func leaks(s string) bool {
	e := base64.StdEncoding.EncodeToString([]byte(value))
	h := hex.EncodeToString([]byte(value))
	return strings.Contains(s, value) || strings.Contains(s, e[4:16]) || strings.Contains(strings.ToLower(s), h[8:24])
}

func TestWhatIsNotSecretStays(t *testing.T) {
	var s secret.Scrubber
	if got := s.String("anything"); got != "anything" {
		t.Errorf("without values: %q", got)
	}
	if s.Add("SHORT", "12345") || s.Add("BLANK", "          ") {
		t.Error("a value that is too short is taken")
	}
	s.Add("KEY", "abcdef-123456")
	in := []byte("abcdef-12345 abcdef-1234567x abcde")
	if got := s.Bytes(in); string(got) != "abcdef-12345 [redacted:KEY]7x abcde" {
		t.Errorf("got %q", got)
	}
	clean := []byte("nothing to see here")
	if got := s.Bytes(clean); &got[0] != &clean[0] {
		t.Error("a text without values is copied")
	}
}

func TestLongestOfSeveralWins(t *testing.T) {
	var s secret.Scrubber
	s.Add("A", "abcdef")
	s.Add("B", "abcdefghi")
	s.Add("C", "cdefghijkl")
	for in, want := range map[string]string{
		"abcdefghi":     "[redacted:B]",
		"abcdefgh":      "[redacted:A]gh",
		"abcdefghijkl":  "[redacted:B]jkl",
		"xcdefghijklab": "x[redacted:C]ab",
	} {
		if got := s.String(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestWriterWaitsForTheLongerOfTwo(t *testing.T) {
	var s secret.Scrubber
	s.Add("A", "abcdef")
	s.Add("B", "abcdefghi")
	for pieces, want := range map[string]string{"abcdef|ghi": "[redacted:B]", "abcdef|ghx": "[redacted:A]ghx", "abc|def": "[redacted:A]"} {
		var out bytes.Buffer
		w := s.Writer(&out)
		for piece := range strings.SplitSeq(pieces, "|") {
			w.Write([]byte(piece))
		}
		if w.Close(); out.String() != want {
			t.Errorf("%s: got %s, want %s", pieces, out.String(), want)
		}
	}
}

func TestNameCannotBreakTheText(t *testing.T) {
	var s secret.Scrubber
	s.Add("a\"]\n\\x", "abcdefgh")
	if got := s.String("abcdefgh"); got != "[redacted:a____x]" {
		t.Errorf("got %q", got)
	}
}

// Guarantee: X3.
func TestEnvironment(t *testing.T) {
	s := secret.FromEnviron([]string{
		"OPENAI_API_KEY=sk-aaaaaaaa", "gh_token=ghp_bbbbbbbb", "AWS_SECRET_ACCESS_KEY=cccccccc", "PGPASSWORD=dddddddd",
		"MY_SECRET=eeeeeeee\n", "HOME=/home/ffffffff", "KEYBOARD=gggggggg", "EMPTY_TOKEN=", "NOTHING",
	})
	in := "sk-aaaaaaaa ghp_bbbbbbbb cccccccc dddddddd eeeeeeee /home/ffffffff gggggggg"
	want := "[redacted:OPENAI_API_KEY] [redacted:gh_token] [redacted:AWS_SECRET_ACCESS_KEY] [redacted:PGPASSWORD] " +
		"[redacted:MY_SECRET] /home/ffffffff gggggggg"
	if got := s.String(in); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Values over a small alphabet overlap and repeat in every way.
// Guarantee: X1.
func TestWriterEqualsBytesHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s secret.Scrubber
		for _, v := range rapid.SliceOfN(rapid.StringMatching(`[ab]{6,9}`), 1, 4).Draw(t, "values") {
			s.Add("V"+v, v)
		}
		var whole, out bytes.Buffer
		w := s.Writer(&out)
		for _, piece := range rapid.SliceOfN(rapid.StringMatching(`[ab]{0,12}c?`), 0, 12).Draw(t, "pieces") {
			whole.WriteString(piece)
			if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := s.String(whole.String()); out.String() != want {
			t.Fatalf("%q: got %q, want %q", whole.String(), out.String(), want)
		}
	})
}

func TestWriterHoldsBackOnlyWhatMayBeAValue(t *testing.T) {
	var s secret.Scrubber
	s.Add("KEY", "abcdefgh")
	var out bytes.Buffer
	w := s.Writer(&out)
	for _, step := range []struct{ in, out string }{
		{"plain ", "plain "}, {"text abc", "plain text "}, {"def", "plain text "}, {"gh!", "plain text [redacted:KEY]!"},
		{" abc", "plain text [redacted:KEY]! "}, {"x", "plain text [redacted:KEY]! abcx"},
	} {
		if w.Write([]byte(step.in)); out.String() != step.out {
			t.Fatalf("after %q: got %q, want %q", step.in, out.String(), step.out)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriterFailsForGood(t *testing.T) {
	var s secret.Scrubber
	s.Add("KEY", "abcdefgh")
	w := s.Writer(full{})
	if _, err := w.Write([]byte("text")); err == nil {
		t.Error("the destination's error is lost")
	}
	if err := w.Close(); err == nil {
		t.Error("Close forgets the error")
	}
}

func BenchmarkNoHit(b *testing.B) {
	var s secret.Scrubber
	for i := range 20 {
		s.Add("K", strings.Repeat(string(rune('a'+i)), 3)+"-0123456789-secret-value")
	}
	text := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog 0123456789\n"), 20000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Bytes(text)
	}
}

// Guarantee: X1.
func TestJSONIsScrubbedAsWhatItMeans(t *testing.T) {
	var s secret.Scrubber
	s.Add("K", `sk-"a/b"-\c`)
	deep := `sk-"a/b"-\c`
	for range 3 { // JSON in JSON in JSON
		b, _ := json.Marshal(deep)
		deep = string(b)
	}
	for in, want := range map[string]string{
		`{"a":"sk-\u0022a\u002fb\"-\\c","n":1}`: `{"a":"[redacted:K]","n":1}`,
		`["x","\u0073k-\"a\/b\"-\u005cc x"]`:    `["x","[redacted:K] x"]`,
		`{"sk-\"a/b\"-\\c":true}`:               `{"[redacted:K]":true}`,
		`"nothing \" here"`:                     `"nothing \" here"`,
		`no JSON: sk-"a/b"-\c`:                  `no JSON: [redacted:K]`,
		`{"cut": "sk-\"a/b\"-\\c`:               `{"cut": "[redacted:K]`,
		`{"q": "\`:                              `{"q": "\`,
	} {
		if got := string(s.JSON([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if got := string(s.JSON([]byte(deep))); strings.Contains(got, "a/b") || !json.Valid([]byte(got)) {
		t.Errorf("got %s", got)
	}
	var none secret.Scrubber
	if got := string(none.JSON([]byte(`"a\nb"`))); got != `"a\nb"` {
		t.Errorf("without values: %s", got)
	}
}

// TestJSONStaysJSON: whatever was put into a text of JSON by whoever knows the value.
func TestJSONStaysJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s secret.Scrubber
		v := rapid.StringMatching(`[a"\\/u0]{6,8}`).Draw(t, "value")
		s.Add("V", v)
		text := rapid.StringMatching(`[a"\\/u0]{0,12}`).Draw(t, "before") + v + rapid.StringMatching(`[a"\\/u0]{0,6}`).Draw(t, "after")
		for range rapid.IntRange(1, 3).Draw(t, "depth") {
			b, _ := json.Marshal(text)
			text = string(b)
		}
		if got := s.JSON([]byte(text)); !json.Valid(got) {
			t.Fatalf("%s becomes %s", text, got)
		}
	})
}

// A key of several lines is taken out also where a program prints it line by line,
// indents it, leaves some lines out, or where a write ends within a line.
// Guarantee: X1.
func TestTheLinesOfAValueAreTakenOut(t *testing.T) {
	lines := []string{"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "q83vEjRWeJq83vEjRWeJq83vEjRWeJq8", "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6", "tooShortForIt"}
	var s secret.Scrubber
	if !s.Add("KEY", "-----BEGIN PRIVATE KEY-----\r\n"+strings.Join(lines, "\r\n")+"\r\n-----END PRIVATE KEY-----\n") {
		t.Fatal("not registered")
	}
	for _, text := range []string{
		strings.Join(lines[:3], "\n"), "    " + lines[0] + "\n\t" + lines[1] + "\n", "1: " + lines[2], "x" + lines[1] + "y", lines[2] + lines[0], `{"key":["` + lines[0] + `","` + lines[1] + `"]}`, "+" + lines[0] + "\n-" + lines[1],
		strings.Join(lines, "\n"), base64.StdEncoding.EncodeToString([]byte(lines[0])), hex.EncodeToString([]byte(lines[1])), "-----BEGIN PRIVATE KEY-----\r\n" + strings.Join(lines, "\r\n"), "> " + strings.Join(lines[1:3], "\n> "), url.QueryEscape(lines[2]), lines[0] + "\n" + lines[0], "\x1b[1m" + lines[2] + "\x1b[0m",
	} {
		want := s.String(text)
		for cut := range text {
			var out bytes.Buffer
			w := s.Writer(&out)
			io.WriteString(w, text[:cut]) //nolint:errcheck // into memory
			io.WriteString(w, text[cut:]) //nolint:errcheck // into memory
			if err := w.Close(); err != nil || out.String() != want {
				t.Fatalf("%q cut at %d: %q, want %q", text, cut, out.String(), want)
			}
		}
		for _, line := range lines[:3] {
			for i := range len(line) - 15 {
				if strings.Contains(want, line[i:i+16]) || strings.Contains(want, hex.EncodeToString([]byte(line))) {
					t.Fatalf("%q: %q is left", text, want)
				}
			}
		}
	}
	for _, text := range []string{"-----BEGIN PRIVATE KEY-----", lines[3]} {
		if s.String(text) != text {
			t.Errorf("%q was taken out", text)
		}
	}
}
