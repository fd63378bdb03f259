package kill

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// first is what the program in the background prints at once: enough to be kept
// without a wait.
var first = strings.Repeat("u", 1<<20) + "\n"

// scripts are the programs of the scenario. Each holds the named pipe "tether"
// open, and so does what wants to outlive it.
var scripts = map[string]string{
	"once.sh":  tethered + "echo run >>effects.log; echo ran\n",
	"heeds.sh": tethered + "head -c 1048576 /dev/zero | tr '\\0' u; echo; echo up >>up.log; while read x; do echo heard $x; done; exec sleep 600\n",
	"tty.sh":   tethered + "test -t 0 && echo tty >>tty.log; echo on; exec sleep 600\n",
}

const tethered = `exec 3>tether
env -i setsid sh -c 'trap "" TERM HUP; i=0; while [ $i -lt 600 ]; do sleep 1; i=$((i+1)); done' </dev/null >/dev/null 2>&1 &
`

// programs is a machine whose agent runs programs in a boundary: one to its end,
// one in the background that it writes to and a command ends, and one on a
// terminal that it ends itself.
type programs struct {
	*machine
	base   string
	tether int
	pids   []int // of processes that were killed
	ended  atomic.Bool
}

func newPrograms(t *testing.T) *programs {
	t.Helper()
	l := &programs{machine: newMachine(t)}
	server := modelserver.New(l.say)
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	l.base = srv.URL + "/v1"
	config := filepath.Join(l.dir, ".config", "belay")
	pipe := filepath.Join(l.ws, "tether")
	err := errors.Join(os.MkdirAll(config, 0o700), syscall.Mkfifo(pipe, 0o600),
		os.WriteFile(filepath.Join(config, "policy.yaml"), []byte("version: 1\nboundaries:\n  tests: {limits: {memory: 1GiB, processes: 200}}\n"), 0o600))
	for name, text := range scripts {
		err = errors.Join(err, os.WriteFile(filepath.Join(l.ws, name), []byte(text), 0o644))
	}
	if err == nil {
		l.tether, err = syscall.Open(pipe, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(l.tether) })
	return l
}

var stillRuns = regexp.MustCompile(`still running as (proc_[0-9a-f-]+)`)

// say is the model: how many results there are decides what comes next, and
// what they say which program is meant.
func (l *programs) say(a modelserver.Asked) modelserver.Scene {
	id := func(n int) string {
		_, result, _ := strings.Cut(strings.Join(a.Texts, "\n"), fmt.Sprintf("step %d\n", n))
		result, _, _ = strings.Cut(result, "\nstep ")
		if m := stillRuns.FindStringSubmatch(result); m != nil {
			return m[1]
		}
		return ""
	}
	type args map[string]any
	calls := []struct {
		tool string
		args args
	}{
		{"exec", args{"command": "sh once.sh"}},
		{"exec", args{"command": "sh heeds.sh", "background_after": 0.05}},
		{"process_send", args{"id": id(1), "input": "hello\n"}},
		{"process", args{"id": id(1), "offset": len(first), "wait_seconds": 40}},
		{"exec", args{"command": "sh tty.sh", "background_after": 0.05, "tty": true}},
		{"process", args{"id": id(4), "offset": 0, "wait_seconds": 40}},
		{"process_send", args{"id": id(4), "control": "kill"}},
		{"process", args{"id": id(1), "offset": 2 * len(first), "wait_seconds": 99}},
		{"complete_task", args{"summary": "done"}},
	}
	c := calls[min(a.Results, len(calls)-1)]
	if c.args["id"] == "" { // its call was lost: there is nothing to see to
		c.tool, c.args = "process", args{}
	}
	raw, _ := json.Marshal(c.args)
	return modelserver.Scene{Scene: modeltest.Scene{Text: fmt.Sprint("step ", a.Results), Calls: []model.Call{{Name: c.tool, Args: string(raw)}}, Stop: "tool_calls"}}
}

// life runs a process of the machine, while somebody ends the program in the
// background when the model waits for that.
func (l *programs) life(begins bool, env ...string) end {
	args := []string{"sessions", "resume", "--last"}
	if begins {
		args = []string{"run", "--provider", "openai", "--base-url", l.base, "--model", "m", "--mode", "on_failure", "--boundary", "tests", "--allow", "exec", "--allow", "process_send", "go"}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				l.endsWhatIsWaitedFor()
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	pid := 0
	e := l.runWith(func(p *os.Process) { pid = p.Pid }, env, args...)
	if e.killed {
		l.pids = append(l.pids, pid)
	}
	return e
}

func (l *programs) endsWhatIsWaitedFor() {
	if !l.look() || l.ended.Load() {
		return
	}
	s := l.thread()
	if s == nil || s.Turn == nil || s.Turn.Step == nil {
		return
	}
	for _, c := range s.Turn.Step.Calls {
		if c.Phase != thread.CallRunning || !strings.Contains(string(c.Args), `"wait_seconds":99`) {
			continue
		}
		for _, p := range s.Procs {
			if p.Left && !p.Over && !p.Orphan && !l.ended.Swap(true) {
				if e := l.run(nil, "process", "kill", string(p.IDs.Process), "-m", "enough"); e.exit != 0 && !strings.Contains(e.out, "not_found") && !strings.Contains(e.out, "no process") {
					l.t.Errorf("process kill: exit %d\n%s", e.exit, e.out)
				}
			}
		}
	}
}

// look opens the store to be read, if there is one.
func (l *programs) look() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.db != nil {
		return true
	}
	if _, err := os.Stat(filepath.Join(l.store, "tenants/default/belay.db")); err != nil {
		return false
	}
	db, err := sqlite.Open(l.t.Context(), l.store, sqlite.Options{ReadOnly: true})
	if err == nil {
		l.db = db
	}
	return err == nil
}

