// Package load puts a real server under load: the program itself as a process,
// its database on a disk, requests over HTTP. Tests of it fail when something
// went wrong, was lost or came out of order. How long things took is printed
// beside what it should be, because a loaded machine is no error of the program.
//
// In the usual tests the numbers are small and the test binary plays the
// program. BELAY_LOAD=full, which is make load, builds the program and takes
// the numbers of the goals. BELAY_LOAD_PROGRAM names a program that was built
// before, so that two can be measured in turns.
package load

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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// asProgram, set, makes the test binary the program.
const asProgram = "BELAY_LOAD_CHILD"

// full takes the numbers of the goals.
var full = os.Getenv("BELAY_LOAD") == "full"

// program is the path of the program.
var program string

func TestMain(m *testing.M) {
	sandbox.Main()
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Process()))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if !full {
		program = os.Args[0]
		return m.Run()
	}
	if program = os.Getenv("BELAY_LOAD_PROGRAM"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "belay-load")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "belay")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", program, "../../cmd/belay").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
		return 1
	}
	return m.Run()
}

// of is a number of the goals, or the small one of the usual tests.
func of(goal, small int) int {
	if full {
		return goal
	}
	return small
}

// figure prints what was measured beside what it should be.
func figure(t *testing.T, what string, got any, goal string) {
	t.Helper()
	t.Logf("%-62s %14v   goal %s", what, got, goal)
}

// place is what outlives a server: a store and a workspace.
type place struct {
	t     *testing.T
	dir   string
	store string
	ws    string
	env   []string
	token string
}

func newPlace(t *testing.T, script string) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t: t, dir: dir, store: filepath.Join(dir, "store"), ws: filepath.Join(dir, "ws")}
	for _, d := range []string{filepath.Join(p.ws, ".git"), filepath.Join(dir, "home")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.write("ws/.git/HEAD", "ref: refs/heads/main\n")
	p.env = []string{"HOME=" + filepath.Join(dir, "home"), "USER=tester", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, asProgram + "=1", "GORACE=atexit_sleep_ms=0"}
	if script != "" {
		p.write("script.yaml", script)
		p.env = append(p.env, "BELAY_SCRIPT="+filepath.Join(dir, "script.yaml"))
	}
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// server is a running server.
type server struct {
	*place
	url   string
	cmd   *exec.Cmd
	begun time.Time     // before the process was started
	ready time.Duration // until it said its address
	http  *http.Client
	log   *bytes.Buffer
	ended bool
}

// start starts a server and waits until it is ready.
func (p *place) start(args ...string) *server {
	p.t.Helper()
	s := &server{place: p, log: &bytes.Buffer{}, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000, MaxConnsPerHost: 2000}}}
	s.cmd = exec.Command(program, append([]string{"--store", p.store, "--json", "serve", "--listen", "127.0.0.1:0", "--rate", "100000"}, args...)...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = p.ws, p.env, &tail{b: s.log}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	s.begun = time.Now()
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.ready = time.Since(s.begun)
	p.t.Cleanup(s.kill)
	if err != nil {
		s.kill()
		p.t.Fatalf("the server doesn't come up: %v\n%s", err, s.log)
	}
	var said struct{ URL, Token string }
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		p.t.Fatal(err)
	}
	if s.url = said.URL; said.Token != "" {
		p.token = said.Token
	}
	return s
}

// tail keeps the end of a log.
type tail struct{ b *bytes.Buffer }

func (t *tail) Write(b []byte) (int, error) {
	if t.b.Len() > 1<<20 {
		t.b.Reset()
	}
	return t.b.Write(b)
}

// stop lets the server end well.
func (s *server) stop() {
	s.t.Helper()
	s.ended = true
	s.http.CloseIdleConnections()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Fatalf("the server ended badly: %v\n%s", err, s.log)
	}
}

// kill is kill -9.
func (s *server) kill() {
	if s.ended {
		return
	}
	s.ended = true
	s.http.CloseIdleConnections()
	s.cmd.Process.Kill() //nolint:errcheck // it has ended already
	s.cmd.Wait()         //nolint:errcheck // killed is what it should be
}

// ask sends a request and reads the answer into out.
func (s *server) ask(ctx context.Context, method, path, body string, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	raw, err := s.do(req)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// text is what a route answers.
func (s *server) text(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	raw, err := s.do(req)
	return string(raw), err
}

func (s *server) do(req *http.Request) ([]byte, error) {
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", req.Method, req.URL.Path, resp.StatusCode, raw)
	}
	return raw, err
}

// profile keeps what the server's processor did for so many seconds, in the file
// that BELAY_LOAD_PROFILE names, and returns when it is written. It is the
// measurer's: nothing is profiled when nobody asks.
func (s *server) profile(seconds int) (wait func()) {
	file := os.Getenv("BELAY_LOAD_PROFILE")
	if file == "" {
		return func() {}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		raw, err := s.text(s.t.Context(), fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
		if err = errors.Join(err, os.WriteFile(file, []byte(raw), 0o600)); err != nil {
			s.t.Error(err)
		}
	})
	return wg.Wait
}

// told is a part of what submit_turn answers.
type told struct {
	SessionID, RunID string
	Position         int64
}

func (s *server) submit(ctx context.Context, session, turn string) (told, error) {
	var out told
	body := fmt.Sprintf(`{"sessionId":%q,"turnId":%q,"text":"Work on it.","settings":{"allow":["todo"]}}`, session, turn)
	return out, s.ask(ctx, "POST", "/v1/commands/submit_turn", body, &out)
}

// memory is a line of the process's status in bytes: VmHWM is the most that was
// resident, VmRSS what is.
func (s *server) memory(line string) int64 {
	s.t.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/status")
	needs.Facility(s.t, "/proc", err == nil, "the figures of processes are read there")
	_, rest, _ := strings.Cut(string(raw), line+":")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return kb << 10
}

// processor is the time that the process took on processors so far.
func (s *server) processor() time.Duration {
	s.t.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/stat")
	needs.Facility(s.t, "/proc", err == nil, "the figures of processes are read there")
	_, rest, _ := strings.Cut(string(raw), ") ")
	var ticks int64
	for _, f := range strings.Fields(rest)[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func mb(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// each does something n times, so many at once, and returns what went wrong.
func each(n, width int, do func(i int) error) (errs []error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, width)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := do(i); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errs
}

// none fails a test that had errors.
func none(t *testing.T, errs []error) {
	t.Helper()
	if len(errs) > 0 {
		t.Fatalf("%d errors, such as %v", len(errs), errs[0])
	}
}

// quantile is the q-th part of durations.
func quantile(d []time.Duration, q float64) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[min(int(q*float64(len(s))), len(s)-1)].Round(100 * time.Microsecond)
}
