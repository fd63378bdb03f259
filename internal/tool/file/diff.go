//go:build unix

package file

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

const (
	maxDiffInput = 1 << 20 // larger files are not compared line by line
	maxDiff      = 4 << 10 // bytes of a diff that are shown
)

// conflictDiff shows how a file was changed from outside, as far as it is text.
func conflictDiff(name string, old, now []byte) string {
	if len(old) > maxDiffInput || len(now) > maxDiffInput || !isText(old) || !isText(now) {
		return ""
	}
	return cutDiff(udiff.Unified(name+" (as read)", name+" (now)", string(old), string(now)), maxDiff)
}

// Diff shows how a file was changed, in at most so many bytes.
func Diff(name string, old, now []byte, most int) string {
	if len(old) > maxDiffInput || len(now) > maxDiffInput || !isText(old) || !isText(now) {
		return fmt.Sprintf("%s was changed: %s before, %s now\n", name, size(int64(len(old))), size(int64(len(now))))
	}
	return cutDiff(udiff.Unified(name+" (before)", name+" (now)", string(old), string(now)), most)
}

func cutDiff(d string, most int) string {
	if len(d) <= most {
		return d
	}
	cut := d[:most]
	if i := strings.LastIndexByte(cut, '\n'); i > 0 {
		cut = cut[:i+1]
	}
	cut = strings.ToValidUTF8(cut, "")
	return fmt.Sprintf("%s[%d more bytes of the diff left out]\n", cut, len(d)-len(cut))
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// summary is "+3 -1 lines", or the size when the files are too large to compare.
func summary(old, now []byte) string {
	if len(old) > maxDiffInput || len(now) > maxDiffInput {
		return fmt.Sprintf("%s before, %s now", size(int64(len(old))), size(int64(len(now))))
	}
	added, removed := 0, 0
	for _, e := range udiff.Lines(string(old), string(now)) {
		added += countLines(e.New)
		removed += countLines(string(old[e.Start:e.End]))
	}
	return fmt.Sprintf("+%d -%d lines", added, removed)
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
