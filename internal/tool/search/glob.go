//go:build unix

package search

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/workspace/fswalk"
)

//go:embed glob.md
var globDoc string

const (
	globDefault = 500
	globMost    = 5000
)

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"with * ? [a-z] ** and {a,b}"`
	Path    string `json:"path,omitempty" jsonschema:"folder"`
	Limit   int    `json:"limit,omitempty" jsonschema:"default 500"`
	Hidden  bool   `json:"hidden,omitempty" jsonschema:"hidden files too"`
	Ignored bool   `json:"ignored,omitempty" jsonschema:"ignored files too"`
}

// Glob finds files by name.
func Glob() tool.Tool { return tool.New(spec("glob", globDoc), glob) }

func glob(ctx context.Context, c tool.Call, in globArgs) (r tool.Result, err error) {
	if in.Limit < 0 || in.Limit > globMost {
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "limit is at most %d", globMost)
	}
	gs, err := globs([]string{in.Pattern})
	if err != nil {
		return r, err
	}
	p, err := placeOf(file.Within(c.Root.Name(), in.Path), in.Hidden || gs[0].Hidden(), in.Ignored)
	if err != nil {
		return r, err
	}
	p.walk.Enter = func(dir string) bool { return gs[0].Below(p.under(dir)) }
	f := found{limit: in.Limit}
	if f.limit == 0 {
		f.limit = globDefault
	}
	report, err := fswalk.Walk(ctx, c.Root, p.start, p.walk, func(e fswalk.Entry) error {
		if gs[0].Match(p.under(e.Path)) {
			f.add(e.Path)
		}
		return nil
	})
	if err != nil {
		return r, failed(err, p.start)
	}
	return tool.Result{Text: f.text(p, report)}, nil
}

// found collects names, up to a limit, and counts all.
type found struct {
	limit int
	out   strings.Builder
	shown int
	total int
}

func (f *found) add(name string) {
	f.total++
	if line := file.Visible(name); f.shown < f.limit && f.out.Len()+len(line) < room {
		f.out.WriteString(line + "\n")
		f.shown++
	}
}

func (f *found) text(p place, report fswalk.Report) string {
	said := ""
	switch {
	case f.total == 0:
		said = "no file matches"
		if left := p.leftOut(); left != "" {
			said += "; " + left
		}
	case f.shown < f.total:
		said = fmt.Sprintf("%d of %d files shown; narrow the pattern or the path", f.shown, f.total)
	}
	return strings.TrimSuffix(f.out.String()+notes(said, unread(report)), "\n")
}
