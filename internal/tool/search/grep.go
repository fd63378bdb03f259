//go:build unix

package search

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/workspace/fswalk"
	"github.com/belay-run/belay/internal/workspace/protected"
)

//go:embed grep.md
var grepDoc string

const (
	matchDefault = 200
	matchMost    = 2000
	maxContext   = 20
	maxNamed     = 5
)

type grepArgs struct {
	Pattern    string   `json:"pattern" jsonschema:"what to find"`
	Path       string   `json:"path,omitempty" jsonschema:"folder or file"`
	Include    []string `json:"include,omitempty" jsonschema:"globs; !glob leaves out"`
	Literal    bool     `json:"literal,omitempty" jsonschema:"plain text"`
	IgnoreCase bool     `json:"ignore_case,omitempty" jsonschema:"any case"`
	Before     int      `json:"before,omitempty" jsonschema:"lines before a match"`
	After      int      `json:"after,omitempty" jsonschema:"lines after it"`
	Mode       string   `json:"mode,omitempty" jsonschema:"content (default), files, count"`
	Limit      int      `json:"limit,omitempty" jsonschema:"default 200"`
	Hidden     bool     `json:"hidden,omitempty" jsonschema:"hidden files too"`
	Ignored    bool     `json:"ignored,omitempty" jsonschema:"ignored files too"`
}

// Grep searches in files.
func Grep() tool.Tool { return tool.New(spec("grep", grepDoc), grep) }

func grep(ctx context.Context, c tool.Call, in grepArgs) (r tool.Result, err error) {
	o, err := in.order()
	if err != nil {
		return r, err
	}
	wanted, err := in.wanted()
	if err != nil {
		return r, err
	}
	p, err := placeOf(file.Within(c.Root.Name(), in.Path), in.Hidden || wanted.hidden(), in.Ignored)
	if err != nil {
		return r, err
	}
	p.walk.Enter = func(dir string) bool { return wanted.below(p.under(dir)) }
	g := &gathered{order: o, limit: in.Limit}
	asked := protected.Secret(p.start) != "" // the gate asks about a name, not about what lies in a folder
	o.cut = c.Sink.Cut
	s := newScanner(o)
	report, err := fswalk.Walk(ctx, c.Root, p.start, p.walk, func(e fswalk.Entry) error {
		if !e.Type.IsRegular() || e.Path != p.start && !wanted.match(p.under(e.Path)) {
			return nil
		}
		if !asked && protected.Secret(e.Path) != "" {
			g.secret.add(e.Path)
			return nil
		}
		f := s.file(e)
		gone := errors.Is(f.err, fs.ErrNotExist) || errors.Is(f.err, files.ErrNotRegular) // before it was looked at
		if !gone && !g.take(f) {
			return fswalk.SkipAll
		}
		return nil
	})
	if err != nil {
		return r, failed(err, p.start)
	}
	return tool.Result{Text: g.text(p, report)}, ctx.Err()
}

// order checks the arguments, and fills in what they leave open.
func (in *grepArgs) order() (o order, err error) {
	if in.Mode == "" {
		in.Mode = modeContent
	}
	if in.Limit == 0 {
		in.Limit = matchDefault
	}
	switch {
	case !slices.Contains([]string{modeContent, modeFiles, modeCount}, in.Mode):
		return o, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "mode is content, files or count, not %q", in.Mode)
	case in.Limit < 0 || in.Limit > matchMost:
		return o, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "limit is at most %d", matchMost)
	case min(in.Before, in.After) < 0 || max(in.Before, in.After) > maxContext:
		return o, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "before and after are at most %d", maxContext)
	}
	m, err := newMatcher(in.Pattern, in.Literal, in.IgnoreCase)
	return order{m: m, mode: in.Mode, before: in.Before, after: in.After, most: in.Limit, room: room}, err
}

// choice is which files are searched: those that fit one of yes, if there are
// any, and none of no.
type choice struct{ yes, no []*fswalk.Glob }

