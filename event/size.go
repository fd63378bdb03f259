package event

import "unicode/utf8"

// MaxPayload is how long an encoded payload may be, in bytes: a fact has 16 KiB
// in all, and its identities take some. What is longer belongs into a blob.
const MaxPayload = 15 << 10

// TextLen is how many bytes a text takes inside a payload: JSON writes control
// characters in six, so bytes that look harmless can grow.
func TextLen(s string) int {
	n := 0
	for _, r := range s {
		n += runeLen(r)
	}
	return n
}

func runeLen(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < 0x20 || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return 6
	}
	return utf8.RuneLen(r)
}

// CutText is the longest beginning of s, between characters, that takes at most
// n bytes inside a payload.
func CutText(s string, n int) string {
	for i, r := range s {
		if n -= runeLen(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// Fitting is the longest beginning of a list of texts that takes at most n bytes
// inside a payload.
func Fitting(texts []string, n int) []string {
	for i, t := range texts {
		if n -= TextLen(t) + len(`"",`); n < 0 {
			return texts[:i]
		}
	}
	return texts
}
