package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestProgramsOfAConversationGoOn: what a call left in the background is counted in the
// status line and goes on behind the answer, until it ends, a person ends it, or the
// conversation ends; an end is a line. None of it runs on.
// Guarantee: T60.
func TestProgramsOfAConversationGoOn(t *testing.T) {
	dir := t.TempDir()
	p := inTmux(t, talking(t, dir, `steps:
  - calls:
      - {tool: exec, args: {command: 'echo first; until test -e go; do sleep 0.1; done; exit 3', background_after: 0}}
      - {tool: exec, args: {command: 'echo second; sleep 1000', background_after: 0}}
      - {tool: exec, args: {command: 'echo third; sleep 2000', background_after: 0}}
  - text: They run.
  - text: They still do.
`, "--allow", "exec", "serve them"))
	p.see(`^They run\.$(?s:.*)· 3 programs`)
	listed := func() string {
		t.Helper()
		out, err := programIn(t, dir, "process", "list").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	// they go on while other messages are answered
	p.text("and now?")
	p.keys("Enter")
	p.see(`^They still do\.$(?s:.*)· 3 programs`)
	all := listed()
	if strings.Count(all, " background ") != 3 {
		t.Fatalf("behind the answer there run:\n%s", all)
	}
	if err := os.WriteFile(filepath.Join(dir, "ws", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.see(`^ended in the background: echo first; .*exit 3\)$|^ended in the background: echo first(?s:.*)\(exit\s3\)`)
	p.see(`· 2 programs`)
	id := regexp.MustCompile(`(?m)^(proc_\S+).*second`).FindStringSubmatch(all)
	if id == nil {
		t.Fatalf("there is no second one:\n%s", all)
	}
	p.text("/programs end " + id[1])
	p.keys("Enter")
	p.see(`^ended in the background: echo second`)
	shown := p.see(`· 1 program `)
	if strings.Contains(shown, "○") {
		t.Errorf("something waits:\n%s", shown)
	}
	p.keys("C-d")
	p.ended()
	for late := time.Now().Add(time.Minute); !strings.Contains(listed(), "no programs run"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it runs on:\n%s", listed())
		}
	}
	if out, err := programIn(t, dir, "events", "--type", "process.terminated").CombinedOutput(); err != nil || strings.Count(string(out), "process.terminated") != 2 {
		t.Errorf("two were ended: %v\n%s", err, out)
	}
}
