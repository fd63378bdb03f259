//go:build unix

package tooltest_test

import (
	"slices"
	"testing"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/search"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

func standard() []tool.Tool {
	return slices.Concat(file.Tools(), search.Tools(), exec.Tools(exec.Config{}), []tool.Tool{file.Publish()}, tool.TurnTools())
}

func TestStandardToolsKeepTheLaws(t *testing.T) {
	args := map[string]string{
		"read":          `{"path":"a.txt","offset":1,"limit":1}`,
		"write":         `{"path":"a.txt","content":"new"}`,
		"edit":          `{"path":"a.txt","old":"alpha","new":"omega"}`,
		"patch":         `{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-alpha\n+omega\n"}`,
		"list":          `{"depth":2}`,
		"glob":          `{"pattern":"*.txt"}`,
		"grep":          `{"pattern":"a","before":1}`,
		"exec":          `{"command":"echo > made; sleep 60"}`,
		"process":       `{}`,
		"process_send":  `{"id":"proc_1","control":"kill"}`,
		"complete_task": `{"summary":"done","output":{"a":1}}`,
		"ask_user":      `{"question":"which?"}`,
		"context_read":  `{"source":"0123456789ab","lines":"1-9"}`,
		"tool_search":   `{"query":"issues"}`,
		"tool_call":     `{"name":"notebook_edit","args":{}}`,
		"notebook_edit": `{"path":"a.txt","cell":1,"source":"x"}`,
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
