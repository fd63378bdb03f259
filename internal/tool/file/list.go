//go:build unix

package file

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/workspace/fswalk"
)

//go:embed list.md
var listDoc string

const (
	defaultEntries = 1000
	maxEntries     = 5000
	maxDepth       = 32
	maxWalk        = 500_000 // entries that are looked at to count what is left out
)

type listArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"folder"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels to go down, default 1"`
	Limit int    `json:"limit,omitempty" jsonschema:"default 1000"`
}

// List shows what is in a folder. Links are named, not followed.
func List() tool.Tool {
	spec := reading("list", strings.TrimSpace(listDoc))
	spec.OutputLimit = readLimit
	return tool.New(spec, list)
}

func list(ctx context.Context, c tool.Call, in listArgs) (r tool.Result, err error) {
	if in.Depth < 0 || in.Depth > maxDepth || in.Limit < 0 || in.Limit > maxEntries {
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "depth is at most %d and limit at most %d", maxDepth, maxEntries)
	}
	if in.Path == "" {
		in.Path = "."
	}
	err = at(ctx, c.Root, in.Path, func(p *place) error {
		r, err = p.list(ctx, in)
		return err
	})
	return r, err
}

func (p *place) list(ctx context.Context, in listArgs) (tool.Result, error) {
	if p.info == nil {
		return tool.Result{}, fs.ErrNotExist
	}
	if !p.info.IsDir() {
		return tool.Result{}, tool.Failf(tool.BadArguments, CodeNotDirectory, "%s is not a folder", show(p.name)).WithHint("use read for files")
	}
	dir := p.dir
	if p.base != "." {
		var err error
		if dir, err = p.open(p.dir, p.base, p.info); err != nil {
			return tool.Result{}, err
		}
	}
	l := &listing{limit: in.Limit, room: readLimit - 512}
	if l.limit == 0 {
		l.limit = defaultEntries
	}
	all := fswalk.Options{Hidden: true, Ignored: true, Folders: true, Depth: max(in.Depth, 1)}
	report, err := fswalk.Walk(ctx, dir, ".", all, func(e fswalk.Entry) error { return l.add(path.Join(p.name, e.Path), e) })
	if err != nil {
		return tool.Result{}, err
	}
	if slices.Contains(report.Unread, ".") {
		return tool.Result{}, fs.ErrPermission
	}
	return tool.Result{Text: l.text()}, nil
}

// listing collects entries in order, up to a limit, and counts all.
type listing struct {
	limit  int
	room   int // bytes
	out    strings.Builder
	shown  int
	walked int
	more   bool // not everything was counted
}

// add writes one entry if there is room.
func (l *listing) add(full string, e fswalk.Entry) error {
	if l.walked >= maxWalk {
		l.more = true
		return fswalk.SkipAll
	}
	l.walked++
	if l.shown >= l.limit || l.out.Len() >= l.room {
		return nil
	}
	line := Visible(full)
	switch {
	case e.Type.IsDir():
		line += "/"
	case e.Type&fs.ModeSymlink != 0:
		target, err := e.Link()
		if err != nil {
			target = "?"
		}
		line += " -> " + Visible(target)
	case e.Type.IsRegular():
		if info, err := e.Info(); err == nil {
			line += " " + strconv.FormatInt(info.Size(), 10)
		}
	default:
		line += " (" + kindOf(e.Type) + ")"
	}
	l.shown++
	l.out.WriteString(line + "\n")
	return nil
}

func (l *listing) text() string {
	if l.walked == 0 {
		return "[empty folder]"
	}
	if left := l.walked - l.shown; left > 0 || l.more {
		least := ""
		if l.more {
			least = "at least "
		}
		fmt.Fprintf(&l.out, "[%d entries shown, %s%d left out; list a folder below]\n", l.shown, least, left)
	}
	return strings.TrimSuffix(l.out.String(), "\n")
}

// Visible is a name as it is, or quoted when it would break the line.
func Visible(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, unicode.IsControl) < 0 {
		return name
	}
	return strconv.Quote(name)
}
