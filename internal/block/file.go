package block

import (
	"fmt"

	"github.com/aymanbagabas/go-udiff"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// File is a change of a file, or of several changes the first content and the last.
type File struct {
	Path    string `json:"path"`
	Op      string `json:"op"`                // created, changed, removed
	Added   int    `json:"added"`             // lines
	Removed int    `json:"removed"`           // lines
	Unknown string `json:"unknown,omitempty"` // why the lines can't be counted

	Hunks         []Hunk `json:"hunks,omitempty"`
	before, after *belay.Ref
}

// Hunk is a run of changed lines with those around them.
type Hunk struct {
	Line  int      `json:"line"`  // number of its first line after the change, from 1
	Lines []string `json:"lines"` // each with "+", "-" or " " in front, without its end
}

// maxDiffed is how many bytes of a content are compared.
const maxDiffed = 256 << 10

// Compare compares two contents of a file.
func Compare(path, op, before, after string) File {
	f := File{Path: path, Op: op}
	if max(len(before), len(after)) > maxDiffed {
		f.Unknown = fmt.Sprintf("it has %s bytes", Count(int64(max(len(before), len(after)))))
		return f
	}
	d, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), 2)
	if err != nil {
		f.Unknown = "it can't be compared"
		return f
	}
	for _, h := range d.Hunks {
		hunk := Hunk{Line: max(1, h.ToLine)}
		for _, l := range h.Lines {
			mark := " "
			switch l.Kind {
			case udiff.Insert:
				mark = "+"
				f.Added++
			case udiff.Delete:
				mark = "-"
				f.Removed++
			}
			hunk.Lines = append(hunk.Lines, mark+trimEnd(l.Content))
		}
		f.Hunks = append(f.Hunks, hunk)
	}
	return f
}

// change is the change of a file that a fact names.
func (f *Fold) change(c File) File {
	texts := [2]string{}
	for i, ref := range []*belay.Ref{c.before, c.after} {
		switch absent := i == 0 && c.Op == "created" || i == 1 && c.Op == "removed"; {
		case absent:
			continue
		case ref == nil:
			c.Unknown = "its content isn't kept"
			return c
		case ref.Size > maxDiffed:
			c.Unknown = fmt.Sprintf("it has %s bytes", Count(ref.Size))
			return c
		}
		text, ok := f.load(*ref)
		if !ok {
			c.Unknown = "its content can't be read"
			return c
		}
		texts[i] = text
	}
	out := Compare(c.Path, c.Op, texts[0], texts[1])
	out.before, out.after = c.before, c.after
	return out
}

// merge adds a change to those of a turn: of several of one file, one is left. A file
// that was made and removed is no change.
func merge(all []File, p event.ArtifactChanged) []File {
	for i := range all {
		f := &all[i]
		if f.Path != p.Path {
			continue
		}
		f.after = p.After
		switch {
		case p.Op == "removed" && f.Op == "created":
			return append(all[:i], all[i+1:]...)
		case p.Op == "removed":
			f.Op = p.Op
		case f.Op == "removed":
			f.Op = "changed"
		}
		return all
	}
	return append(all, File{Path: p.Path, Op: p.Op, before: p.Before, after: p.After})
}

// counts are the lines that came and went, or the operation where they aren't known.
func (f File) counts(o Options) string {
	switch {
	case f.Unknown != "":
		return f.Op
	case f.Op != "changed":
		return fmt.Sprintf("%s, +%d %s%d", f.Op, f.Added, o.minus(), f.Removed)
	}
	return fmt.Sprintf("+%d %s%d", f.Added, o.minus(), f.Removed)
}
