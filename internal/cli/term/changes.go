package term

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// ChangedFile is what a turn did to a file, from its first change to its last.
type ChangedFile struct {
	Path    string `json:"path"`
	Op      string `json:"op"`                // created, changed, removed
	Added   int    `json:"added"`             // lines
	Removed int    `json:"removed"`           // lines
	Unknown string `json:"unknown,omitempty"` // why the lines can't be counted

	before, after *belay.Ref
}

// note takes a change of a file. A file that was made and removed is no change.
func (e *TurnEnd) note(p event.ArtifactChanged) {
	for i := range e.Files {
		f := &e.Files[i]
		if f.Path != p.Path {
			continue
		}
		f.after = p.After
		switch {
		case p.Op == "removed" && f.Op == "created":
			e.Files = append(e.Files[:i], e.Files[i+1:]...)
		case p.Op == "removed":
			f.Op = p.Op
		case f.Op == "removed":
			f.Op = "changed"
		}
		return
	}
	e.Files = append(e.Files, ChangedFile{Path: p.Path, Op: p.Op, before: p.Before, after: p.After})
}

// CountLines are the changed files with the lines that came and went.
func CountLines(ctx context.Context, st store.Blobs, files []ChangedFile) []ChangedFile {
	for i := range files {
		f := &files[i]
		edits, _, why := linesOf(ctx, st, f.Op, f.before, f.after)
		f.Unknown = why
		for _, l := range edits {
			switch l.Kind {
			case udiff.Insert:
				f.Added++
			case udiff.Delete:
				f.Removed++
			}
		}
	}
	return files
}

// said is a changed file on the last line of a run.
func (f ChangedFile) said() string {
	s := Line(f.Path)
	switch {
	case f.Unknown != "":
		return s + " (" + f.Op + ")"
	case f.Op != "changed":
		return fmt.Sprintf("%s (%s, +%d -%d)", s, f.Op, f.Added, f.Removed)
	}
	return fmt.Sprintf("%s (+%d -%d)", s, f.Added, f.Removed)
}

// Bounds of what a terminal is shown of one change.
const (
	maxDiffed    = 256 << 10 // bytes of a content
	maxDiffLines = 40
	maxDiffWidth = 160
)

// linesOf are the lines that differ between two kept contents, with those
// around them, or why they can't be shown.
func linesOf(ctx context.Context, st store.Blobs, op string, before, after *belay.Ref) (flat []udiff.Line, hunks []*udiff.Hunk, why string) {
	texts := [2]string{}
	for i, ref := range []*belay.Ref{before, after} {
		switch absent := i == 0 && op == "created" || i == 1 && op == "removed"; {
		case absent:
			continue
		case ref == nil:
			return nil, nil, "its content isn't kept"
		case ref.Size > maxDiffed:
			return nil, nil, fmt.Sprintf("it has %s bytes", Count(ref.Size))
		}
		b, err := st.Get(ctx, ref.Digest)
		if err != nil {
			return nil, nil, "its content can't be read"
		}
		texts[i] = string(b)
	}
	d, err := udiff.ToUnifiedDiff("", "", texts[0], udiff.Lines(texts[0], texts[1]), 2)
	if err != nil {
		return nil, nil, "it can't be compared"
	}
	for _, h := range d.Hunks {
		flat = append(flat, h.Lines...)
	}
	return flat, d.Hunks, ""
}

// diff shows what a call changed in a file. A terminal gets the lines, a log
// only how many they are.
func (l *renderer) diff(ctx context.Context, st store.Blobs, p event.ArtifactChanged) {
	if l.quiet {
		return
	}
	f := ChangedFile{Path: p.Path, Op: p.Op}
	flat, hunks, why := linesOf(ctx, st, p.Op, p.Before, p.After)
	for _, e := range flat {
		switch e.Kind {
		case udiff.Insert:
			f.Added++
		case udiff.Delete:
			f.Removed++
		}
	}
	if f.Unknown = why; why != "" {
		l.println("  " + Line(f.Path) + ": " + f.Op + "; " + why)
		return
	}
	l.println("  " + f.said())
	if !l.moving {
		return
	}
	shown := 0
	for _, h := range hunks {
		l.println(l.paintLine("36", fmt.Sprintf("    @@ line %d @@", max(1, h.ToLine))))
		for _, e := range h.Lines {
			if shown++; shown > maxDiffLines {
				l.println(fmt.Sprintf("    … %s more", Plural(len(flat)-maxDiffLines, "line")))
				return
			}
			l.println(l.diffLine(e))
		}
	}
}

func (l *renderer) diffLine(e udiff.Line) string {
	mark, colour := " ", ""
	switch e.Kind {
	case udiff.Insert:
		mark, colour = "+", "32"
	case udiff.Delete:
		mark, colour = "-", "31"
	}
	content := strings.ReplaceAll(strings.TrimRight(e.Content, "\r\n"), "\t", "    ")
	return l.paintLine(colour, "    "+mark+" "+Short(content, maxDiffWidth))
}

// paintLine colours a line where colours are wanted.
func (l *renderer) paintLine(colour, s string) string {
	if !l.colours || colour == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
