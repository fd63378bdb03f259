//go:build unix

package file

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/tool"
)

//go:embed write.md
var writeDoc string

type writeArgs struct {
	Path    string `json:"path" jsonschema:"file"`
	Content string `json:"content" jsonschema:"all of the new content"`
}

// Write replaces or makes whole files.
func Write() tool.Tool {
	return tool.NewRecoverable(writing("write", strings.TrimSpace(writeDoc)), write, recoverWrite)
}

func write(ctx context.Context, c tool.Call, in writeArgs) (r tool.Result, err error) {
	if len(in.Content) > maxContent {
		return r, tool.Failf(tool.BadArguments, CodeTooLarge, "content has %s; a file may have %s", size(int64(len(in.Content))), size(maxContent))
	}
	err = at(ctx, c.Root, in.Path, func(p *place) error {
		ch, err := open(c, p)
		if err != nil {
			return err
		}
		if in.Content, err = ch.restore(in.Content); err != nil {
			return err
		}
		after := []byte(in.Content)
		r = ch.written(after)
		if !ch.absent && bytes.Equal(ch.before, after) {
			r.Text = fmt.Sprintf("%s has this content already", p.name)
			return nil
		}
		return ch.apply(after)
	})
	return done(r, err)
}

// written is the result of a write.
func (ch *change) written(after []byte) tool.Result {
	verb := "replaced"
	if ch.absent {
		verb = "created"
	}
	return tool.Result{
		Text:  fmt.Sprintf("%s %s: %s%s", verb, ch.p.name, summary(ch.before, after), ch.note()),
		Files: ch.p.seen(digestOf(after)),
	}
}

// done drops a result that an error made untrue.
func done(r tool.Result, err error) (tool.Result, error) {
	if err != nil {
		return tool.Result{}, err
	}
	return r, nil
}