// told is what the thread's facts say of programs.
type told struct {
	applied int
	started []event.Envelope
	ends    map[belay.ProcessID][]event.Payload
	outputs map[belay.ProcessID][]event.ProcessOutput
	asks    int
}

func (l *programs) told() told {
	l.t.Helper()
	d := told{ends: map[belay.ProcessID][]event.Payload{}, outputs: map[belay.ProcessID][]event.ProcessOutput{}}
	if !l.look() {
		return d
	}
	for _, stream := range l.streams() {
		if stream.Kind() != belay.KindThread {
			continue
		}
		for e, err := range l.db.Read(l.t.Context(), stream, 0) {
			if err != nil {
				l.t.Fatal(err)
			}
			switch p := e.Data.(type) {
			case event.SandboxApplied:
				if d.applied++; p.Level != string(belay.L3) || p.Boundary != "tests" {
					l.t.Errorf("a program was given %+v", p)
				}
			case event.ProcessStarted:
				if d.started = append(d.started, e); d.applied < len(d.started) {
					l.t.Errorf("%s: nothing says in which boundary", e.ID())
				}
			case event.ProcessOutput:
				d.outputs[e.IDs.Process] = append(d.outputs[e.IDs.Process], p)
			case event.ProcessInput:
				if p.Asked && p.Signal != "" {
					d.asks++
				}
			case event.ProcessCompleted, event.ProcessFailed, event.ProcessTerminated:
				d.ends[e.IDs.Process] = append(d.ends[e.IDs.Process], p)
			}
		}
	}
	return d
}

// afterKill holds what a killed process leaves against what it may: nobody is
// alive, nothing ran that wasn't announced, and what was printed can be read.
func (l *programs) afterKill(what string) (s sight) {
	l.t.Helper()
	d := l.told()
	s.gone = l.nobodyIsLeft(what, d.started)
	for name, starts := range map[string]int{"effects.log": 1, "up.log": 2, "tty.log": 3} {
		if n := l.lines(name); n > 1 || n > 0 && len(d.started) < starts {
			l.t.Errorf("%s: %s has %d lines, and %d programs are announced", what, name, n, len(d.started))
		}
	}
	s.held = d.applied > len(d.started)
	for _, e := range d.started {
		id := e.IDs.Process
		if len(d.ends[id]) > 0 {
			continue
		}
		s.lost++
		if o := l.run(nil, "--json", "process", "list"); !strings.Contains(o.out, `"process":"`+string(id)+`"`) || strings.Contains(o.out, `"status":"background"`) || strings.Contains(o.out, `"status":"running"`) {
			l.t.Errorf("%s: the list says %s", what, o.out)
		}
		if told := d.outputs[id]; len(told) > 0 {
			s.read++
			from, kept := told[len(told)-1].Offset, told[len(told)-1].Text
			o := l.run(nil, "process", "output", string(id))
			whole := strings.HasPrefix("ran\n", o.out) || strings.HasPrefix("on\r\n", o.out) || strings.HasPrefix(first+"heard hello\n", o.out)
			if o.exit != 0 || !whole || int64(len(o.out)) < max(from+int64(len(kept)), 1) {
				l.t.Errorf("%s: of its output there are %d bytes of at least %d, which end %q", what, len(o.out), from+int64(len(kept)), o.out[max(0, len(o.out)-80):])
			}
		}
	}
	s.groups = len(l.groups())
	return s
}

// sight is what a kill was found to have interrupted.
type sight struct {
	held   bool // a boundary stood, and its program wasn't announced
	lost   int  // programs without an end
	read   int  // of them with an output
	groups int  // that the killed process left
	gone   time.Duration
}

