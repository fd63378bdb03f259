package patch

import (
	"fmt"
	"slices"
	"strings"
)

// Tree gives the content of a file before the patch; ok is false for one that
// isn't there. An error ends the application and is passed on.
type Tree func(name string) (content string, ok bool, err error)

// Change is what becomes of one file.
type Change struct {
	Name          string
	Before, After string
	Was, Is       bool   // it is there before, and after
	From          string // the file whose place or mode it takes over, when it was moved or copied
	Exec          bool   // it is made executable
}

// Applied is what a patch makes of a tree.
type Applied struct {
	Changes []Change // each file once; made and changed ones first, then removed ones, by name
	Remarks []string // what isn't exactly as the patch says
}

// Apply returns the result of the patch on a tree. When something doesn't fit
// the error is Problems, all of them, and nothing is to be changed.
func (p *Patch) Apply(tree Tree) (Applied, error) {
	a := &applier{tree: tree, files: map[string]*Change{}}
	a.remarks = slices.Clone(p.Remarks)
	for i := range p.Files {
		if err := a.file(&p.Files[i]); err != nil {
			return Applied{}, err
		}
	}
	if len(a.problems) > 0 {
		return Applied{}, a.problems
	}
	out := Applied{Changes: a.changes(), Remarks: a.remarks}
	if len(out.Changes) == 0 {
		return Applied{}, Problems{{Code: CodeNoChange, Message: "the patch changes nothing"}}
	}
	return out, nil
}

type applier struct {
	tree     Tree
	files    map[string]*Change
	problems Problems
	remarks  []string
}

// look is a file as it is by now.
func (a *applier) look(name string) (*Change, error) {
	if c := a.files[name]; c != nil {
		return c, nil
	}
	content, ok, err := a.tree(name)
	if err != nil {
		return nil, err
	}
	c := &Change{Name: name, Before: content, After: content, Was: ok, Is: ok}
	a.files[name] = c
	return c, nil
}

func (a *applier) problem(f *File, code, hint, format string, args ...any) {
	a.problems = append(a.problems, &Problem{Code: code, Message: fmt.Sprintf(format, args...), File: f.Name(), At: f.Line, Hint: hint})
}

// file makes the change of one file, in memory.
func (a *applier) file(f *File) error {
	from, old := &Change{}, ""
	if f.Old != "" {
		var err error
		if from, err = a.look(f.Old); err != nil {
			return err
		}
		asBefore := f.Copy && from.Was // what git copies is the file as it was before the patch
		if !from.Is && !asBefore {
			a.problem(f, CodeMissing, "look with list or glob for what is there", "%s does not exist", f.Old)
			return nil
		}
		if old = from.After; asBefore {
			old = from.Before
		}
	}
	to := from
	if f.New != "" && f.New != f.Old {
		var err error
		if to, err = a.look(f.New); err != nil {
			return err
		}
		if to.Is {
			a.problem(f, CodeExists, "update it, or remove it first", "%s exists already", f.New)
			return nil
		}
	}
	content, said, problems := f.content(old)
	a.problems = append(a.problems, problems...)
	a.remarks = append(a.remarks, said...)
	if len(problems) > 0 {
		return nil
	}
	a.settle(f, from, to, content)
	return nil
}

// settle writes down the outcome of the file.
func (a *applier) settle(f *File, from, to *Change, content string) {
	if f.Mode != "" {
		a.remarks = append(a.remarks, fmt.Sprintf("%s: its mode was not changed to %s", f.Name(), f.Mode))
	}
	switch {
	case f.New == "" && content != "":
		n := len(strings.Split(strings.TrimSuffix(content, "\n"), "\n"))
		a.problem(f, CodeNotEmpty, "read it and say all of its lines, or use Delete File", "it would be removed, but has %d lines that the patch doesn't know", n)
	case f.New == "":
		*from = Change{Name: from.Name, Before: from.Before, Was: from.Was}
	case f.Old == "":
		to.After, to.Is, to.Exec = content, true, f.Exec
	case f.New == f.Old:
		from.After = content
	default:
		to.After, to.Is, to.From, to.Exec = content, true, f.Old, from.Exec
		if from.From != "" {
			to.From = from.From
		}
		if !f.Copy {
			*from = Change{Name: from.Name, Before: from.Before, Was: from.Was}
		}
	}
}

// changes are the files that differ from what they were.
func (a *applier) changes() []Change {
	var all []Change
	for _, c := range a.files {
		if c.Was != c.Is || c.Before != c.After {
			all = append(all, *c)
		}
	}
	slices.SortFunc(all, func(a, b Change) int {
		if a.Is != b.Is {
			if a.Is {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}

// content is what the hunks make of a content.
func (f *File) content(old string) (content string, remarks []string, problems Problems) {
	if f.New == "" && len(f.Hunks) == 0 {
		return "", nil, nil // removed without being shown
	}
	p := placer{file: f, text: newText(old)}
	for i := range f.Hunks {
		p.place(i)
	}
	if len(p.problems) == 0 {
		content = p.merge()
	}
	return content, p.remarks, p.problems
}

// text is a content as lines.
type text struct {
	lines []string
	open  bool // nothing ends the last line
	crlf  bool // every line ends in CR LF, which isn't in lines
}

func newText(s string) *text {
	t := &text{}
	if CRLF(s) {
		t.crlf, s = true, strings.ReplaceAll(s, "\r\n", "\n")
	}
	if s == "" {
		return t
	}
	t.lines = strings.Split(s, "\n")
	if last := len(t.lines) - 1; t.lines[last] == "" {
		t.lines = t.lines[:last]
	} else {
		t.open = true
	}
	return t
}

// CRLF reports whether every line of a text ends in CR LF.
func CRLF(s string) bool {
	n := strings.Count(s, "\n")
	return n > 0 && n == strings.Count(s, "\r\n")
}

// put together lines of the same kind of text.
func (t *text) join(lines []string, open bool) string {
	if len(lines) == 0 {
		return ""
	}
	s := strings.Join(lines, "\n")
	if !open {
		s += "\n"
	}
	if t.crlf {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

// ours is a line of the patch as this text has lines.
func (t *text) ours(s string) string {
	if t.crlf {
		return strings.TrimSuffix(s, "\r")
	}
	return s
}
