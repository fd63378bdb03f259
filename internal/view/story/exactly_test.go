package story

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// misleads names what of a text a person can't take at its look. It is written
// from the Unicode tables and not from the function under test.
func misleads(s string) string {
	if bad := dangerous(s, ""); bad != "" {
		return bad
	}
	marks := 0
	before := ' '
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), r == 0x2800,
			unicode.In(r, unicode.Co, unicode.Cs), unicode.In(r, unicode.Zs) && r != ' ', !unicode.IsGraphic(r):
			return fmt.Sprintf("%U", r)
		case unicode.In(r, unicode.M):
			if marks++; marks > 4 || !unicode.In(before, unicode.L, unicode.M) {
				return fmt.Sprintf("the mark %U behind %U", r, before)
			}
		default:
			marks = 0
		}
		before = r
	}
	return ""
}

// whole reports whether a text is another one with some of its characters, or
// bytes, written out, in order and without a gap.
func whole(shown, s string) bool {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		ways := []string{s[:n], fmt.Sprintf(`\u%04x`, r), fmt.Sprintf(`\U%08x`, r), fmt.Sprintf(`\x%02x`, s[0])}
		if r >= 0x80 && r < 0x100 {
			ways = append(ways, fmt.Sprintf(`\x%02x`, r))
		}
		switch r {
		case '\n':
			ways = append(ways, `\n`)
		case '\r':
			ways = append(ways, `\r`)
		case '\t':
			ways = append(ways, `\t`)
		}
		found := false
		for _, w := range ways {
			if rest, ok := strings.CutPrefix(shown, w); ok && utf8.ValidString(w) {
				shown, found = rest, true
				break
			}
		}
		if !found {
			return false
		}
		s = s[n:]
	}
	return shown == ""
}

// Every character that there can be is shown as itself or written out.
// Guarantee: X43.
func TestWhatAPersonAllowsIsShownExactly(t *testing.T) {
	kept := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		switch r {
		case 0xd800: // no text has them
			r = 0xe000
		case 0x40000: // nothing is known of what lies between
			r = 0xe0000
		case 0xe1000:
			r = 0x10ff00
		}
		in := "a" + string(r) + `"` + string(r) + "b"
		got := Call("exec", []byte(in))
		if bad := misleads(got); bad != "" || !whole(got, "exec "+in) {
			t.Fatalf("%U is shown as %q: %s", r, got, bad)
		}
		if got == "exec "+in {
			kept++
		}
	}
	if kept < 100_000 {
		t.Errorf("only %d characters are shown as they are", kept)
	}
	for in, want := range map[string]string{
		"plain, žluť, 日本, 🚀":              "plain, žluť, 日本, 🚀",
		"cafe\u0301 हिन्दी":               "cafe\u0301 हिन्दी",
		"rm\u00a0-rf":                     `rm\xa0-rf`,
		"a\u3000b":                        `a\u3000b`,
		"❤\ufe0f":                         `❤\ufe0f`,
		"x\U000e0041":                     `x\U000e0041`,
		"\u2800":                          `\u2800`,
		"/\u0338":                         `/\u0338`,
		"\xff\xfe":                        `\xff\xfe`,
		"\ue000\u0378":                    `\ue000\u0378`,
		"a" + strings.Repeat("\u0300", 6): "a" + strings.Repeat("\u0300", 4) + `\u0300\u0300`,
	} {
		if got := Exactly(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`{"command":"a \u0026\u0026 b \u003E c \u003c d"}`: `exec {"command":"a && b > c < d"}`,
		`{"command":"\\u0026 \n\u0026"}`:                   `exec {"command":"\\u0026 \n&"}`,
		`\`:                                                `exec \`,
	} {
		if got := Call("exec", []byte(in)); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
	long := strings.Repeat("x", 1<<20) + "\u202eend"
	if got := Call("write", []byte(long)); len(got) < len(long) || !strings.HasSuffix(got, `\u202eend`) {
		t.Errorf("of %d bytes %d are shown", len(long), len(got))
	}
}

func FuzzExactly(f *testing.F) {
	f.Add(evil)
	f.Add("a\u0300\u0301\u0302\u0303\u0304\u0305 \u0338\ufe0f\U000e0100\u180e\xc3\x28\u00ad\u061c")
	f.Fuzz(func(t *testing.T, s string) {
		got := Exactly(s)
		if bad := misleads(got); bad != "" || !whole(got, s) {
			t.Errorf("%q is shown as %q: %s", s, got, bad)
		}
		if again := Exactly(got); again != got {
			t.Errorf("what is shown changed: %q became %q", got, again)
		}
	})
}
