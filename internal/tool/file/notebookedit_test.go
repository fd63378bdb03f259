//go:build unix

package file_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// TestNotebookEditChangesOneCell and leaves the bytes of the others as Jupyter writes them.
func TestNotebookEditChangesOneCell(t *testing.T) {
	kept := book[strings.Index(book, "  {\n   \"cell_type\": \"code\""):]
	for name, c := range map[string]struct {
		args args
		says string
		want []string // pieces of the new content
		gone string
	}{
		"replace": {args{"cell": 1, "source": "# New <i>\nü\n"}, "replaced cell 1, now 2 cells, of a.ipynb",
			[]string{"   \"source\": [\n    \"# New <i>\\n\",\n    \"ü\\n\"\n   ]\n  },\n", strings.Replace(kept, `"source": "print(1)"`, `"source": "print(1)"`, 1)}, "Title"},
		"replace code": {args{"cell": 2, "source": "print(2)"}, "replaced cell 2", []string{`"execution_count": null`, `"outputs": []`, `"zeta": 1,`, "\"source\": [\n    \"print(2)\"\n   ]", "# Title"}, "Figure"},
		"insert":       {args{"cell": 1, "mode": "insert", "source": "x = 1"}, "inserted cell 2, now 3 cells", []string{`"x = 1"`, "# Title", kept}, ""},
		"first":        {args{"cell": 0, "mode": "insert_markdown", "source": "hi"}, "inserted cell 1", []string{" \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": ", `"hi"`, kept}, ""},
		"empty":        {args{"cell": 2, "source": ""}, "replaced cell 2", []string{`"source": []`}, "print(1)"},
		"delete":       {args{"cell": 1, "mode": "delete"}, "deleted cell 1, now 1 cells", []string{"{\n \"cells\": [\n" + kept}, "Title"},
	} {
		t.Run(name, func(t *testing.T) {
			b := tooltest.NewBench(t)
			b.Know("a.ipynb", book)
			c.args["path"] = "a.ipynb"
			r, err := b.Run(t.Context(), file.NotebookEdit(), c.args)
			got := b.Get("a.ipynb")
			if err != nil || !strings.Contains(r.Text, c.says) || c.gone != "" && strings.Contains(got, c.gone) {
				t.Errorf("%+v, %v\n%s", r, err, got)
			}
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("without %s\n%s", w, got)
				}
			}
			if b.Expect["a.ipynb"] != digest(got) {
				t.Error("the thread doesn't know what it wrote")
			}
			call := b.Call(c.args)
			call.Expect = map[string]string{"a.ipynb": digest(book)}
			if _, done, err := file.NotebookEdit().(tool.Recoverer).Recover(context.Background(), call); !done || err != nil {
				t.Errorf("what it did isn't found again: %v, %v", done, err)
			}
		})
	}
}

func TestNotebookEditRefuses(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know("a.ipynb", book)
	b.Know("text.ipynb", "text")
	b.Put("unread.ipynb", book)
	for _, c := range []struct {
		args args
		code string
	}{
		{args{"path": "a.ipynb", "cell": 3}, file.CodeNoCell}, {args{"path": "a.ipynb", "cell": 0}, file.CodeNoCell}, {args{"path": "a.ipynb", "cell": -1, "mode": "insert"}, file.CodeNoCell},
		{args{"path": "a.ipynb", "cell": 1, "mode": "move"}, "BAD_ARGUMENTS"}, {args{"path": "a.ipynb", "cell": 2, "source": "print(1)"}, file.CodeNoChange},
		{args{"path": "text.ipynb", "cell": 1}, file.CodeNotNotebook}, {args{"path": "unread.ipynb", "cell": 1}, file.CodeNotRead}, {args{"path": "none.ipynb", "cell": 1}, file.CodeNoSuchFile},
	} {
		if r, err := file.NotebookEdit().Run(t.Context(), b.Call(c.args)); tooltest.CodeOf(err) != c.code {
			t.Errorf("%v: %+v, %v; want %s", c.args, r, err, c.code)
		}
	}
	if b.Get("a.ipynb") != book {
		t.Error("it was changed")
	}
}
