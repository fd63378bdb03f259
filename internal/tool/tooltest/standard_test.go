//go:build unix

package tooltest_test

import (
	"slices"
	"testing"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/artifact"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/plan"
	"github.com/belay-run/belay/internal/tool/shell"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

func standard() []tool.Tool {
	return slices.Concat(file.Tools(), shell.Tools(shell.Config{}), artifact.Tools(), plan.Tools())
}

func TestStandardToolsKeepTheLaws(t *testing.T) {
	args := map[string]string{
		"read":          `{"path":"a.txt","offset":1,"limit":1}`,
		"write":         `{"path":"a.txt","content":"new"}`,
		"edit":          `{"path":"a.txt","old":"alpha","new":"omega"}`,
		"patch":         `{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-alpha\n+omega\n"}`,
		"list":          `{"depth":2}`,
		"exec":          `{"command":"echo > made; sleep 60"}`,
		"complete_task": `{"summary":"done","output":{"a":1}}`,
		"ask_user":      `{"question":"which?"}`,
		"todo":          `{"items":[{"text":"one"}]}`,

		"artifact_publish": `{"path":"a.txt"}`,
	}
	var cases []tooltest.Case
	for _, tl := range standard() {
		cases = append(cases, tooltest.Case{Tool: tl, Args: args[tl.Spec().Name]})
	}
	if len(cases) != len(args) {
		t.Errorf("%d tools, %d samples", len(cases), len(args))
	}
	tooltest.Laws(t, cases...)
}

// What every request carries must stay small.
func TestFixedPromptIsUnderEightKilobytes(t *testing.T) {
	set, err := tool.NewSet(standard()...)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, s := range set.Specs() {
		n := len(s.Name) + len(s.Doc) + len(s.Input)
		t.Logf("%-14s %4d bytes", s.Name, n)
		total += n
	}
	if total > 8<<10 {
		t.Errorf("names, texts and schemas have %d bytes", total)
	}
	t.Logf("%d bytes in all", total)
}
