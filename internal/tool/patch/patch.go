// Package patch reads patches and applies them. It knows two forms: unified
// diffs, as diff and git write them, and the form that begins with "*** Begin
// Patch". It is pure: contents go in, contents come out.
//
// What it promises: a patch is applied as a whole or not at all; a hunk goes
// where its old lines stand, and nowhere if they stand nowhere or in several
// places; what is not where the patch says, or not exactly as it says, is
// remarked. It forgives what writers of patches get wrong without leaving
// doubt: wrong counts and line numbers, white space at the ends of lines,
// typographic quotes, missing end-of-file markers.
package patch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	// maxFiles is how many files one patch may touch.
	maxFiles = 50
	// maxHunks bounds the hunks of a patch.
	maxHunks = 2000
)

// Codes of problems.
const (
	CodeNotAPatch   = "NOT_A_PATCH"   // nothing in the text is a change of a file
	CodeBadPatch    = "BAD_PATCH"     // a part of it can't be read
	CodeNoMatch     = "HUNK_MISMATCH" // the old lines of a hunk aren't in the file
	CodeAmbiguous   = "AMBIGUOUS"     // they are in several places
	CodeOverlap     = "HUNKS_OVERLAP" // two hunks change the same lines
	CodeMissing     = "NO_SUCH_FILE"  // a file to change isn't there
	CodeExists      = "FILE_EXISTS"   // a file to make is there
	CodeNotEmpty    = "NOT_EMPTY"     // a removed file would keep lines
	CodeNoChange    = "NO_CHANGE"     // the patch changes nothing
	CodeUnsupported = "UNSUPPORTED"   // binary data
)

// Patch is what a text asks for.
type Patch struct {
	Files   []File
	Remarks []string // what was forgiven when it was read
}

// File is the change of one file. A file without Old is made, one without New
// removed; two different names move it, or copy it.
type File struct {
	Old, New string
	Copy     bool
	Exec     bool   // a made file is to be executable
	Mode     string // a change of mode that isn't made, as the patch says it
	Hunks    []Hunk
	Line     int // of the patch where it begins
}

// Name is what the file is called in messages.
func (f *File) Name() string {
	if f.New != "" {
		return f.New
	}
	return f.Old
}

// Hunk is one place of a file.
type Hunk struct {
	Line    int      // of the patch where it begins
	Start   int      // first old line by its header, from 1; 0 when it isn't said
	Anchors []string // lines that stand before it, outermost first
	AtEnd   bool     // it ends the file
	Body    []Line

	atStart bool // its header says line 0: lines are added before all others
}

// Line is one line of a hunk.
type Line struct {
	Kind  byte // ' ' both, '-' old, '+' new
	Text  string
	NoEOL bool // nothing ends it: it is the last of its file
	bare  bool // it had no sign in the patch
	at    int  // its line of the patch
}

// Names are the files that a patch touches, each once, sorted, as paths with
// slashes. They aren't checked: one may lead anywhere.
func (p *Patch) Names() []string {
	var names []string
	for i := range p.Files {
		for _, n := range []string{p.Files[i].Old, p.Files[i].New} {
			if n != "" {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Rewrite replaces the texts of a patch's lines. A text of several lines becomes as
// many lines of its kind.
func (p *Patch) Rewrite(text func(f *File, text string) (string, error)) error {
	for i := range p.Files {
		f := &p.Files[i]
		for j := range f.Hunks {
			h := &f.Hunks[j]
			for k, a := range h.Anchors {
				var err error
				if h.Anchors[k], err = text(f, a); err != nil {
					return err
				}
			}
			body := make([]Line, 0, len(h.Body))
			for _, l := range h.Body {
				all, err := text(f, l.Text)
				if err != nil {
					return err
				}
				for each := range strings.SplitSeq(all, "\n") {
					l.Text = each
					body = append(body, l)
				}
			}
			h.Body = body
		}
	}
	return nil
}

// Problem is why a patch can't be read or applied, at one place.
type Problem struct {
	Code    string
	Message string
	File    string // name; empty when it isn't about one
	Hunk    int    // number in its file, from 1; 0 when it isn't about one
	At      int    // line of the patch; 0 when unknown
	Line    int    // line of the file that was looked at; 0 when unknown
	Want    string // what the patch expects there
	Got     string // what is there
	Hint    string
}

// Error implements error.
func (p *Problem) Error() string {
	var b strings.Builder
	switch {
	case p.File != "" && p.Hunk > 0:
		fmt.Fprintf(&b, "%s, hunk %d", p.File, p.Hunk)
	case p.File != "":
		b.WriteString(p.File)
	}
	if p.At > 0 {
		if b.Len() > 0 {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "(line %d of the patch)", p.At)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are all that is wrong with a patch, in its order.
type Problems []*Problem

// Error implements error.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// cleanName is the one spelling of a name; what it means is for others to say.
func cleanName(name string) string {
	if name == "" {
		return ""
	}
	return path.Clean(name)
}
