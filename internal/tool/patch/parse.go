package patch

import (
	"fmt"
	"strings"
)

const (
	beginMark = "*** Begin Patch"
	endMark   = "*** End Patch"
)

// Parse reads a patch in either form. The error is a *Problem.
func Parse(text string) (*Patch, error) {
	r := &reader{lines: split(text), patch: &Patch{}}
	r.unwrap()
	var err error
	if r.envelope() {
		err = r.readEnvelope()
	} else {
		err = r.readUnified()
	}
	if err != nil {
		return nil, err
	}
	if len(r.patch.Files) == 0 {
		return nil, &Problem{Code: CodeNotAPatch, Message: "there is no change of a file in it",
			Hint: `begin with "*** Begin Patch" and "*** Update File: PATH", or with "--- a/PATH" and "+++ b/PATH"`}
	}
	return r.patch, r.bounds()
}

// reader walks over the lines of a patch.
type reader struct {
	lines []string
	at    int // next line
	patch *Patch
}

// split cuts a text into lines without their ends; a patch that came with CR LF
// is read as one with LF.
func split(text string) []string {
	text = strings.TrimPrefix(text, "\ufeff")
	if n := strings.Count(text, "\n"); n > 0 && n == strings.Count(text, "\r\n") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// unwrap takes off what models put around a patch: blank lines and a fence.
func (r *reader) unwrap() {
	for len(r.lines) > 0 && strings.TrimSpace(r.lines[0]) == "" {
		r.lines, r.at = r.lines[1:], 0
	}
	if len(r.lines) == 0 || !strings.HasPrefix(r.lines[0], "```") {
		return
	}
	for i := len(r.lines) - 1; i > 0; i-- {
		if strings.HasPrefix(r.lines[i], "```") {
			r.lines = r.lines[:i]
			break
		}
	}
	r.at = 1
}

func (r *reader) line() string { return r.lines[r.at] }
func (r *reader) more() bool   { return r.at < len(r.lines) }

// peek is a line further on, or nothing.
func (r *reader) peek(n int) string {
	if r.at+n < len(r.lines) {
		return r.lines[r.at+n]
	}
	return ""
}

func (r *reader) remark(format string, args ...any) {
	r.patch.Remarks = append(r.patch.Remarks, fmt.Sprintf(format, args...))
}

// bad is the problem of the line that is next.
func (r *reader) bad(f *File, format string, args ...any) *Problem {
	p := &Problem{Code: CodeBadPatch, Message: fmt.Sprintf(format, args...), At: r.at + 1}
	if f != nil {
		p.File, p.Hunk = f.Name(), len(f.Hunks)
	}
	return p
}

// bounds refuses a patch that is too large, or says one thing twice.
func (r *reader) bounds() error {
	if n := len(r.patch.Names()); n > maxFiles {
		return &Problem{Code: CodeBadPatch, Message: fmt.Sprintf("it touches %d files; %d are possible", n, maxFiles), Hint: "send several patches"}
	}
	hunks := 0
	for i := range r.patch.Files {
		hunks += len(r.patch.Files[i].Hunks)
	}
	if hunks > maxHunks {
		return &Problem{Code: CodeBadPatch, Message: fmt.Sprintf("it has %d hunks; %d are possible", hunks, maxHunks), Hint: "send several patches, or write the files whole"}
	}
	return nil
}

// bodyLine reads a line of a hunk by its sign.
func bodyLine(s string) (l Line, ok bool) {
	if s == "" {
		return Line{Kind: ' ', bare: true}, true
	}
	switch s[0] {
	case ' ', '-', '+':
		return Line{Kind: s[0], Text: s[1:]}, true
	}
	return Line{}, false
}

// take adds the next line of the patch to a hunk.
func (r *reader) take(h *Hunk, l Line) {
	h.Body, h.at = append(h.Body, l), append(h.at, r.at+1)
	r.at++
}

// noEOL marks the last line read as one that nothing ends.
func (h *Hunk) noEOL() {
	if n := len(h.Body); n > 0 {
		h.Body[n-1].NoEOL = true
	}
}

// trim drops lines without a sign from the end: they separate, they don't belong.
func (h *Hunk) trim() {
	for n := len(h.Body); n > 0 && h.Body[n-1].bare; n-- {
		h.Body = h.Body[:n-1]
	}
}

// changes reports whether a hunk does anything.
func (h *Hunk) changes() bool {
	for _, l := range h.Body {
		if l.Kind != ' ' {
			return true
		}
	}
	return false
}
