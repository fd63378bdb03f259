package patch

import "strings"

// envelope reports whether the patch is in the form with "***" marks.
func (r *reader) envelope() bool {
	for i := r.at; i < len(r.lines); i++ {
		s := strings.TrimSpace(r.lines[i])
		switch {
		case s == beginMark:
			r.at = i
			return true
		case strings.HasPrefix(s, "*** Update File: "), strings.HasPrefix(s, "*** Add File: "), strings.HasPrefix(s, "*** Delete File: "):
			r.at = i
			return true
		case strings.HasPrefix(s, "diff --git "), strings.HasPrefix(s, "--- "), hunkHeader(s):
			return false
		}
	}
	return false
}

// readEnvelope reads *** Add File, *** Update File and *** Delete File.
func (r *reader) readEnvelope() error {
	if strings.TrimSpace(r.line()) == beginMark {
		r.at++
	}
	for r.more() {
		s := strings.TrimRight(r.line(), " \t\r")
		verb, name, _ := strings.Cut(strings.TrimPrefix(s, "*** "), ": ")
		name = cleanName(strings.TrimSpace(name))
		f := File{Line: r.at + 1}
		var err error
		switch {
		case s == endMark:
			r.at = len(r.lines)
			return nil
		case s == "":
			r.at++
			continue
		case !strings.HasPrefix(s, "*** ") || name == "":
			return r.bad(nil, `a file begins with "*** Add File: PATH", "*** Update File: PATH" or "*** Delete File: PATH"`, "%q is no line of a patch here", cut(s))
		case verb == "Add File":
			f.New = name
			err = r.added(f)
		case verb == "Delete File":
			f.Old = name
			r.at++
			err = r.add(f)
		case verb == "Update File":
			f.Old, f.New = name, name
			err = r.updated(f)
		default:
			return r.bad(nil, "use Add File, Update File, Delete File, and Move to below Update File", "there is no %q in a patch", cut(verb))
		}
		if err != nil {
			return err
		}
	}
	r.remark(`it ends without "%s"`, endMark)
	return nil
}

// added reads a new file: every line has a +.
func (r *reader) added(f File) error {
	r.at++
	h := Hunk{Line: r.at + 1}
	for r.more() && !r.mark() {
		s := r.line()
		l, ok := bodyLine(s)
		switch {
		case !ok || l.Kind != '+' && !l.bare:
			return r.bad(&f, "put a + before each line of a new file", "a line of a new file begins with %q, not with +", first(s))
		case l.bare:
			l.Kind = '+'
		}
		r.take(&h, l)
	}
	h.trim()
	if len(h.Body) > 0 {
		f.Hunks = []Hunk{h}
	}
	return r.add(f)
}

// mark reports whether the next line begins or ends something in this form.
func (r *reader) mark() bool { return strings.HasPrefix(r.line(), "*** ") }

const (
	moveMark = "*** Move to: "
	eofMark  = "*** End of File"
)

// updated reads the hunks of a file that is there.
func (r *reader) updated(f File) error {
	r.at++
	if r.more() && strings.HasPrefix(r.line(), moveMark) {
		if f.New = cleanName(strings.TrimSpace(r.line()[len(moveMark):])); f.New == "" {
			return r.bad(&f, "", "it doesn't say where to move the file")
		}
		r.at++
	}
	for r.more() && (!r.mark() || strings.TrimSpace(r.line()) == eofMark) {
		if strings.TrimSpace(r.line()) == "" || strings.TrimSpace(r.line()) == eofMark {
			r.at++
			continue
		}
		if err := r.section(&f); err != nil {
			return err
		}
	}
	return r.add(f)
}

// section reads one hunk: lines that begin with @@, then its body. Numbers
// after the @@, as unified diffs have them, are a hint where it stands.
func (r *reader) section(f *File) error {
	h := Hunk{Line: r.at + 1}
	for r.more() && hunkHeader(r.line()) {
		h.header(r.line())
		r.at++
	}
	hint := "put a space before lines that stay, and @@ before a line to look for"
	if err := r.body(f, h, `\ `, hint, func() bool { return r.mark() || hunkHeader(r.line()) }); err != nil {
		return err
	}
	if r.more() && strings.TrimSpace(r.line()) == eofMark {
		f.Hunks[len(f.Hunks)-1].AtEnd = true
		r.at++
	}
	return nil
}

// first is the beginning of a line, for a message.
func first(s string) string {
	for _, c := range s {
		return string(c)
	}
	return ""
}

// cut bounds text of a patch in a message.
func cut(s string) string {
	if len(s) <= 120 {
		return s
	}
	return strings.ToValidUTF8(s[:120], "") + "…"
}
