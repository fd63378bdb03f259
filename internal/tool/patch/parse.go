package patch

import (
	"fmt"
	"slices"
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
	if CRLF(text) {
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
func (r *reader) bad(f *File, hint, format string, args ...any) *Problem {
	p := &Problem{Code: CodeBadPatch, Message: fmt.Sprintf(format, args...), At: r.at + 1, Hint: hint}
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
	r.at++
	l.at = r.at
	h.Body = append(h.Body, l)
}

// noEOL reads the line, if it is next, which says of the one before that nothing
// ends it. It begins with mark.
func (r *reader) noEOL(h *Hunk, mark string) bool {
	if !r.more() || !strings.HasPrefix(r.line(), mark) {
		return false
	}
	if n := len(h.Body); n > 0 {
		h.Body[n-1].NoEOL = true
	}
	r.at++
	return true
}

// body reads the lines of a hunk up to its end, and takes the hunk.
func (r *reader) body(f *File, h Hunk, mark, hint string, ends func() bool) error {
	f.Hunks = append(f.Hunks, h)
	hp := &f.Hunks[len(f.Hunks)-1]
	for r.more() && !ends() {
		if r.noEOL(hp, mark) {
			continue
		}
		l, ok := bodyLine(r.line())
		if !ok {
			return r.bad(f, hint, "a line begins with %q, not with a space, + or -", first(r.line()))
		}
		r.take(hp, l)
	}
	hp.trim()
	if !hp.changes() {
		p := r.bad(f, "", "the hunk has no line with + or -")
		p.At = hp.Line
		return p
	}
	return nil
}

// trim drops lines without a sign from the end: they separate, they don't belong.
func (h *Hunk) trim() {
	for n := len(h.Body); n > 0 && h.Body[n-1].bare; n-- {
		h.Body = h.Body[:n-1]
	}
}

// changes reports whether a hunk does anything.
func (h *Hunk) changes() bool {
	return slices.ContainsFunc(h.Body, func(l Line) bool { return l.Kind != ' ' })
}
