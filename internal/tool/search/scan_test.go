//go:build unix

package search_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/tool/search"
)

// plainly is grep as one would write it first: line by line.
func plainly(re *regexp.Regexp, before, after int, text string) (shown string, matches int) {
	var b strings.Builder
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	hit := make([]bool, len(lines))
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
		if hit[i] = re.MatchString(lines[i]); hit[i] {
			matches++
		}
	}
	last := -1
	for i := range lines {
		near := false
		for j := max(0, i-after); j <= min(len(lines)-1, i+before); j++ {
			near = near || hit[j]
		}
		if !near {
			continue
		}
		if before+after > 0 && last >= 0 && i > last+1 {
			b.WriteString("--\n")
		}
		sign := "-"
		if hit[i] {
			sign = ":"
		}
		fmt.Fprintf(&b, "%d%s%s\n", i+1, sign, lines[i])
		last = i
	}
	return b.String(), matches
}

var parts = []string{"foo", "Foo", "bar", "k", "K", "\u212a", "ſ", "s", "task", "TASK", " ", "(x)", "ü", "1", "", "\r", "a.b", "\xff"}

var expressions = []string{
	`foo`, `foo|bar`, `fo+`, `(foo)+bar`, `^foo`, `bar$`, `^$`, `\bk\b`, `ta.k`, `[fb]oo?`, `x\)`, `.`, `a\.b`, `foo.*bar`, `(foo|bar){2}`, `\d`, `ü`, `task|foo|1`, `s`, `(?i)foo`, `^.{5}$`, `\s`, `[^a-z]`,
}

func anyLines(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most) {
		for range r.IntN(5) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		b.WriteString("\n")
	}
	s := b.String()
	if r.IntN(3) == 0 {
		s = strings.TrimSuffix(s, "\n")
	}
	return s
}

// Whatever is looked for first, and however a file comes in pieces, the
// lines found are those that match one by one.
// Guarantee: T19.
func TestScanningFindsWhatLineByLineFinds(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	found := 0
	for range 4000 {
		text, ex := anyLines(r, 40), expressions[r.IntN(len(expressions))]
		fold := r.IntN(3) == 0
		before, after := r.IntN(4)*r.IntN(2), r.IntN(4)*r.IntN(2)
		compiled := ex
		if fold {
			compiled = "(?i:" + ex + ")"
		}
		want, n := plainly(regexp.MustCompile(compiled), before, after, text)
		for _, piece := range []int{0, 64} {
			got, m, err := search.Scan(ex, false, fold, before, after, []byte(text), piece)
			if err != nil || got != want || m != n {
				t.Fatalf("seed %d: %q fold %v, %d before, %d after, in pieces of %d: %v\n%q\n got %d %q\nwant %d %q", seed, ex, fold, before, after, piece, err, text, m, got, n, want)
			}
		}
		found += n
	}
	if found < 1000 {
		t.Errorf("only %d matches", found)
	}
}

// Guarantee: T19.
func TestLongFilesAndLines(t *testing.T) {
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, "line %d\n", i+1)
		if i == 150_000 {
			b.WriteString(strings.Repeat("y", 3<<20) + "needle past the end\n")
			b.WriteString("the next needle\n")
		}
	}
	got, n, err := search.Scan("needle", true, false, 1, 1, []byte(b.String()), 0)
	if want := "150003:the next needle\n150004-line 150002\n"; err != nil || n != 1 || !strings.HasSuffix(got, want) {
		t.Errorf("%d, %v: %.200q", n, err, got)
	}
	got, n, err = search.Scan("line 199999$", false, false, 0, 0, []byte(b.String()), 0)
	if want := "200001:line 199999\n"; err != nil || n != 1 || got != want {
		t.Errorf("%d, %v: %.200q", n, err, got)
	}
	long := strings.Repeat("ü", 1000) + "needle" + strings.Repeat("z", 1000)
	got, _, _ = search.Scan("need", true, false, 0, 0, []byte(long), 0)
	if !strings.HasPrefix(got, "1:…") || !strings.Contains(got, "üneedlezz") || !strings.HasSuffix(got, "z… [3006 bytes]\n") || len(got) > 340 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("a long line is shown as %q", got)
	}
}

// FuzzScan: a pattern is refused or finds what line by line finds.
func FuzzScan(f *testing.F) {
	f.Add("fo+|b[ar]", "foo\nbar\r\n", false, 1, 2)
	f.Add("(?i)task", "TAſ\u212a\n\n", true, 0, 0)
	f.Add(`^\s*$`, "\n \nx", false, 3, 0)
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool, before, after int) {
		before, after = before&3, after&3
		compiled := pattern
		if fold {
			compiled = "(?i:" + pattern + ")"
		}
		got, n, err := search.Scan(pattern, false, fold, before, after, []byte(text), 256)
		if err != nil || strings.Contains(text, "\x00") || len(text) > 250 {
			return
		}
		re, err := regexp.Compile(compiled)
		if err != nil {
			t.Fatalf("%q is accepted: %v", pattern, err)
		}
		if want, m := plainly(re, before, after, text); got != want || n != m {
			t.Fatalf("%q fold %v on %q: got %d %q, want %d %q", pattern, fold, text, n, got, m, want)
		}
	})
}
