package patch

import (
	"strconv"
	"strings"
)

const devNull = "/dev/null"

// readUnified reads diffs with --- and +++, with or without git's headers.
// What stands before and between them is passed over.
func (r *reader) readUnified() error {
	for r.more() {
		var err error
		switch {
		case strings.HasPrefix(r.line(), "diff --git "):
			err = r.gitFile()
		case r.plainHeader():
			err = r.plainFile()
		case hunkHeader(r.line()):
			return r.bad(nil, `put "--- a/PATH" and "+++ b/PATH" before it`, "a hunk stands before any file is named")
		default:
			r.at++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plainFile reads a file that begins with --- and +++ and must have a hunk.
func (r *reader) plainFile() error {
	f := File{Line: r.at + 1}
	for i := range 2 {
		if fileName(r.peek(i)[4:]) == "" {
			return &Problem{Code: CodeBadPatch, Message: "it names no file", At: r.at + 1 + i, Hint: "write " + devNull + " where there is no file"}
		}
	}
	r.names(&f, false)
	if !r.more() || !hunkHeader(r.line()) {
		return &Problem{Code: CodeBadPatch, Message: "it has no hunk", File: f.Name(), At: f.Line, Hint: "hunks begin with @@"}
	}
	return r.hunks(&f)
}

// plainHeader reports whether the next two lines name a file.
func (r *reader) plainHeader() bool {
	return strings.HasPrefix(r.line(), "--- ") && strings.HasPrefix(r.peek(1), "+++ ")
}

// names reads --- and +++. git reports whether a header of git stands above, which
// has the last word on the names that are there.
func (r *reader) names(f *File, git bool) {
	before, after := fileName(r.line()[4:]), fileName(r.peek(1)[4:])
	r.at += 2
	if !git || f.Old == "" && f.New == "" {
		f.Old, f.New = unprefixed(before, after, false)
		return
	}
	if before == devNull {
		f.Old = ""
	}
	if after == devNull {
		f.New = ""
	}
}

// unprefixed takes a/ and b/ off two names where they stand for before and
// after, and makes /dev/null no name. any says that other letters do too.
func unprefixed(before, after string, any bool) (string, string) {
	strip := func(name, letters string) (string, bool) {
		if len(name) > 2 && name[1] == '/' && strings.IndexByte(letters, name[0]) >= 0 {
			return name[2:], true
		}
		return name, name == devNull
	}
	left, right := "a", "b"
	if any {
		left, right = "aicwo", "bicwo"
	}
	b, okB := strip(before, left)
	a, okA := strip(after, right)
	if !okA || !okB {
		a, b = after, before
	}
	if a == devNull {
		a = ""
	}
	if b == devNull {
		b = ""
	}
	return cleanName(b), cleanName(a)
}

// fileName is a name as a header has it: perhaps quoted, perhaps with a time.
func fileName(s string) string {
	if strings.HasPrefix(s, `"`) {
		if q, err := strconv.QuotedPrefix(s); err == nil {
			if name, err := strconv.Unquote(q); err == nil {
				return name
			}
		}
	}
	name, _, _ := strings.Cut(s, "\t")
	return strings.TrimRight(name, " \r")
}

// gitFile reads a file that begins with git's header.
func (r *reader) gitFile() error {
	f := File{Line: r.at + 1}
	f.Old, f.New = gitNames(r.line()[len("diff --git "):])
	r.at++
	for r.more() {
		switch {
		case r.plainHeader():
			r.names(&f, true)
			return r.hunks(&f)
		case strings.HasPrefix(r.line(), "GIT binary patch"), strings.HasPrefix(r.line(), "Binary files "):
			return &Problem{Code: CodeUnsupported, File: f.Name(), At: r.at + 1, Message: "it holds binary data", Hint: "only text can be patched"}
		case !r.extended(&f):
			return r.hunks(&f) // ends at once: nothing but a header
		}
		r.at++
	}
	return r.add(f)
}

// extended reads a line of git's header; false when it is none.
func (r *reader) extended(f *File) bool {
	for _, key := range [...]string{"old mode", "new mode", "new file mode", "deleted file mode", "rename from", "rename to",
		"copy from", "copy to", "similarity index", "dissimilarity index", "index"} {
		rest, ok := strings.CutPrefix(r.line()+" ", key+" ")
		if !ok {
			continue
		}
		rest = strings.TrimSuffix(rest, " ")
		switch key {
		case "new mode":
			f.Mode = rest
		case "new file mode":
			f.Old, f.Exec = "", strings.HasSuffix(rest, "755")
		case "deleted file mode":
			f.New = ""
		case "copy from", "rename from":
			f.Old, f.Copy = cleanName(fileName(rest)), f.Copy || key == "copy from"
		case "rename to", "copy to":
			f.New = cleanName(fileName(rest))
		}
		return true
	}
	return false
}

// gitNames takes the two names of "diff --git a/x b/x" apart. They may contain
// spaces: then both are the same name, as git only says it when it isn't said
// elsewhere.
func gitNames(s string) (string, string) {
	if strings.HasPrefix(s, `"`) || strings.HasSuffix(s, `"`) {
		if q, err := strconv.QuotedPrefix(s); err == nil {
			return unprefixed(fileName(q), fileName(strings.TrimPrefix(s[len(q):], " ")), true)
		}
		if i := strings.Index(s, ` "`); i > 0 {
			return unprefixed(s[:i], fileName(s[i+1:]), true)
		}
	}
	for i := range len(s) {
		if s[i] != ' ' {
			continue
		}
		if b, a := unprefixed(s[:i], s[i+1:], true); a == b {
			return b, a
		}
	}
	before, after, _ := strings.Cut(s, " ")
	return unprefixed(before, after, true)
}

// hunks reads the hunks of a file, and takes the file.
func (r *reader) hunks(f *File) error {
	for r.more() && hunkHeader(r.line()) {
		if err := r.hunk(f); err != nil {
			return err
		}
	}
	return r.add(*f)
}

// add takes a file if it says anything.
func (r *reader) add(f File) error {
	switch {
	case f.Old == "" && f.New == "":
		return &Problem{Code: CodeBadPatch, Message: "it names no file", At: f.Line}
	case len(f.Hunks) == 0 && f.Old == f.New && f.Mode == "":
		return &Problem{Code: CodeBadPatch, Message: "it has no hunk", File: f.Name(), At: f.Line, Hint: "hunks begin with @@"}
	}
	r.patch.Files = append(r.patch.Files, f)
	return nil
}

func hunkHeader(s string) bool {
	return s == "@@" || strings.HasPrefix(s, "@@ ") || strings.HasPrefix(s, "@@-")
}

// hunk reads one hunk. Its counts say where it ends; when they are wrong it
// ends where something else begins.
func (r *reader) hunk(f *File) error {
	h := Hunk{Line: r.at + 1}
	before, after, numbered := h.header(r.line())
	r.at++
	start := r.at
	if numbered {
		if r.counted(&h, before, after) {
			f.Hunks = append(f.Hunks, h)
			return nil
		}
		r.at, h.Body = start, nil
		r.remark("%s, hunk %d: the counts of its header are wrong", f.Name(), len(f.Hunks)+1)
	}
	return r.body(f, h, `\`, "put a space before lines that stay", r.boundary)
}

// header reads "@@ -1,2 +3,4 @@ text". Without numbers the text is an anchor.
func (h *Hunk) header(s string) (before, after int, numbered bool) {
	rest := strings.TrimPrefix(s, "@@")
	inner, _, closed := strings.Cut(rest, "@@")
	if f := strings.Fields(inner); closed && len(f) == 2 {
		start, b, ok1 := span(f[0], '-')
		_, a, ok2 := span(f[1], '+')
		if ok1 && ok2 {
			h.Start, h.atStart = start, start == 0
			return b, a, true
		}
	}
	if anchor := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "@@")); anchor != "" && strings.Trim(anchor, ".… ") != "" {
		h.Anchors = append(h.Anchors, anchor)
	}
	return 0, 0, false
}

// span reads "-12,3" or "-12".
func span(s string, sign byte) (start, count int, ok bool) {
	if s == "" || s[0] != sign {
		return 0, 0, false
	}
	from, n, has := strings.Cut(s[1:], ",")
	start, err := strconv.Atoi(from)
	if err != nil || start < 0 {
		return 0, 0, false
	}
	count = 1
	if has {
		if count, err = strconv.Atoi(n); err != nil || count < 0 {
			return 0, 0, false
		}
	}
	return start, count, true
}

// counted reads as many lines as the header says, and reports whether that is
// where the hunk ends.
func (r *reader) counted(h *Hunk, before, after int) bool {
	for before > 0 || after > 0 {
		if !r.more() {
			return false
		}
		if r.noEOL(h, `\`) {
			continue
		}
		l, ok := bodyLine(r.line())
		if !ok {
			return false
		}
		if l.Kind != '+' {
			before--
		}
		if l.Kind != '-' {
			after--
		}
		if before < 0 || after < 0 {
			return false
		}
		l.bare = false
		r.take(h, l)
	}
	r.noEOL(h, `\`)
	if !r.more() || r.boundary() {
		return h.changes()
	}
	c := r.line()
	return (c == "" || strings.IndexByte(" +-", c[0]) < 0) && h.changes()
}

// boundary reports whether the next line can't belong to a hunk.
func (r *reader) boundary() bool {
	s := r.line()
	switch {
	case hunkHeader(s), r.plainHeader(), strings.HasPrefix(s, "diff --git "), strings.HasPrefix(s, "Index: "), strings.HasPrefix(s, "```"), s == endMark:
		return true
	case s == "-- ", s == "--":
		return r.at+3 >= len(r.lines) // the signature of a mailed patch
	}
	return false
}
