// Package claudesdk lets a client that was written for Claude Code's command line talk
// to the program: the npm package @instantlyeasy/claude-code-sdk-ts, which runs what is
// called claude on the PATH. package.json pins it; BELAY_CLAUDESDK names a folder where
// it is installed.
package claudesdk

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	sandbox.Main()
	if os.Getenv("BELAY_TEST_PROGRAM") == "1" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Process()))
	}
	os.Exit(m.Run())
}

// model is a model's side of the conversation.
const model = `
steps:
  - text: I look.
    calls:
      - {tool: read, args: {path: notes.txt}}
    usage: {input: 100, output: 10}
  - text: All is well.
    usage: {input: 120, output: 5}
  - text: Still well.
    usage: {input: 130, output: 4}
`

// understood is what the client made of a conversation.
type understood struct {
	Text      string `json:"text"`
	Session   string `json:"session"`
	Succeeded bool   `json:"succeeded"`
	Usage     struct {
		Input  int `json:"inputTokens"`
		Output int `json:"outputTokens"`
	} `json:"usage"`
	Uses []struct {
		Name  string         `json:"name"`
		Input map[string]any `json:"input"`
	} `json:"uses"`
	Error string `json:"error"`
	Exit  int    `json:"exit"`
}

// machine is a folder with a workspace, and with claude on its PATH.
type machine struct {
	t      *testing.T
	dir    string
	module string
}

func newMachine(t *testing.T) *machine {
	needs.Program(t, "node")
	needs.Program(t, "sh")
	dir := os.Getenv("BELAY_CLAUDESDK")
	if dir == "" {
		dir = "."
	}
	module, err := filepath.Abs(filepath.Join(dir, "node_modules/@instantlyeasy/claude-code-sdk-ts/dist/index.js"))
	if err == nil {
		_, err = os.Stat(module)
	}
	needs.Facility(t, "node", err == nil, "npm ci in script/claudesdk installs @instantlyeasy/claude-code-sdk-ts")
	m := &machine{t, t.TempDir(), module}
	for name, text := range map[string]string{"bin/claude": "#!/bin/sh\nexec belay \"$@\"\n", "ws/notes.txt": "all is well\n", "model.yaml": model} {
		file := filepath.Join(m.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(m.dir, "bin/belay"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask has the client ask, and returns what it understood.
func (m *machine) ask(session, tools, skip string) (u understood) {
	m.t.Helper()
	script, err := filepath.Abs("sdk.mjs")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.CommandContext(m.t.Context(), "node", script, m.module, session, tools, skip)
	cmd.Dir = filepath.Join(m.dir, "ws")
	cmd.Env = []string{"PATH=" + filepath.Join(m.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + m.dir, "USER=tester", "BELAY_TEST_PROGRAM=1",
		"BELAY_STORE=" + filepath.Join(m.dir, "store"), "BELAY_SCRIPT=" + filepath.Join(m.dir, "model.yaml")}
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(out, &u); err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	return u
}

// TestAClientOfClaudeCodeTalksToBelay has the client ask, ask again in the same session,
// narrow the tools, and try to go without permissions.
func TestAClientOfClaudeCodeTalksToBelay(t *testing.T) {
	m := newMachine(t)
	first := m.ask("", "", "")
	if first.Text != "I look.\nAll is well." || first.Session == "" || !first.Succeeded {
		t.Errorf("it understood %+v", first)
	}
	if first.Usage.Input != 220 || first.Usage.Output != 15 {
		t.Errorf("the usage is %+v", first.Usage)
	}
	if len(first.Uses) != 1 || first.Uses[0].Name != "read" || !reflect.DeepEqual(first.Uses[0].Input, map[string]any{"path": "notes.txt"}) {
		t.Errorf("the tool uses are %+v", first.Uses)
	}
	if again := m.ask(first.Session, "", ""); again.Text != "Still well." || again.Session != first.Session {
		t.Errorf("resumed, it understood %+v", again)
	}
	if narrow := m.ask("", "Read,Grep", ""); narrow.Text != "I look.\nAll is well." {
		t.Errorf("with two tools it understood %+v", narrow)
	}
	if wide := m.ask("", "", "skip"); wide.Error != "ProcessError" || wide.Exit != 2 {
		t.Errorf("without permissions it understood %+v", wide)
	}
}
