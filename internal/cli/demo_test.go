package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// play runs the demo's script on a copy of its project. refuse, when it
// returns a text, stands in for the n-th call of a tool.
func play(t *testing.T, refuse func(tool string, n int) string) (dir, summary string, log []string) {
	t.Helper()
	needs.Program(t, "sh")
	dir = t.TempDir()
	if err := os.CopyFS(dir, demoProject()); err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse("demo.yaml", demoScript)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	tool := func(name string, run func(a arguments) (string, bool)) modeltest.Tool {
		return func(args json.RawMessage) (string, bool) {
			calls[name]++
			if text := refuse(name, calls[name]); text != "" {
				log = append(log, name+" "+text)
				return text, true
			}
			var a arguments
			if err := json.Unmarshal(args, &a); err != nil {
				return err.Error(), true
			}
			text, failed := run(a)
			log = append(log, name+" "+text[strings.LastIndex(text, "\n")+1:])
			return text, failed
		}
	}
	c := modeltest.Conversation{
		Provider: scripted.New(script),
		Messages: []belay.Message{belay.Text(belay.RoleUser, demoObjective)},
		Limit:    20,
		Tools: map[string]modeltest.Tool{
			"list": tool("list", func(a arguments) (string, bool) { return a.Path, false }),
			"read": tool("read", func(a arguments) (string, bool) { return a.read(dir) }),
			"edit": tool("edit", func(a arguments) (string, bool) { return a.edit(dir) }),
			"exec": tool("exec", func(a arguments) (string, bool) { return a.exec(dir) }),
		},
	}
	end, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var done struct {
		Summary   string
		Artifacts []string
	}
	if err := json.Unmarshal(end, &done); err != nil {
		t.Fatalf("%s: %v", end, err)
	}
	return dir, done.Summary, log
}

// arguments are those of all the tools that the demo calls.
type arguments struct{ Path, Old, New, Command string }

func (a arguments) read(dir string) (string, bool) {
	b, err := os.ReadFile(filepath.Join(dir, a.Path))
	return string(b), err != nil
}

func (a arguments) edit(dir string) (string, bool) {
	text, failed := a.read(dir)
	if failed || strings.Count(text, a.Old) != 1 {
		return "the old text isn't there once", true
	}
	err := os.WriteFile(filepath.Join(dir, a.Path), []byte(strings.Replace(text, a.Old, a.New, 1)), 0o600)
	return "changed", err != nil
}

func (a arguments) exec(dir string) (string, bool) {
	cmd := exec.Command("sh", "-c", a.Command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%sexit %d", out, cmd.ProcessState.ExitCode()), err != nil
}

func never(string, int) string { return "" }

func TestTheDemoMendsItsProject(t *testing.T) {
	t.Parallel()
	dir, summary, log := play(t, never)
	want := []string{"list .", "read ", "read ", "exec exit 1", "edit changed", "exec exit 0"}
	if got := strings.Join(log, "|"); got != strings.Join(want, "|") {
		t.Errorf("the calls are %q, want %q", log, want)
	}
	if !strings.Contains(summary, "passes") {
		t.Errorf("the summary is %q", summary)
	}
	if text, _ := (arguments{Path: "greet.sh"}).read(dir); !strings.Contains(text, "${1:-world}") {
		t.Errorf("greet.sh is %q", text)
	}
}

func TestTheDemoRunsALostTestAgain(t *testing.T) {
	t.Parallel()
	const lost = "lost: the runtime stopped while exec was running; nobody knows whether it did its work"
	for n, want := range map[int]string{
		1: "list .|read |read |exec " + lost + "|exec exit 1|edit changed|exec exit 0",
		2: "list .|read |read |exec exit 1|edit changed|exec " + lost + "|exec exit 0",
	} {
		t.Run(fmt.Sprint("run ", n), func(t *testing.T) {
			t.Parallel()
			_, summary, log := play(t, func(tool string, i int) string {
				if tool == "exec" && i == n {
					return lost
				}
				return ""
			})
			if got := strings.Join(log, "|"); got != want {
				t.Errorf("the calls are %q, want %q", log, want)
			}
			if !strings.Contains(summary, "passes") {
				t.Errorf("the summary is %q", summary)
			}
		})
	}
}

func TestTheDemoClaimsNothingItDidNotDo(t *testing.T) {
	t.Parallel()
	for tool, text := range map[string]string{
		"exec": "denied: not allowed: the same call was lost before",
		"edit": "CONFLICT: greet.sh has changed",
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			_, summary, _ := play(t, func(name string, _ int) string {
				if name == tool {
					return text
				}
				return ""
			})
			if !strings.HasPrefix(summary, "Not fixed.") {
				t.Errorf("the summary is %q", summary)
			}
		})
	}
}

func TestTheProjectIsWhole(t *testing.T) {
	var names []string
	err := fs.WalkDir(demoProject(), ".", func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if got, want := strings.Join(names, " "), "README.md greet.sh test.sh"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