// nobodyIsLeft waits until nobody holds the tether, and none of the programs that
// were announced is alive.
func (l *programs) nobodyIsLeft(what string, started []event.Envelope) time.Duration {
	l.t.Helper()
	begun := time.Now()
	alive := func() bool {
		n, err := syscall.Read(l.tether, make([]byte, 1))
		return n != 0 || err != nil || slices.ContainsFunc(started, func(e event.Envelope) bool {
			p := e.Data.(event.ProcessStarted)
			return process.Alive(p.PID, p.StartTime)
		})
	}
	for alive() {
		if time.Since(begun) > patience {
			l.t.Fatalf("%s: somebody is left after %s", what, patience)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(begun)
}

// patience is for what takes a moment: machines are loaded.
const patience = 40 * time.Second

func (l *programs) lines(name string) int {
	b, _ := os.ReadFile(filepath.Join(l.ws, name))
	return strings.Count(string(b), "\n")
}

// groups are the cgroups of processes that were killed.
func (l *programs) groups() (all []string) {
	for _, pid := range l.pids {
		for _, at := range []string{"/sys/fs/cgroup/belay/", "/sys/fs/cgroup/*/belay/"} {
			found, _ := filepath.Glob(at + strconv.Itoa(pid) + "-*")
			all = append(all, found...)
		}
	}
	return all
}

// settled holds what is left at the end against what must be.
func (l *programs) settled(what string) {
	l.t.Helper()
	if e := l.run(nil, "verify"); e.exit != 0 {
		l.t.Errorf("%s: verify exits %d:\n%s", what, e.exit, e.out)
	}
	summary := ""
	for _, stream := range l.streams() {
		summary += l.checkStream(what, stream)
	}
	l.checkViews(what)
	if rows, err := l.db.Lanes(l.t.Context(), ""); err != nil || len(rows) != 0 {
		l.t.Errorf("%s: lanes at rest: %+v %v", what, rows, err)
	}
	d := l.told()
	for _, e := range d.started {
		if len(d.ends[e.IDs.Process]) != 1 {
			l.t.Errorf("%s: %s has the ends %+v", what, e.IDs.Process, d.ends[e.IDs.Process])
		}
	}
	if n := l.lines("effects.log"); summary != "done" || n > 1 {
		l.t.Errorf("%s: %q after %d runs of the at-most-once call", what, summary, n)
	}
	l.nobodyIsLeft(what, d.started)
	if left := l.groups(); len(left) > 0 {
		l.t.Errorf("%s: cgroups are left: %q", what, left)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), l.dir) {
		l.t.Errorf("%s: a mount is left, %v", what, err)
	}
	if _, err := os.Lstat(filepath.Join(l.ws, ".belay")); err == nil {
		l.t.Errorf("%s: stubs of protected names are left", what)
	}
}

// TestKillWithPrograms kills the process at each of its points while programs run
// in a boundary: to their end, in the background, and on a terminal. Everything
// of them is dead then, what is left of them is lost and can be read, and a
// resume comes to the answer.
// Guarantee: T7, T61, T50.
func TestKillWithPrograms(t *testing.T) {
	m := sandbox.Probe()
	needs.Facility(t, "sandbox", m.Level.AtLeast(belay.L3), "level "+string(m.Level)+": "+m.Why)
	begun := time.Now()
	l := newPrograms(t)
	count := filepath.Join(l.dir, "points")
	if e := l.life(true, countIn+"="+count); e.exit != 0 {
		t.Fatalf("exit %d\n%s", e.exit, e.out)
	}
	l.settled("without a kill")
	d := l.told()
	b, _ := os.ReadFile(count)
	points, _ := strconv.Atoi(string(b))
	if len(d.started) != 3 || d.asks != 1 || l.lines("effects.log") != 1 || l.lines("up.log") != 1 || l.lines("tty.log") != 1 || points < 60 {
		t.Errorf("%d points, %d programs, %d were asked to end\n%s", points, len(d.started), d.asks, l.transcript.String())
	}
	l.discard()

	at := make(chan int)
	var mu sync.Mutex
	var all sight
	kills, held := 0, 0
	play := func(t *testing.T, n int) {
		l := newPrograms(t)
		defer l.discard()
		what := fmt.Sprint("killed at ", n)
		e := l.life(true, fmt.Sprintf("%s=%d", killAt, n))
		killed := e.killed
		if killed {
			s := l.afterKill(what)
			mu.Lock()
			kills, all.lost, all.read, all.groups, all.gone = kills+1, all.lost+s.lost, all.read+s.read, all.groups+s.groups, max(all.gone, s.gone)
			if s.held {
				held++
			}
			mu.Unlock()
			e = l.life(false)
		}
		if e.exit != 0 {
			t.Fatalf("%s: exit %d\n%s", what, e.exit, e.out)
		}
		l.settled(what)
	}
	var wg sync.WaitGroup
	for range 4 { // they wait most of the time
		wg.Go(func() {
			for n := range at {
				t.Run(strconv.Itoa(n), func(t *testing.T) { play(t, n) })
			}
		})
	}
	if full {
		for n := accepted; n <= points; n++ {
			at <- n
		}
	} else {
		for range 6 {
			at <- accepted + rand.IntN(points-1)
		}
	}
	close(at)
	wg.Wait()
	if full && (kills < points/2 || held == 0 || all.lost == 0 || all.read == 0 || all.groups == 0) {
		t.Errorf("%d kills, %d before a release, %+v", kills, held, all)
	}
	t.Logf("%d points, %d kills in %.1f s: %d while a program was held, %d programs lost, %d of them with output; all were gone within %s; %d cgroups were left to the next process",
		points, kills, time.Since(begun).Seconds(), held, all.lost, all.read, all.gone.Round(time.Millisecond), all.groups)
}
