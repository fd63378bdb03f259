package script

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestTheExamplesOfTheAPIAreTrue runs the examples of docs/api.md in order, in
// one shell against one server, and looks for what they are said to print.
// Guarantee: V12.
func TestTheExamplesOfTheAPIAreTrue(t *testing.T) {
	needs.Program(t, "curl")
	needs.Program(t, "bash")
	b, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(b), "```sh\n")[1:]
	var sh, story strings.Builder
	said := 0
	story.WriteString("env BELAY_SCRIPT=$WORK/model.yaml\ncd project\nstartServer\nexec bash -eu ../examples.sh\n")
	for i, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		fmt.Fprintf(&sh, "{\n%s} > out.%d\n", code, i)
		for line := range strings.Lines(code) {
			if want, ok := strings.CutPrefix(strings.TrimSpace(line), "#> "); ok {
				said++
				fmt.Fprintf(&story, "prints out.%d %s\n", i, quote(want))
			}
		}
	}
	if len(blocks) < 8 || said < len(blocks) {
		t.Fatalf("%d examples that say %d things: the test no longer finds them", len(blocks), said)
	}
	story.WriteString("stopServer TERM\n-- project/.git/HEAD --\n-- model.yaml --\nsteps:\n  - calls:\n      - {tool: write, args: {path: note.txt, content: \"noted\\n\"}}\n" +
		"  - calls:\n      - {tool: complete_task, args: {summary: Written.}}\n" +
		"  - calls:\n      - {tool: exec, args: {command: 'read x; echo good morning, $x', background_after: 0}}\n  - calls:\n      - {tool: ask_user, args: {question: 'Enough?'}}\n-- examples.sh --\n" + sh.String())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "api.txtar"), []byte(story.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := params(dir)
	p.Cmds["prints"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if out := ts.ReadFile(args[0]); !strings.Contains(out, args[1]) {
			ts.Fatalf("%s isn't in:\n%s", args[1], out)
		}
	}
	testscript.Run(t, p)
}

// quote is a text as a script takes it literally.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
