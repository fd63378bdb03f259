package script

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestTheQuickstartIsTrue does what docs/quickstart.md says, in order, and looks for what
// the commands are said to print. The program is installed from this source.
func TestTheQuickstartIsTrue(t *testing.T) {
	needs.Program(t, "bash")
	doc, err := os.ReadFile("../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	far := httptest.NewServer(modelserver.New(quick))
	defer far.Close()
	u := newcomer(t, far.URL)
	const install = "go install github.com/belay-run/belay/cmd/belay@latest\n"
	blocks := strings.Split(string(doc), "```sh\n")[1:]
	if len(blocks) < 6 || !strings.HasPrefix(blocks[0], install) {
		t.Fatalf("%d blocks: the test no longer finds them", len(blocks))
	}
	u.install(t)
	for _, block := range blocks[1:] {
		code, _, _ := strings.Cut(block, "```")
		if code == "belay\n" { // a conversation, which needs a terminal
			continue
		}
		out := u.run(t, code)
		for line := range strings.Lines(code) {
			if want, ok := strings.CutPrefix(strings.TrimSpace(line), "#> "); ok && !strings.Contains(out, want) {
				t.Errorf("%s\ndoesn't print %q:\n%s", code, want, out)
			}
		}
	}
}

// user is a person with a home, a project and the program.
type user struct {
	dir string // the project
	bin string
	env []string
}

// newcomer is a user who has nothing yet; the vendors' address is the one given.
func newcomer(t *testing.T, far string) *user {
	work := t.TempDir()
	u := &user{dir: filepath.Join(work, "project"), bin: filepath.Join(work, "bin")}
	for _, dir := range []string{filepath.Join(u.dir, ".git"), u.bin, filepath.Join(work, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".git/HEAD": "", "greet.sh": "echo hello\n"} {
		if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u.env = []string{"HOME=" + filepath.Join(work, "home"), "USER=tester", "PATH=" + u.bin + ":" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "OLLAMA_HOST=127.0.0.1:1",
		"GORACE=atexit_sleep_ms=0", "OPENAI_BASE_URL=" + far + "/v1", "ANTHROPIC_BASE_URL=" + far, "GOOGLE_GEMINI_BASE_URL=" + far}
	return u
}

// install puts the program of this source where the user finds it.
func (u *user) install(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "install", "./cmd/belay")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "GOBIN="+u.bin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// run is what commands print. A key is typed where one is asked for.
func (u *user) run(t *testing.T, code string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", code)
	cmd.Dir, cmd.Env, cmd.Stdin = u.dir, u.env, strings.NewReader("sk-tester\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", code, err, out)
	}
	return string(out)
}

// quick is a vendor whose model answers, writes a file when it works on a task, and
// passes the test of a key.
func quick(a modelserver.Asked) modelserver.Scene {
	s := modeltest.Scene{Usage: &belay.Usage{Input: 100, Output: 10}, Stop: "tool_calls"}
	switch {
	case a.Key != "sk-tester":
		return modelserver.Scene{Scene: modeltest.Scene{Fail: "auth"}}
	case slices.Contains(a.Tools, "report"):
		s.Calls = []model.Call{{Name: "report", Args: `{"word":"belay"}`}}
	case !slices.Contains(a.Tools, "complete_task"):
		s.Text, s.Stop = "It has one file, greet.sh.", "stop"
	case a.Results == 0:
		s.Calls = []model.Call{{Name: "write", Args: `{"path":"hello.txt","content":"hello, world\n"}`}}
	default:
		s.Calls = []model.Call{{Name: "complete_task", Args: `{"summary":"hello.txt greets."}`}}
	}
	return modelserver.Scene{Scene: s}
}
