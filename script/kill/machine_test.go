// Package kill lets real processes of the program die by SIGKILL at every
// point, and by pairs of points, and holds what is left against the promises.
package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/view"
)

// The environment by which the test binary becomes the program.
const (
	asProgram = "BELAY_KILL_CHILD" // set: be the program
	killAt    = "BELAY_KILL_AT"    // the point at which to die
	tellAt    = "BELAY_KILL_TELL"  // the point at which to make a file, "N PATH"
	countIn   = "BELAY_KILL_COUNT" // the file to write the number of points to, at the end
)

// accepted is the first point of a new run at which there is a session. It
// begins with all that its first commands make of it: at the point before that
// there is nothing to go on with, and nobody was told that there is.
const accepted = 2

func TestMain(m *testing.M) {
	sandbox.Main()
	if filepath.Base(os.Args[0]) == "mcpserver" {
		os.Exit(mcpServer())
	}
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	os.Exit(program())
}

// program is the real main, with a counter at its points.
func program() int {
	sys := cli.Process()
	die, _ := strconv.Atoi(os.Getenv(killAt))
	at, path, _ := strings.Cut(os.Getenv(tellAt), " ")
	tell, _ := strconv.Atoi(at)
	var mu sync.Mutex
	n := 0
	sys.Point = func(string) {
		mu.Lock()
		defer mu.Unlock()
		n++
		if n == die {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way; nothing may happen any more
		}
		if n == tell {
			os.WriteFile(path, nil, 0o600)
		}
	}
	code := cli.Main(context.Background(), os.Args[1:], sys)
	sandbox.Cleanup()
	if path := os.Getenv(countIn); path != "" {
		mu.Lock()
		defer mu.Unlock()
		os.WriteFile(path, []byte(strconv.Itoa(n)), 0o600) //nolint:errcheck // who reads it notices
	}
	return code
}

// machine is what outlives its processes: a store and a workspace.
type machine struct {
	t          *testing.T
	dir        string
	store, ws  string
	script     string
	db         *sqlite.DB // read only
	mu         sync.Mutex
	answered   map[belay.ActionID]bool
	pauses     string          // an agent that is paused before its questions are answered, and resumed behind that
	peer       belay.SessionID // another session, which the checks leave out
	limited    bool
	books      coretest.Sums // of the last check
	transcript bytes.Buffer
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "belay-kill-")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: dir, store: filepath.Join(dir, "store"), ws: filepath.Join(dir, "ws"), answered: map[belay.ActionID]bool{}}
	src, err := filepath.Abs("../../internal/model/scripted/testdata/killloop")
	if err != nil {
		t.Fatal(err)
	}
	m.script = src + ".yaml"
	if err := os.CopyFS(m.ws, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	return m
}

// limits are what a machine's sessions may spend: so little that a person is asked for
// more, and slices of a quota that isn't used up.
const limits = `budget: 30ktok,100calls,4h
quotas:
  - {of: tenant, limit: 50mtok, per: month}
  - {of: user, limit: 1000000calls, per: day}
`

// limit limits what all sessions of the machine may spend.
func (m *machine) limit() {
	m.t.Helper()
	config := filepath.Join(m.dir, ".config", "belay")
	if err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "belay.yaml"), []byte(limits), 0o600)); err != nil {
		m.t.Fatal(err)
	}
	m.limited = true
}

func (m *machine) discard() {
	if m.db != nil {
		m.db.Close()
	}
	if m.t.Failed() {
		m.t.Logf("kept: %s\n%s", m.dir, m.transcript.String())
		return
	}
	os.RemoveAll(m.dir)
}

// command is the program with these arguments on the machine.
func (m *machine) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = m.ws
	cmd.Env = append([]string{asProgram + "=1", "BELAY_STORE=" + m.store, "HOME=" + m.dir, "USER=tester", "PATH=" + os.Getenv("PATH")}, env...)
	return cmd
}

// end is how a process ended.
type end struct {
	exit   int
	killed bool
	out    string
}

func (m *machine) run(env []string, args ...string) end {
	return m.runWith(nil, env, args...)
}

// longest is longer than any command of these tests takes on a loaded machine.
const longest = 4 * patience

