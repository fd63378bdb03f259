//go:build linux

// Package hostile lets programs that want to take the machine with them run in
// the real runtime, and holds what comes of it against the promises: the runtime
// answers meanwhile and stays small, nobody is left, and the log says which limit
// it was.
package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/view"
)

// asProgram makes the test binary the program.
const asProgram = "BELAY_HOSTILE_CHILD"

func TestMain(m *testing.M) {
	sandbox.Main()
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	code := cli.Main(context.Background(), os.Args[1:], cli.Process())
	sandbox.Cleanup()
	os.Exit(code)
}

// nobody is the plain user of the tests.
const nobody = 65534

// machine is a runtime that serves, with a workspace and a policy.
type machine struct {
	t      *testing.T
	dir    string
	exe    string
	plain  bool // it runs as a plain user
	server *exec.Cmd
	url    string
	token  string
	tether *os.File
	said   []byte // into the tether
}

// newMachine starts a runtime whose boundary "hostile" has these limits, and
// whose model has one shell script run. Without limits nobody says anything of
// boundaries.
func newMachine(t *testing.T, plain bool, limits, script string) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "belay-hostile-") // not a file system in memory: what is written there would count as the runtime's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{t: t, dir: dir, plain: plain}
	m.exe = m.program()
	m.file("project/row.sh", script)
	m.file("model.yaml", "steps:\n  - calls: [{tool: exec, args: {command: \"sh row.sh\", timeout_seconds: 60}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n")
	if limits != "" {
		m.file("home/.config/belay/policy.yaml", "version: 1\nboundaries:\n  hostile:\n    limits: {"+limits+"}\n")
		m.file("home/.config/belay/belay.yaml", "boundary: hostile\n")
	}
	if err := syscall.Mkfifo(dir+"/project/tether", 0o600); err != nil {
		t.Fatal(err)
	}
	m.own()
	if m.tether, err = os.OpenFile(dir+"/project/tether", os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.tether.Close() })
	m.serve()
	return m
}

// program is a copy of this binary that every user can run.
func (m *machine) program() string {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		m.t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(m.dir+"/belay", os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		m.t.Fatal(err)
	}
	return to.Name()
}

func (m *machine) file(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// own gives everything to who runs the runtime.
func (m *machine) own() {
	if !m.plain {
		return
	}
	err := filepath.WalkDir(m.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// command is the program with these arguments.
func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(m.exe, args...)
	cmd.Dir = m.dir + "/project"
	cmd.Env = []string{asProgram + "=1", "HOME=" + m.dir + "/home", "BELAY_STORE=" + m.dir + "/store", "BELAY_SCRIPT=" + m.dir + "/model.yaml",
		"USER=tester", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	if m.plain {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

func (m *machine) serve() {
	m.t.Helper()
	m.server = m.command("--json", "serve", "--listen", "127.0.0.1:0")
	var log bytes.Buffer
	m.server.Stderr = &log
	out, err := m.server.StdoutPipe()
	if err == nil {
		err = m.server.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		m.server.Process.Kill()
		m.server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.server.Wait()
		m.t.Fatalf("the server doesn't come up: %v\n%s", err, log.String())
	}
	var said struct{ URL, Token string }
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		m.t.Fatal(err)
	}
	m.url, m.token = said.URL, said.Token
}

// ask asks the server. A status that isn't a success is an error.
func (m *machine) ask(method, path, body string) ([]byte, error) {
	req, err := http.NewRequest(method, m.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+m.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, b)
	}
	return b, err
}

// begin submits the work and returns its session.
func (m *machine) begin() string {
	m.t.Helper()
	b, err := m.ask("POST", "/v1/commands/submit_turn", `{"text":"x","settings":{"mode":"on_failure"}}`)
	if err != nil {
		m.t.Fatal(err)
	}
	var said struct{ SessionID string }
	if err := json.Unmarshal(b, &said); err != nil || said.SessionID == "" {
		m.t.Fatalf("got %s, %v", b, err)
	}
	return said.SessionID
}

// fact is one fact of a log.
type fact struct {
	Type string
	Data json.RawMessage
}

func (f fact) String() string { return "\n" + f.Type + " " + string(f.Data) }

// facts is the log of a session.
func (m *machine) facts(session string) (all []fact) {
	m.t.Helper()
	cmd := m.command("--json", "events", session)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		m.t.Fatalf("%v: %s", err, failed.String())
	}
	for l := range strings.Lines(out.String()) {
		var f struct {
			Type string
			Data json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal([]byte(l), &f); err != nil {
			m.t.Fatalf("%v: %s", err, l)
		}
		all = append(all, fact(f))
	}
	return all
}

// memory is a line of the server's status, in bytes.
func (m *machine) memory(name string) int64 {
	m.t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(m.server.Process.Pid) + "/status")
	if err != nil {
		m.t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		if f := strings.Fields(l); len(f) == 3 && f[0] == name+":" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	m.t.Fatalf("the status has no %s", name)
	return 0
}

// meanwhile asks the server again and again until the session's turn is over,
// and returns how long the answers took, shortest first.
func (m *machine) meanwhile(session string) (took []time.Duration) {
	m.t.Helper()
	pace := time.NewTicker(5 * time.Millisecond) // a token has only so many requests
	defer pace.Stop()
	for began := time.Now(); time.Since(began) < time.Minute; <-pace.C {
		at := time.Now()
		b, err := m.ask("GET", "/v1/sessions/"+session, "")
		if err != nil {
			m.t.Fatal(err)
		}
		took = append(took, time.Since(at))
		if strings.Contains(string(b), `"turn":{`) && strings.Contains(string(b), `"status":"`+view.Ended+`"`) {
			slices.Sort(took)
			return took
		}
	}
	b, _ := m.ask("GET", "/v1/sessions/"+session, "")
	m.t.Fatalf("the session doesn't end: %s", b)
	return nil
}

// begun waits until the program holds the tether.
func (m *machine) begun() {
	m.t.Helper()
	pace := time.NewTicker(5 * time.Millisecond) // nobody holds it at first, and that reads as its end
	defer pace.Stop()
	b := make([]byte, len("here\n"))
	for began := time.Now(); time.Since(began) < time.Minute; <-pace.C {
		n, _ := m.tether.Read(b)
		if m.said = append(m.said, b[:n]...); len(m.said) >= len(b) {
			return
		}
	}
	m.t.Fatal("the program doesn't begin")
}

// gone waits until nobody holds the tether, and returns how long that took.
func (m *machine) gone() time.Duration {
	m.t.Helper()
	at := time.Now()
	m.tether.SetReadDeadline(at.Add(time.Minute))
	said, err := io.ReadAll(m.tether)
	if m.said = append(m.said, said...); err != nil || string(m.said) != "here\n" {
		m.t.Errorf("somebody is left: %v; what held the tether said %q", err, m.said)
	}
	return time.Since(at)
}

// users are who the runtime can run as here.
func users(t *testing.T) map[string]bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return map[string]bool{"plain user": false}
	}
	return map[string]bool{"root": false, "plain user": true}
}

func confined(t *testing.T) {
	t.Helper()
	m := sandbox.Probe()
	needs.Facility(t, "sandbox", m.Level.AtLeast(belay.L3), "level "+string(m.Level)+": "+m.Why)
}

// grouped reports whether who runs the test can make groups.
func grouped() bool {
	return slices.ContainsFunc(sandbox.Probe().Layers, func(l belay.Layer) bool {
		return l.Name == boxinit.Cgroup && l.State == belay.LayerApplied
	})
}
