package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/cli/serve"
)

const typedOn = `
steps:
  - calls:
      - {tool: exec, args: {argv: [sh, -c, "trap 'echo interrupted; stty size' INT WINCH; while :; do read x && echo got $x; done"], background_after: 0, tty: true}}
  - calls:
      - {tool: ask_user, args: {question: Enough?}}
  - calls:
      - {tool: complete_task, args: {summary: Done.}}
`

// TestAttachAtATerminal has a server run a program, and types on it
// from a terminal whose size changes.
// Guarantee: V44.
func TestAttachAtATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(script, []byte(typedOn), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := programIn(t, dir, "--json", "serve", "--listen", "127.0.0.1:0")
	srv.Env = append(srv.Env, "BELAY_SCRIPT="+script)
	out, err := srv.StdoutPipe()
	if err == nil {
		err = srv.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.Process.Signal(os.Interrupt) //nolint:errcheck // it ends, or has
		srv.Wait()                       //nolint:errcheck // as above
	})
	var said serve.Served
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(said.URL, client.Options{Token: said.Token})
	if err != nil {
		t.Fatal(err)
	}
	id := runsProgram(t, c)

	x := onTerminalIn(t, dir, "attach", id)
	if err := pty.Setsize(x.tty, &pty.Winsize{Rows: 33, Cols: 99}); err != nil {
		t.Fatal(err)
	}
	x.see("33 99") // it heard of the size, and says it
	x.press("hello\r")
	x.see("got hello")
	x.press(ctrlC)
	x.see(`\^C`)
	x.see("(?s)interrupted.*interrupted")
	x.press("\x10\x11")
	if shown := x.exit(0); !strings.Contains(shown, "detached; the program keeps running: belay attach "+id+" --offset ") {
		t.Errorf("it isn't said how to come back:\n%s", shown)
	}
	// The terminal is as it was, and the program continues.
	again := onTerminalIn(t, dir, "attach", id, "--read-only")
	again.see("got hello")
	again.press(ctrlC) // nothing of it is the program's
	if shown := again.exit(0); !strings.Contains(shown, "detached; the program keeps running") {
		t.Errorf("who looks on can't leave:\n%s", shown)
	}
}

// runsProgram gives a session something to do and returns the program that it runs.
func runsProgram(t *testing.T, c *client.Client) string {
	t.Helper()
	var told struct {
		Run string `json:"runId"`
	}
	err := c.Command(t.Context(), "submit_turn", "", json.RawMessage(`{"text":"go","sessionId":"s1","turnId":"t1","settings":{"allow":["exec"]}}`), &told)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range c.Stream(t.Context(), "/v1/runs/"+told.Run+"/stream", client.StreamOptions{Types: "process.started,permission.evaluated,action.required"}) {
		if err != nil {
			t.Fatal(err)
		}
		f, err := e.Fact()
		if err != nil {
			t.Fatal(err)
		}
		var open struct {
			Actions []struct {
				ID      string `json:"actionId"`
				Version string `json:"version"`
				Kind    string `json:"kind"`
			} `json:"actions"`
		}
		if f.Type() != "action.required" {
			continue
		}
		if err := c.Get(t.Context(), "/v1/actions", nil, &open); err != nil || len(open.Actions) != 1 {
			t.Fatalf("%+v, %v", open, err)
		}
		a := open.Actions[0]
		if a.Kind != "permission" {
			break
		}
		if err := c.Command(t.Context(), "respond_action", "", json.RawMessage(`{"actionId":"`+a.ID+`","decision":"allow","version":"`+a.Version+`"}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	var th struct {
		Processes []struct {
			ID string `json:"processId"`
		} `json:"processes"`
	}
	if err := c.Command(t.Context(), "get_thread_read", "", json.RawMessage(`{"sessionId":"s1"}`), &th); err != nil || len(th.Processes) != 1 {
		t.Fatalf("%+v, %v", th, err)
	}
	return th.Processes[0].ID
}
