// Package mcpservers has sessions use well-known MCP servers: the npm packages
// @modelcontextprotocol/server-everything, -filesystem and -memory, over stdio and HTTP.
// package.json pins them; BELAY_MCPSERVERS names a folder where they are installed.
package mcpservers

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/modelserver"
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

// machine is a workspace with the servers in it, where boundaries show them.
type machine struct {
	t    *testing.T
	dir  string
	node string
	vars []string
}

func newMachine(t *testing.T) *machine {
	dir := os.Getenv("BELAY_MCPSERVERS")
	if dir == "" {
		dir = "."
	}
	modules := filepath.Join(dir, "node_modules")
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "@modelcontextprotocol/server-everything"))
	}
	needs.Facility(t, "node", err == nil, "npm ci in script/mcpservers installs the servers")
	m := &machine{t: t, dir: t.TempDir(), node: node}
	if err := os.CopyFS(filepath.Join(m.dir, "ws/node_modules"), os.DirFS(modules)); err != nil {
		t.Fatal(err)
	}
	m.write("ws/notes.txt", "all is well\n")
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	file := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// belay is the program in the workspace.
func (m *machine) belay(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.CommandContext(m.t.Context(), self, args...)
	cmd.Dir = filepath.Join(m.dir, "ws")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(m.dir, "home"), "USER=tester", "BELAY_TEST_PROGRAM=1", "BELAY_STORE=" + filepath.Join(m.dir, "store")}, m.vars...)
	return cmd
}

// output is what a command prints.
func (m *machine) output(args ...string) string {
	m.t.Helper()
	out, err := m.belay(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("belay %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// server is the program of a server.
func (m *machine) server(name string, args ...string) string {
	path := "./node_modules/@modelcontextprotocol/server-" + name + "/dist/index.js"
	return fmt.Sprintf("command: %s, args: [%s]", m.node, strings.Join(append([]string{path}, args...), ", "))
}

// overHTTP starts the server everything over HTTP and returns its address.
func (m *machine) overHTTP() string {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close() //nolint:errcheck // its port is what is wanted
	cmd := exec.CommandContext(m.t.Context(), m.node, "node_modules/@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp")
	cmd.Dir = filepath.Join(m.dir, "ws")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PORT=" + at[strings.LastIndexByte(at, ':')+1:]}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() }) //nolint:errcheck // it ends in any case
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close() //nolint:errcheck // it listens
			return "http://" + at + "/mcp"
		}
		if time.Now().After(end) {
			m.t.Fatal("the server doesn't listen")
		}
	}
}

// question is what is printed of one that waits: the command that answers it.
var question = regexp.MustCompile(`belay (answer|approve) (act_[0-9a-f-]+)`)

// works has an agent call tools one after the other, and answers what their servers ask
// from another process. It returns the facts, and how many pictures the model was sent.
func (m *machine) works(calls []model.Call, answer string) (facts string, pictures int64) {
	m.t.Helper()
	var seen atomic.Int64
	far := httptest.NewServer(modelserver.New(func(a modelserver.Asked) modelserver.Scene {
		seen.Store(int64(a.Images))
		if a.Results >= len(calls) {
			return modelserver.Scene{Scene: modeltest.Scene{Text: "done"}}
		}
		return modelserver.Scene{Scene: modeltest.Scene{Calls: calls[a.Results : a.Results+1]}}
	}))
	defer far.Close()
	m.vars = []string{"OPENAI_API_KEY=sk-tester", "OPENAI_BASE_URL=" + far.URL + "/v1", "BELAY_PROVIDER=openai", "BELAY_MODEL=gpt-6.1-sol"}
	args := []string{"run", "--completion", "conversational", "--approvals", "wait"}
	for _, c := range calls {
		args = append(args, "--allow", c.Name)
	}
	cmd := m.belay(append(args, "work")...)
	said := &watched{}
	said.on = func(how, id string) {
		args := []string{how, id} // content from outside is in the conversation: calls that could send data out are asked about
		if how == "answer" {
			args = append(args, answer)
		}
		if out, err := m.belay(args...).CombinedOutput(); err != nil {
			m.t.Errorf("belay %v: %v\n%s", args, err, out)
			cmd.Process.Kill() //nolint:errcheck // nothing answers it any more
		}
	}
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%v\n%s%s", err, out, said.text.String())
	}
	id := regexp.MustCompile(`sess_[0-9a-f-]+`).FindString(said.text.String())
	return m.output("--json", "events", id), seen.Load()
}

