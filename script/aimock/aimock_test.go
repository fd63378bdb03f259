// Package aimock runs the program against somebody else's idea of the vendors'
// servers: the npm package @copilotkit/aimock, in every protocol that the program
// speaks. package.json pins it; BELAY_AIMOCK names a folder where it is installed.
package aimock

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// installed is where the package is, if it is.
func installed(t *testing.T) string {
	needs.Program(t, "node")
	dir := os.Getenv("BELAY_AIMOCK")
	if dir == "" {
		dir = "."
	}
	main := filepath.Join(dir, "node_modules/@copilotkit/aimock/dist/cli.js")
	_, err := os.Stat(main)
	needs.Facility(t, "node", err == nil, "npm ci in script/aimock installs @copilotkit/aimock")
	return main
}

// mock starts a server and returns its address.
func mock(t *testing.T, main string) string {
	return listening(t, exec.Command("node", main, "--port", "0", "--fixtures", "fixtures.json", "--strict", "--validate-on-load"))
}

// listening starts a server that says where it listens, and returns the address.
func listening(t *testing.T, cmd *exec.Cmd) string {
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go io.Copy(io.Discard, out) //nolint:errcheck // until it is killed
			return url
		}
	}
	t.Fatalf("the server didn't start:\n%s", &said)
	return ""
}

// client is a person with a workspace and a store.
type client struct {
	t    *testing.T
	dir  string
	args []string // that name the provider
}

func (c *client) belay(args ...string) (exit int, stdout, stderr string) {
	var out, err bytes.Buffer
	env := []string{"HOME=" + c.dir, "USER=tester", "PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=sk-tester", "ANTHROPIC_API_KEY=sk-tester", "GEMINI_API_KEY=sk-tester"}
	exit = cli.Main(context.Background(), args, cli.Sys{Env: term.Env{Out: &out, Err: &err, Environ: env}, Dir: filepath.Join(c.dir, "ws")})
	return exit, out.String(), err.String()
}

// newClient has two files to look at.
func newClient(t *testing.T, args ...string) *client {
	c := &client{t: t, dir: t.TempDir(), args: args}
	if err := os.MkdirAll(filepath.Join(c.dir, "ws/.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(c.dir, "ws", name), []byte("this is "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run does one task to its end and returns what it says and its facts.
func (c *client) run(text string, more ...string) (stdout string, facts []event.Envelope) {
	c.t.Helper()
	exit, stdout, stderr := c.belay(append(append(append([]string{"run"}, c.args...), more...), text)...)
	if exit != 0 {
		c.t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	_, lines, _ := c.belay("events", "--json")
	for line := range strings.Lines(lines) {
		var e event.Envelope
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			c.t.Fatal(err)
		}
		facts = append(facts, e)
	}
	return stdout, facts
}

func find[P event.Payload](facts []event.Envelope) (out []P) {
	for _, e := range facts {
		if p, ok := e.Data.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

// sent are the bodies of the requests that a server was sent.
func sent(t *testing.T, url string) string {
	resp, err := http.Get(url + "/__aimock/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var entries []struct {
		Body json.RawMessage `json:"body"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&entries); err != nil || len(entries) == 0 {
		t.Fatal(resp.Status, len(entries), err)
	}
	var all strings.Builder
	for _, e := range entries {
		all.Write(e.Body)
	}
	return all.String()
}

// protocols are the providers with the path that their servers have.
var protocols = map[string]string{"openai": "/v1", "openai-chat": "/v1", "anthropic": "/v1", "google": "/v1beta"}

// Guarantee: E55.
func TestEveryProtocolOfAimock(t *testing.T) {
	main := installed(t)
	for name, path := range protocols {
		t.Run(name, func(t *testing.T) {
			url := mock(t, main)
			args := []string{"--provider", name, "--base-url", url + path, "--model", "some-model"}
			talks := []string{"--completion", "conversational"}
			t.Run("hello", func(t *testing.T) {
				out, facts := newClient(t, args...).run("say hello", talks...)
				if !strings.Contains(out, "Hello from the far end.") || len(find[event.ModelCompleted](facts)) != 1 {
					t.Errorf("it said:\n%s", out)
				}
			})
			for text, reads := range map[string]int{"make one call": 1, "make two calls": 2} {
				t.Run(text, func(t *testing.T) { calls(t, newClient(t, args...), text, reads) })
			}
			t.Run("429 and again", func(t *testing.T) {
				out, facts := newClient(t, args...).run("be refused once", talks...)
				fails := find[event.ModelFailed](facts)
				if !strings.Contains(out, "Now it works.") || len(fails) != 1 || fails[0].Problem.Code != "HTTP_429" || fails[0].RetryAt.IsZero() {
					t.Errorf("%+v\n%s", fails, out)
				}
			})
			t.Run("cut and again", func(t *testing.T) { cut(t, newClient(t, args...), url, talks) })
		})
	}
}

// calls: the files are read, in one step, and the turn ends after it.
func calls(t *testing.T, c *client, text string, reads int) {
	out, facts := c.run(text)
	var contents []string
	for _, r := range find[event.ToolResult](facts) {
		if r.Name == "read" {
			contents = append(contents, r.Output.Text)
		}
	}
	answers := find[event.ModelCompleted](facts)
	if len(contents) != reads || len(answers) != 2 || len(answers[0].Calls) != reads || !strings.Contains(out, "file") {
		t.Fatalf("%d reads, %d answers:\n%s", len(contents), len(answers), out)
	}
	for i, name := range []string{"a.txt", "b.txt"}[:reads] {
		if !strings.Contains(strings.Join(contents, "\n"), "this is "+name) || !strings.Contains(string(answers[0].Calls[i].Args), name) {
			t.Errorf("%s wasn't read: %q", name, contents)
		}
	}
}

// cut: what came before the stream broke off is kept, and said once in the end.
func cut(t *testing.T, c *client, url string, talks []string) {
	const whole = "The first half of this was lost on the way, and then it came whole."
	out, facts := c.run("be cut once", talks...)
	fails, answers := find[event.ModelFailed](facts), find[event.ModelCompleted](facts)
	if len(fails) != 1 || fails[0].Problem.Class != "transient" || len(answers) != 1 || answers[0].Text.Text != whole {
		t.Fatalf("%+v\n%+v", fails, answers)
	}
	if p := fails[0].Partial; p == "" || !strings.HasPrefix(whole, p) {
		t.Errorf("kept was %q", p)
	}
	if strings.Count(out, whole) != 1 {
		t.Errorf("it said:\n%s", out)
	}
	if all := sent(t, url); strings.Contains(all, "The first half") || !strings.Contains(all, "be cut once") {
		t.Errorf("the attempt that was cut off came back, or the server heard nothing:\n%s", all)
	}
}
