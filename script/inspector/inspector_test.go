// Package inspector uses the program as an MCP server by the protocol's own inspector:
// the npm package @modelcontextprotocol/inspector, in an old and a new version.
// package.json pins them, and the Node.js that the new one needs; BELAY_INSPECTOR names
// a folder where they are installed.
package inspector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
  - text: All is well.
`

// versions are the inspectors: where their program is.
var versions = map[string]string{
	"old": "inspector-old/cli/build/cli.js",
	"new": "inspector-new/clients/launcher/build/index.js",
}

// machine is a folder with a workspace and a store.
type machine struct {
	t       *testing.T
	dir     string
	modules string
	program string
}

func newMachine(t *testing.T) *machine {
	dir := os.Getenv("BELAY_INSPECTOR")
	if dir == "" {
		dir = "."
	}
	modules, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "node/bin/node"))
	}
	needs.Facility(t, "node", err == nil, "npm ci in script/inspector installs @modelcontextprotocol/inspector")
	m := &machine{t: t, dir: t.TempDir(), modules: modules}
	if m.program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ws/notes.txt": "all is well\n", "model.yaml": model} {
		file := filepath.Join(m.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// command is a program in the workspace.
func (m *machine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir = filepath.Join(m.dir, "ws")
	cmd.Env = []string{"PATH=" + filepath.Join(m.modules, "node/bin") + ":" + os.Getenv("PATH"), "HOME=" + m.dir, "USER=tester", "BELAY_TEST_PROGRAM=1",
		"BELAY_STORE=" + filepath.Join(m.dir, "store"), "BELAY_SCRIPT=" + filepath.Join(m.dir, "model.yaml")}
	return cmd
}

// inspect has an inspector ask a server, and reads the answer into out.
func (m *machine) inspect(version string, server []string, out any, method ...string) {
	m.t.Helper()
	args := slices.Concat([]string{filepath.Join(m.modules, versions[version]), "--cli"}, server, []string{"--method"}, method)
	said := new(strings.Builder)
	cmd := m.command("node", args...)
	cmd.Stderr = said
	if slices.Contains(server, m.program) { // the inspector passes few variables on
		cmd.Args = slices.Concat(cmd.Args[:3], []string{"-e", "BELAY_TEST_PROGRAM=1", "-e", cmd.Env[4], "-e", cmd.Env[5]}, cmd.Args[3:])
	}
	text, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%v: %v\n%s%s", cmd.Args, err, text, said)
	}
	if err := json.Unmarshal(text, out); err != nil {
		m.t.Fatalf("%v: %v\n%s", cmd.Args, err, text)
	}
}

// works has an inspector list the tools of a server, run an agent and read its session.
func (m *machine) works(version string, server []string) {
	m.t.Helper()
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	m.inspect(version, server, &list, "tools/list")
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"approvals_list", "run", "search", "session_interrupt", "session_list", "session_read", "session_send", "why"}; !slices.Equal(names, want) {
		m.t.Errorf("it lists %v", names)
	}
	var ran struct {
		Content struct {
			Session string `json:"sessionId"`
			Outcome string `json:"outcome"`
			Answer  string `json:"answer"`
		} `json:"structuredContent"`
	}
	m.inspect(version, server, &ran, "tools/call", "--tool-name", "run", "--tool-arg", "text=How is it?")
	if ran.Content.Outcome != "completed" || ran.Content.Answer != "All is well." {
		m.t.Errorf("run answers %+v", ran)
	}
	var read struct {
		Content struct {
			Session struct {
				ID string `json:"id"`
			} `json:"session"`
		} `json:"structuredContent"`
	}
	m.inspect(version, server, &read, "tools/call", "--tool-name", "session_read", "--tool-arg", "sessionId="+ran.Content.Session)
	if read.Content.Session.ID != ran.Content.Session {
		m.t.Errorf("session_read answers %+v", read)
	}
}

// TestTheInspectorUsesBelayOverItsStandardStreams lists and calls the tools of belay mcp
// serve.
func TestTheInspectorUsesBelayOverItsStandardStreams(t *testing.T) {
	for version := range versions {
		t.Run(version, func(t *testing.T) {
			m := newMachine(t)
			m.works(version, []string{m.program, "mcp", "serve"})
		})
	}
}

// TestTheInspectorUsesBelayOverHTTP lists and calls the tools of belay serve. What stands
// before the server sends the token: the old inspector's command line can't.
func TestTheInspectorUsesBelayOverHTTP(t *testing.T) {
	m := newMachine(t)
	serve := m.command(m.program, "--json", "serve", "--listen", "127.0.0.1:0")
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { serve.Wait() }) //nolint:errcheck // it was told to end
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var served struct {
		URL   string `json:"url"`
		Token string `json:"token"`
	}
	if err == nil {
		err = json.Unmarshal(line, &served)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	to, err := url.Parse(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Set("Authorization", "Bearer "+served.Token)
	}}
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // one that is still read when its answer begins may lose it
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	defer before.Close()
	for version := range versions {
		t.Run(version, func(t *testing.T) {
			m := &machine{t, m.dir, m.modules, m.program}
			m.works(version, []string{before.URL + "/mcp", "--transport", "http"})
		})
	}
	if a, err := http.Post(served.URL+"/mcp", "application/json", strings.NewReader("{}")); err != nil || a.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v, %v", a, err)
	}
}