// watched is what a run prints; on is called with each question.
type watched struct {
	text strings.Builder
	done int
	on   func(how, id string)
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.text.Write(p) //nolint:errcheck // it is memory
	if all := question.FindAllStringSubmatch(w.text.String(), -1); len(all) > w.done {
		w.done = len(all)
		w.on(all[len(all)-1][1], all[len(all)-1][2])
	}
	return len(p), nil
}

// has reports what isn't in the facts.
func (m *machine) has(facts string, wants ...string) {
	m.t.Helper()
	for _, want := range wants {
		if !regexp.MustCompile(want).MatchString(facts) {
			m.t.Errorf("no fact is like %s", want)
		}
	}
	if m.t.Failed() {
		m.t.Log(facts)
	}
}

// TestSessionsUseTheServerEverything over both transports: text, data, a picture that the
// model is sent, progress, a long call that is cancelled, a form that is answered from
// another process.
// Guarantee: T113.
func TestSessionsUseTheServerEverything(t *testing.T) {
	m := newMachine(t)
	for name, how := range map[string]string{"stdio": m.server("everything", "stdio"), "http": "url: " + m.overHTTP()} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			m.write("home/.config/belay/belay.yaml", "mcp-servers:\n  all: {"+how+", load: always}\n  hasty: {"+how+", load: always, timeout: 3s}\n")
			facts, pictures := m.works([]model.Call{
				{Name: "mcp__all__get-sum", Args: `{"a":20,"b":22}`},
				{Name: "mcp__all__get-structured-content", Args: `{"location":"New York"}`},
				{Name: "mcp__all__get-tiny-image", Args: `{}`},
				{Name: "mcp__all__trigger-long-running-operation", Args: `{"duration":5,"steps":5}`},
				{Name: "mcp__hasty__trigger-long-running-operation", Args: `{"duration":600,"steps":600}`},
				{Name: "mcp__all__trigger-elicitation-request", Args: `{}`},
			}, `{"name":"Ada Lovelace"}`)
			m.has(facts, `"type":"tool.result".*The sum of 20 and 22 is 42`, `"type":"tool.result".*"data":\{[^}]*"temperature":`, `"type":"tool.progress".*"total":5`,
				`"type":"tool.failed".*mcp__hasty__trigger-long-running-operation.*"code":"MCP_SILENT"`, `"type":"action.required".*"kind":"form"`, `"type":"tool.started".*"answer":"accept"`, `"type":"tool.result".*Ada Lovelace`, `"type":"turn.completed"`)
			if pictures == 0 {
				t.Error("the model was sent no picture")
			}
		})
	}
}

// TestSessionsUseTheServersFilesystemAndMemory, which write in the workspace within their
// boundary.
func TestSessionsUseTheServersFilesystemAndMemory(t *testing.T) {
	m := newMachine(t)
	m.write("home/.config/belay/belay.yaml", "mcp-servers:\n  files: {"+m.server("filesystem", ".")+", load: always}\n  memory: {"+m.server("memory")+", load: always, env: {MEMORY_FILE_PATH: \""+filepath.Join(m.dir, "ws/memory.jsonl")+"\"}}\n")
	facts, _ := m.works([]model.Call{
		{Name: "mcp__files__read_text_file", Args: `{"path":"notes.txt"}`},
		{Name: "mcp__files__write_file", Args: `{"path":"new.txt","content":"written"}`},
		{Name: "mcp__files__read_text_file", Args: `{"path":"/etc/hostname"}`},
		{Name: "mcp__memory__create_entities", Args: `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote a program"]}]}`},
		{Name: "mcp__memory__search_nodes", Args: `{"query":"Ada"}`},
	}, "")
	m.has(facts, `"type":"tool.result".*all is well`, `"type":"tool.failed".*"code":"MCP_TOOL_FAILED".*[Aa]ccess denied`, `"type":"tool.result".*mcp__memory__search_nodes.*wrote a program`)
	if b, err := os.ReadFile(filepath.Join(m.dir, "ws/new.txt")); string(b) != "written" || err != nil {
		t.Errorf("%q %v", b, err)
	}
}
