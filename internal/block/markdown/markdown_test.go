package markdown

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// TestRender: what each construct looks like.
func TestRender(t *testing.T) {
	plain := Options{Width: 40, UTF8: true}
	for _, c := range []struct {
		name, source, want string
		o                  Options
	}{
		{"paragraphs", "one\ntwo\n\nthree", "one|two||three", plain},
		{"a long line", "the quick brown fox jumps over the lazy dog again", "the quick brown fox jumps over the lazy|dog again", plain},
		{"a long word", "see " + strings.Repeat("x", 50), "see " + strings.Repeat("x", 36) + "|" + strings.Repeat("x", 14), plain},
		{"wide characters", strings.Repeat("界", 25), strings.Repeat("界", 20) + "|" + strings.Repeat("界", 5), plain},
		{"headings", "# One\n## Two", "\x1b[1mOne\x1b[0m||\x1b[1mTwo\x1b[0m", Options{Width: 40, Colour: true}},
		{"headings without colours", "# One\ntext", "# One||text", plain},
		{"emphasis", "a *b* **c** `e  f` ***g***", "a \x1b[3mb\x1b[0m \x1b[1mc\x1b[0m \x1b[36me  f\x1b[0m \x1b[3;1mg\x1b[0m", Options{Colour: true}},
		{"emphasis without colours", "a *b* **c** ~~d~~ `e`", "a *b* **c** ~~d~~ `e`", plain},
		{"lists", "- one\n- two\n  - three\n    more\n\n1. a\n2. b", "• one|• two|  • three|    more||1. a|2. b", plain},
		{"a loose list", "3. one\n\n4. two\n\n   more", "3. one||4. two||   more", plain},
		{"an item that is wrapped", "- the quick brown fox jumps over the lazy dog", "- the quick brown fox jumps over the|  lazy dog", Options{Width: 40}},
		{"tasks", "- [x] done\n- [ ] open", "• [x] done|• [ ] open", plain},
		{"code", "```go\nfunc f() {\n\treturn\n}\n\nx\n```\nafter", "  func f() {|      return|  }||  x||after", plain},
		{"code that isn't closed", "```\na **b**", "  a **b**", plain},
		{"a quote", "> one\n> two\n>\n> - three", "│ one|│ two|│|│ • three", plain},
		{"links", "[here](https://a.example/x?a=1&amp;b) <https://b.example> [https://c.example](https://c.example)", "here (https://a.example/x?a=1&b) https://b.example https://c.example", Options{}},
		{"an image", "![a cat](cat.png)", "image: a cat (cat.png)", plain},
		{"a rule", "a\n\n---\n\nb", "a||----------||b", Options{Width: 10}},
		{"escapes and entities", `\*a\* &lt;b&gt; \&lt; &copy; a\b`, "*a* <b> &lt; © a\\b", plain},
		{"HTML", "a <b>c</b>\n\n<div>\nx\n</div>", "a <b>c</b>||<div>|x|</div>", plain},
		{"a table", "| a | right |\n|---|--:|\n| one | 1 |\n| two `x` | 12 |", "a       │ right|────────┼──────|one     │     1|two `x` │    12", plain},
		{"a table behind a line", "text\n| a | b |\n|:-:|---|\n| - | `x\\|y` | more |\n| # 1 |", "text|| a  │ b|────┼──────| -  │ `x|y`|# 1 │ ", plain},
		{"no table", "a | b\n--\n\n| a |\n| b |", "## a | b||| a ||| b |", plain},
		{"a table that is too wide", "| name | text |\n|---|---|\n| one | the quick brown fox jumps over the lazy dog |", "name | text|-----+--------------|one  | the quick|     | brown fox|     | jumps over|     | the lazy dog", Options{Width: 20}},
		{"a table with too many columns", "|a|b|c|\n|-|-|-|\n|long words|long words|long words|\n|1|2|3|", "a: long words|b: long words|c: long words||a: 1|b: 2|c: 3", Options{Width: 15}},
		{"a table for a screen reader", "|a|b|\n|-|-|\n|1|2|", "a: 1|b: 2", Options{Records: true}},
		{"nothing", " \n\n", "", plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(Render(c.source, c.o), "|"); got != strings.ReplaceAll(c.want, "\n", "|") {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// hostile are texts that want to reach the terminal.
var hostile = []string{"\x1b[2J", "\x1b]52;c;eA==\x07", "&#27;[2J", "&#x1b;[31m", "&#x9b;2J", "\u009b2J", "\u202e", "&#8238;", "\x00", "\b", "\r", "\xff", "\u2028"}

// around are the places of a text where they may be.
var around = []string{"%s", "# %s", "- %s", "> %s", "`%s`", "```%s\n%s\n```", "    %s", "[%s](%s)", "![%s](<%s>)", "<https://a.example/%s>", "<b %s>", "<div>\n%s", "|%s|\n|-|\n|%s|", "**%s**", "[a]: %s\n\n[a]", "<!-- %s -->"}

// TestNothingControlsTheTerminal: colours are the only sequences, whatever the text has.
func TestNothingControlsTheTerminal(t *testing.T) {
	for _, place := range around {
		for _, bad := range hostile {
			source := strings.ReplaceAll(place, "%s", "a"+bad+"b")
			for _, o := range []Options{{}, {Width: 12, Colour: true, UTF8: true}} {
				for _, line := range Render(source, o) {
					checkLine(t, source, line)
				}
			}
		}
	}
}

func checkLine(t interface{ Errorf(string, ...any) }, source, line string) {
	for state := byte(0); len(line) > 0; {
		seq, _, n, next := ansi.DecodeSequence(line, state, nil)
		line, state = line[n:], next
		if strings.HasPrefix(seq, "\x1b") && strings.HasSuffix(seq, "m") && strings.Trim(seq, "\x1b[m0123456789;") == "" {
			continue
		}
		if strings.ContainsFunc(seq, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			t.Errorf("%q has %q", source, seq)
		}
	}
}

// TestLinesFit: nothing but code and HTML is wider than the terminal, and no line has a
// control character.
func TestLinesFit(t *testing.T) {
	words := []string{"word", "界界", "a very long sentence that goes on", "- ", "1. ", "> ", "\n", "\n\n", "  ", "**", "_", "`", "|", "|-|-|\n", "[x](", ")", "# ", "\x1b[2J", "\\", "&amp;", "e\u0301", "👩‍👩‍👧"}
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 60).Draw(t, "words"), "")
		width := rapid.IntRange(minWidth, 100).Draw(t, "width")
		for _, line := range Render(source, Options{Width: width, Colour: rapid.Bool().Draw(t, "colour"), UTF8: true}) {
			checkLine(t, source, line)
			nested := strings.Count(source, ">") + strings.Count(source, "- ") + strings.Count(source, "1. ")
			code := strings.Contains(source, "    ") || strings.Contains(source, "```") || strings.Contains(source, "  ")
			if n := ansi.StringWidth(line); n > width && nested == 0 && !code {
				t.Errorf("%q: %d columns of %d: %q", source, n, width, line)
			}
		}
	})
}

// TestNoTextIsSlow: a long part of an answer in the shapes that make parsers slow. The
// parser takes up to 50 ms for one; what would be much slower is far beyond the limit.
func TestNoTextIsSlow(t *testing.T) {
	for _, shape := range []string{"[", "*a", "**a _b ", "> ", "- ", "`", "``a`", "![](", "|a", "<", "&", "\\", "a\n", "[a](b) ", "*a **b ***c ", "<!--", "1. a\n\n", "| a | b |\n|---|---|\n", "  - a\n"} {
		source := strings.Repeat(shape, 8<<10/len(shape))
		began := time.Now()
		lines := Render(source, Options{Width: 80, Colour: true})
		took := time.Since(began)
		t.Logf("%q: %s, %d lines", shape, took, len(lines))
		if took > 30*time.Second {
			t.Errorf("%q: %s", shape, took)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	source := strings.Repeat("# A title\n\nSome *text* with `code` and [a link](https://a.example).\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```go\nfunc f() {}\n```\n\n", 100)
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		Render(source, Options{Width: 80, Colour: true, UTF8: true})
	}
}