// runWith tells begun of the process when it has begun. One that doesn't end is made to
// say where it stands, and fails the test.
func (m *machine) runWith(begun func(*os.Process), env []string, args ...string) end {
	cmd := m.command(env, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = patience // for what of it holds its output
	err := cmd.Start()
	if err == nil && begun != nil {
		begun(cmd.Process)
	}
	if err == nil {
		hangs := time.AfterFunc(longest, func() { cmd.Process.Signal(syscall.SIGQUIT) })
		err = cmd.Wait()
		if !hangs.Stop() {
			m.t.Errorf("belay %s, with %v, hasn't ended in %s\n%s", strings.Join(args, " "), env, longest, out.String())
		}
	}
	m.mu.Lock()
	fmt.Fprintf(&m.transcript, "$ belay %s  # %v %v\n%s", strings.Join(args, " "), env, err, out.String())
	m.mu.Unlock()
	e := end{out: out.String()}
	if x, ok := errors.AsType[*exec.ExitError](err); ok {
		ws := x.Sys().(syscall.WaitStatus)
		e.exit, e.killed = ws.ExitStatus(), ws.Signaled() && ws.Signal() == syscall.SIGKILL
	} else if err != nil {
		m.t.Fatal(err)
	}
	return e
}

// start gives the agent its work; resume continues with it.
func (m *machine) start(env ...string) end {
	return m.answering(func() end {
		return m.run(env, "run", "--script", m.script, "--mode", "accept_edits", "--approvals", "wait", "go")
	})
}

func (m *machine) resume(env ...string) end {
	return m.answering(func() end { return m.run(env, "sessions", "resume", "--last", "--approvals", "wait") })
}

// answering runs f while a second process answers what is asked.
func (m *machine) answering(f func() end) end {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				m.answer()
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	return f()
}

// answer lets a process approve the first open question that nobody answered.
func (m *machine) answer() {
	if m.db == nil {
		if _, err := os.Stat(filepath.Join(m.store, "tenants/default/belay.db")); err != nil {
			return
		}
		db, err := sqlite.Open(context.Background(), m.store, sqlite.Options{ReadOnly: true})
		if err != nil {
			return // it is just being made
		}
		m.db = db
	}
	for _, s := range m.threads() {
		for _, o := range s.Opens() {
			if m.answered[o.Action] || o.Kind == "question" {
				continue
			}
			m.answered[o.Action] = true
			if n := len(s.Lineage); n > 0 && m.pauses != "" && s.Lineage[n-1].Name == m.pauses {
				m.tell("agents", "pause", m.pauses)
				defer m.tell("agents", "resume", m.pauses)
			}
			switch e := m.run(nil, "approve", string(o.Action)); {
			case e.exit == 0, strings.Contains(e.out, "already_answered"):
			case strings.Contains(e.out, "unknown_action"): // its agent was ended meanwhile
			default:
				m.t.Errorf("approve: exit %d\n%s", e.exit, e.out)
			}
		}
	}
}

// tell runs a command that must be taken.
func (m *machine) tell(args ...string) {
	if e := m.run(nil, args...); e.exit != 0 {
		m.t.Errorf("%v: exit %d\n%s", args, e.exit, e.out)
	}
}

// threads are the machine's, the main one first.
func (m *machine) threads() (all []*thread.State) {
	for _, s := range m.streams() {
		if s.Kind() != belay.KindThread {
			continue
		}
		if d, _, _, err := engine.Load(context.Background(), m.db, s); err == nil {
			all = append(all, d.(*thread.Decider).State())
		}
	}
	return all
}

// thread is the machine's main thread, or nil.
func (m *machine) thread() *thread.State {
	if all := m.threads(); len(all) > 0 {
		return all[0]
	}
	return nil
}

func (m *machine) streams() (out []belay.StreamID) {
	seen := map[belay.StreamID]bool{}
	for r, err := range m.db.Scan(context.Background(), 0) {
		if err != nil {
			return nil
		}
		if !seen[r.Event.Stream] && r.Event.IDs.Session != belay.SystemSession && (m.peer == "" || r.Event.IDs.Session != m.peer) {
			seen[r.Event.Stream] = true
			out = append(out, r.Event.Stream)
		}
	}
	return out
}

// sessions are the machine's, in their order.
func (m *machine) sessions() (out []belay.SessionID) {
	m.open()
	for _, s := range m.streams() {
		if s.Kind() == belay.KindSession {
			out = append(out, belay.SessionID(s.ID()))
		}
	}
	return out
}

// check holds the laws against the machine at rest. It reports whether the
// at-most-once call was lost.
func (m *machine) check(what string) (lost bool) {
	m.t.Helper()
	if e := m.run(nil, "verify"); e.exit != 0 {
		m.t.Errorf("%s: verify exits %d:\n%s", what, e.exit, e.out)
	}
	s := m.thread()
	if s == nil || s.Turn != nil || s.Prev == nil || s.Prev.Outcome != belay.Completed {
		m.t.Fatalf("%s: the turn is at %+v", what, s)
	}
	summary := ""
	for _, stream := range m.streams() {
		summary += m.checkStream(what, stream)
	}
	m.checkViews(what)
	m.books = coretest.Books(m.t, what, m.log())
	runs, _ := os.ReadFile(filepath.Join(m.ws, "effects.log"))
	n := bytes.Count(runs, []byte("\n"))
	lost = summary == "done (lost)"
	if !(lost && n <= 1 || summary == "done" && n == 1) {
		m.t.Errorf("%s: %q after %d runs of the at-most-once call", what, summary, n)
	}
	if edited, _ := os.ReadFile(filepath.Join(m.ws, "notes/a.txt")); !bytes.Contains(edited, []byte("colour green")) {
		m.t.Errorf("%s: the edit isn't there", what)
	}
	if rows, err := m.db.Lanes(m.t.Context(), ""); err != nil || len(rows) != 0 {
		m.t.Errorf("%s: lanes at rest: %+v %v", what, rows, err)
	}
	return lost
}

// checkStream: no gap, every fact valid and its blobs there, and the cached
// state is what folding says.
func (m *machine) checkStream(what string, stream belay.StreamID) (summary string) {
	m.t.Helper()
	ctx := m.t.Context()
	loaded, _, _, err := engine.Load(ctx, m.db, stream)
	if err != nil {
		m.t.Fatal(err)
	}
	folded, _, _ := engine.NewDecider(stream)
	next := int64(1)
	for e, err := range m.db.Read(ctx, stream, 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		if e.Seq != next {
			m.t.Errorf("%s: %s: sequence %d where %d should be", what, stream, e.Seq, next)
		}
		next++
		folded.Apply(e)
		eventtest.Emitted(m.t, e)
		raw, _ := json.Marshal(e)
		for _, d := range digests(raw) {
			if _, err := m.db.Get(ctx, d); err != nil {
				m.t.Errorf("%s: %s names content that can't be had: %v", what, e.ID(), err)
			}
		}
		if c, ok := e.Data.(event.TurnCompleted); ok {
			summary = c.Summary.Text
		}
	}
	a, _ := loaded.Save()
	b, _ := folded.Save()
	if !bytes.Equal(a, b) {
		m.t.Errorf("%s: %s: loading gives\n%s\nfolding gives\n%s", what, stream, a, b)
	}
	return summary
}

// digests are the blobs that a fact names.
func digests(raw []byte) (out []belay.Digest) {
	const mark = `{"digest":"`
	for {
		_, rest, ok := bytes.Cut(raw, []byte(mark+"sha256:"))
		if !ok {
			return out
		}
		out = append(out, belay.Digest("sha256:"+string(rest[:64])))
		raw = rest
	}
}

// checkViews: the stored read models are what folding the log from the
// beginning gives.
func (m *machine) checkViews(what string) {
	m.t.Helper()
	db, err := sqlite.Open(m.t.Context(), m.store, sqlite.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	rows := func() map[string]string {
		out := map[string]string{}
		for k, v := range db.ViewRows(m.t.Context(), view.Name, "") {
			out[k] = string(v)
		}
		return out
	}
	if err := view.Catchup(m.t.Context(), db); err != nil {
		m.t.Fatal(err)
	}
	kept := rows()
	if err := view.Rebuild(m.t.Context(), db); err != nil {
		m.t.Fatal(err)
	}
	again := rows()
	if len(kept) == 0 || fmt.Sprint(kept) != fmt.Sprint(again) {
		m.t.Errorf("%s: views differ:\nkept  %v\nagain %v", what, kept, again)
	}
}

var _ store.Store = (*sqlite.DB)(nil)