func (in *grepArgs) wanted() (w choice, err error) {
	var yes, no []string
	for _, p := range in.Include {
		if rest, ok := strings.CutPrefix(p, "!"); ok {
			no = append(no, rest)
			continue
		}
		yes = append(yes, p)
	}
	if w.yes, err = globs(yes); err == nil {
		w.no, err = globs(no)
	}
	return w, err
}

func (w choice) match(p string) bool {
	fits := func(g *fswalk.Glob) bool { return g.Match(p) }
	return (len(w.yes) == 0 || slices.ContainsFunc(w.yes, fits)) && !slices.ContainsFunc(w.no, fits)
}

func (w choice) below(dir string) bool {
	return len(w.yes) == 0 || slices.ContainsFunc(w.yes, func(g *fswalk.Glob) bool { return g.Below(dir) })
}

func (w choice) hidden() bool { return slices.ContainsFunc(w.yes, (*fswalk.Glob).Hidden) }

// gathered is an answer in the making.
type gathered struct {
	order
	limit    int
	out      strings.Builder
	matches  int
	files    int // with matches
	searched int
	cut      string // why the search ended early
	binary   names
	failed   names
	secret   names // left out
	long     names
}

// names are the first few names of a kind, and how many more there are.
type names struct {
	first []string
	more  int
}

func (n *names) add(name string) {
	if len(n.first) < maxNamed {
		n.first = append(n.first, name)
		return
	}
	n.more++
}

func (n *names) note(what string) string {
	if len(n.first) == 0 {
		return ""
	}
	return what + ": " + named(n.first, n.more)
}

// take adds the result of the next file; false ends the search.
func (g *gathered) take(r result) bool {
	g.searched++
	switch {
	case r.err != nil:
		g.failed.add(r.path)
		return true
	case r.binary:
		g.binary.add(r.path)
		return true
	case r.long:
		g.long.add(r.path)
	}
	if r.matches == 0 {
		return true
	}
	if g.mode == modeContent {
		return g.content(r)
	}
	line := file.Visible(r.path)
	if g.mode == modeCount {
		line = fmt.Sprintf("%s: %d", line, r.matches)
	}
	if g.out.Len()+len(line) >= room || g.files >= g.limit {
		g.cut = plural(g.files, "file", "files") + " shown"
		return false
	}
	g.files, g.matches = g.files+1, g.matches+r.matches
	g.out.WriteString(line + "\n")
	return true
}

// content adds as many matches of a file as there is room for.
func (g *gathered) content(r result) bool {
	head := file.Visible(r.path) + "\n"
	if g.files > 0 {
		head = "\n" + head
	}
	left := min(g.limit-g.matches, len(r.ends))
	for left > 0 && g.out.Len()+len(head)+r.ends[left-1] > room {
		left--
	}
	if left > 0 {
		g.files, g.matches = g.files+1, g.matches+left
		g.out.WriteString(head)
		g.out.Write(r.text[:r.ends[left-1]])
	}
	if left < len(r.ends) || r.stopped {
		g.cut = plural(g.matches, "match", "matches") + " shown"
		return false
	}
	return true
}

// text is the answer with all that must be said about it.
func (g *gathered) text(p place, report fswalk.Report) string {
	said := ""
	switch {
	case g.cut != "":
		said = g.cut + ", and the search ended there; narrow the pattern, the path or include"
		if g.limit < matchMost && g.out.Len() < room*3/4 {
			said += ", or raise limit"
		}
	case g.files == 0:
		said = "no match in " + plural(g.searched, "file", "files")
		if left := p.leftOut(); left != "" {
			said += "; " + left
		}
	case g.mode == modeFiles:
		said = plural(g.files, "file", "files")
	default:
		said = plural(g.matches, "match", "matches") + " in " + plural(g.files, "file", "files")
	}
	return strings.TrimSuffix(g.out.String()+notes(said, g.binary.note("binary files, not searched"), g.failed.note("files that can't be read"),
		g.secret.note("not searched, because they usually hold secrets; name one as path to search it"),
		g.long.note("lines too long to be searched to their end"), unread(report)), "\n")
}
