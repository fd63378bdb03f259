//go:build unix

package file

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/tool"
)

//go:embed notebook_edit.md
var notebookEditDoc string

type notebookEditArgs struct {
	Path   string `json:"path" jsonschema:"notebook, a .ipynb file"`
	Cell   int    `json:"cell" jsonschema:"number of the cell, from 1; with insert, the new cell comes behind it and 0 is the beginning"`
	Mode   string `json:"mode,omitempty" jsonschema:"replace (default), insert, insert_markdown, delete"`
	Source string `json:"source,omitempty" jsonschema:"all of the cell's text"`
}

// NotebookEdit changes single cells of notebooks.
func NotebookEdit() tool.Tool {
	spec := writing("notebook_edit", strings.TrimSpace(notebookEditDoc))
	spec.Load = tool.LoadSearch
	return tool.NewRecoverable(spec, notebookEdit, recoverNotebookEdit)
}

func notebookEdit(ctx context.Context, c tool.Call, in notebookEditArgs) (r tool.Result, err error) {
	err = at(ctx, c.Root, in.Path, func(p *place) error {
		ch, err := open(c, p)
		if err != nil {
			return err
		}
		if ch.absent {
			return fs.ErrNotExist
		}
		if in.Source, err = ch.restore(in.Source); err != nil {
			return err
		}
		after, said, err := in.apply(ch.before)
		if err != nil {
			return err
		}
		if len(after) > maxContent {
			return tool.Failf(tool.BadArguments, CodeTooLarge, "%s would have %s; a file may have %s", show(p.name), size(int64(len(after))), size(maxContent))
		}
		r = tool.Result{Text: fmt.Sprintf("%s of %s%s", said, p.name, ch.note()), Files: p.seen(digestOf(after))}
		return ch.apply(after)
	})
	return done(r, err)
}

func recoverNotebookEdit(ctx context.Context, c tool.Call, in notebookEditArgs) (tool.Result, bool, error) {
	return recovered(ctx, c, in.Path, func(was past) ([]byte, bool) {
		after, _, err := in.apply(was.content)
		return after, was.kept && err == nil
	})
}

// apply makes the change to a notebook's content, and says what it did.
func (in notebookEditArgs) apply(before []byte) (after []byte, said string, err error) {
	n, ok := parseNotebook(before)
	if !ok {
		return nil, "", tool.Failf(tool.BadArguments, CodeNotNotebook, "%s is no notebook of format 4", show(in.Path)).WithHint("edit and write change other files")
	}
	least := 1
	switch in.Mode {
	case "insert", "insert_markdown":
		least = 0
	case "", "replace", "delete":
	default:
		return nil, "", tool.Failf(tool.BadArguments, tool.CodeBadArguments, "there is no mode %q", in.Mode).WithHint("replace, insert, insert_markdown, delete")
	}
	if in.Cell < least || in.Cell > len(n.cells) {
		return nil, "", tool.Failf(tool.BadArguments, CodeNoCell, "%s has %d cells; there is no cell %d", show(in.Path), len(n.cells), in.Cell)
	}
	number := in.Cell
	switch in.Mode {
	case "insert", "insert_markdown":
		cell := notebookCell{"cell_type": encoded("code"), "metadata": []byte("{}"), "outputs": []byte("[]"), "execution_count": []byte("null")}
		if in.Mode == "insert_markdown" {
			cell = notebookCell{"cell_type": encoded("markdown"), "metadata": []byte("{}")}
		}
		cell["source"] = in.source()
		var minor int
		if json.Unmarshal(n.fields["nbformat_minor"], &minor) == nil && minor >= 5 {
			cell["id"] = encoded(strings.TrimPrefix(digestOf(before), "sha256:")[:8]) // the content has no such id: it isn't known before it is written
		}
		n.cells = slices.Insert(n.cells, in.Cell, cell)
		number, said = in.Cell+1, "inserted cell"
	case "delete":
		n.cells = slices.Delete(n.cells, in.Cell-1, in.Cell)
		said = "deleted cell"
	default:
		cell := n.cells[in.Cell-1]
		if lines(cell["source"]) == in.Source {
			return nil, "", tool.Failf(tool.BadArguments, CodeNoChange, "cell %d has this text already", in.Cell)
		}
		cell["source"] = in.source()
		if cell.kind() == "code" { // what it returned was of another text
			cell["outputs"], cell["execution_count"] = []byte("[]"), []byte("null")
		}
		said = "replaced cell"
	}
	after, err = n.bytes()
	return after, fmt.Sprintf("%s %d, now %d cells,", said, number, len(n.cells)), err
}

// source is the text as notebooks have it: a list of lines with their ends.
func (in notebookEditArgs) source() json.RawMessage {
	list := strings.SplitAfter(in.Source, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return encoded(list)
}

// encoded is a value in JSON, without escapes that JSON doesn't need.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // texts: can't fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
