//go:build unix

package file

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/patch"
)

//go:embed edit.md
var editDoc string

type editArgs struct {
	Path string `json:"path" jsonschema:"file"`
	Old  string `json:"old" jsonschema:"text to replace"`
	New  string `json:"new" jsonschema:"text to put there"`
	All  bool   `json:"all,omitempty" jsonschema:"every occurrence"`
}

// Edit replaces text in files.
func Edit() tool.Tool {
	return tool.NewRecoverable(writing("edit", strings.TrimSpace(editDoc)), edit, recoverEdit)
}

func edit(ctx context.Context, c tool.Call, in editArgs) (r tool.Result, err error) {
	switch {
	case in.Old == "":
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "old is empty").WithHint("use write to make a file, or name the text to replace")
	case in.Old == in.New:
		return r, tool.Failf(tool.BadArguments, CodeNoChange, "old and new are the same")
	}
	err = at(ctx, c.Root, in.Path, func(p *place) error {
		ch, err := open(c, p)
		if err != nil {
			return err
		}
		if ch.absent {
			return fs.ErrNotExist
		}
		if in.Old, err = ch.restore(in.Old); err == nil {
			in.New, err = ch.restore(in.New)
		}
		if err != nil {
			return err
		}
		e, err := in.apply(ch.before)
		if err != nil {
			return err
		}
		if len(e.after) > maxContent {
			return tool.Failf(tool.BadArguments, CodeTooLarge, "%s would have %s; a file may have %s", show(p.name), size(int64(len(e.after))), size(maxContent))
		}
		r = tool.Result{
			Text:  fmt.Sprintf("edited %s: %s, %s%s", p.name, e.said(), summary(ch.before, e.after), ch.note()),
			Files: p.seen(digestOf(e.after)),
		}
		return ch.apply(e.after)
	})
	return done(r, err)
}

// edited is what an edit makes of a content.
type edited struct {
	after []byte
	lines []int // of the first occurrences
	count int
}

func (e edited) said() string {
	if e.count == 1 {
		return fmt.Sprintf("1 replacement at line %d", e.lines[0])
	}
	return fmt.Sprintf("%d replacements", e.count)
}

// apply makes the edit, or says what is wrong with it. In a file whose lines
// all end in CR LF, line ends of the arguments are taken as such.
func (in editArgs) apply(before []byte) (edited, error) {
	src, old, repl := string(before), in.Old, in.New
	if patch.CRLF(src) {
		old, repl = toCRLF(old), toCRLF(repl)
	}
	count, lines := occurrences(src, old)
	switch {
	case count == 0:
		return edited{}, in.notFound(src)
	case count > 1 && !in.All:
		return edited{}, tool.Failf(tool.BadArguments, CodeAmbiguous, "old occurs %d times in %s, at lines %s", count, show(in.Path), patch.ListLines(lines, count)).
			WithHint("add text around it until it is unique, or set all")
	}
	after := strings.ReplaceAll(src, old, repl)
	if in.All {
		count = strings.Count(src, old) // those that overlap are one
	}
	if after == src {
		return edited{}, tool.Failf(tool.BadArguments, CodeNoChange, "the edit changes nothing in %s", show(in.Path))
	}
	return edited{[]byte(after), lines, count}, nil
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

const maxLinesNamed = 20

// occurrences counts where old stands, also overlapping, and names the lines
// of the first ones.
func occurrences(src, old string) (count int, lines []int) {
	line, from := 1, 0
	for {
		i := strings.Index(src[from:], old)
		if i < 0 {
			return count, lines
		}
		count++
		if len(lines) < maxLinesNamed {
			line += strings.Count(src[from:from+i], "\n")
			lines = append(lines, line)
			if src[from+i] == '\n' {
				line++
			}
		}
		from += i + 1
	}
}

// notFound says that old isn't there, and what is most like it.
func (in editArgs) notFound(src string) error {
	e := tool.Failf(tool.BadArguments, CodeNotFoundText, "old does not occur in %s", show(in.Path)).
		WithHint("read the file again and copy the text exactly")
	line, text, same := nearestLine(src, in.Old)
	switch {
	case line == 0:
	case same:
		e.Hint = fmt.Sprintf("line %d is the first line of old but for white space, or what follows it differs: %q", line, text)
	default:
		e.Hint = fmt.Sprintf("the line most like it is %d: %q", line, text)
	}
	return e
}
