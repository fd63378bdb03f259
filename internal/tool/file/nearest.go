//go:build unix

package file

import "strings"

const (
	maxCompared = 50_000 // lines that are compared with the one looked for
	maxLineUsed = 300    // bytes of each
)

// nearestLine is the line of src most like the first line of old that says
// something, and whether they differ in white space only; 0 when none is.
func nearestLine(src, old string) (line int, text string, same bool) {
	want := ""
	for l := range strings.Lines(old) {
		if want = squeeze(l); want != "" {
			break
		}
	}
	if want == "" {
		return 0, "", false
	}
	pairs, best := bigrams(want), 0.6
	n := 0
	for l := range strings.Lines(src) {
		if n++; n > maxCompared {
			break
		}
		got := squeeze(l)
		if got == want {
			return n, strings.TrimRight(l, "\r\n"), true
		}
		if s := alike(pairs, len(want), got); s > best {
			best, line, text = s, n, shortLine(strings.TrimRight(l, "\r\n"))
		}
	}
	return line, text, false
}

func squeeze(l string) string { return shortLine(strings.Join(strings.Fields(l), " ")) }

func shortLine(l string) string {
	if len(l) > maxLineUsed {
		return strings.ToValidUTF8(l[:maxLineUsed], "")
	}
	return l
}

func bigrams(s string) map[[2]byte]int {
	m := make(map[[2]byte]int, len(s))
	for i := 1; i < len(s); i++ {
		m[[2]byte{s[i-1], s[i]}]++
	}
	return m
}

// alike is the share of byte pairs that two lines have in common, from 0 to 1.
func alike(pairs map[[2]byte]int, length int, got string) float64 {
	total := length - 1 + len(got) - 1
	if total <= 0 || len(got) < 2 || 4*min(length, len(got)) < max(length, len(got)) {
		return 0
	}
	common := 0
	for p, n := range bigrams(got) {
		common += min(n, pairs[p])
	}
	return 2 * float64(common) / float64(total)
}
