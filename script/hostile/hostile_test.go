//go:build linux

package hostile

import (
	"encoding/json"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// full is set where the machine has nothing else to do: then the figures are
// held as they are promised. Elsewhere times have room, for others take theirs.
var full = os.Getenv("BELAY_HOSTILE") == "full"

func within(d time.Duration) time.Duration {
	if full {
		return d
	}
	return 20 * d
}

// row is one hostile program: the limits of its boundary, empty for the one that
// a call has by default, and the one that its end names.
type row struct {
	name, limits, script, limit string
}

// slow rows are played only where there is time.
var slow = map[string]bool{"a gigabyte that is kept": true}

var rows = []row{
	{"fork bomb", "processes: '64', memory: 512MiB, wall: 10s", "b() { b | b & b; }; b", belay.LimitProcesses},
	{"fork bomb in the default boundary", "", "b() { b | b & b; }; b", belay.LimitProcesses},
	{"fork bomb that never gives up", "processes: '64', memory: 512MiB, wall: 2s", `exec python3 -c '
import os
while True:
    try: os.fork()
    except OSError: pass'`, belay.LimitWall},
	{"memory hog", "memory: 128MiB", `exec python3 -c 'b = bytearray(b"x") * (1 << 30)'`, belay.LimitMemory},
	{"output", "output: 16MiB", `yes 0123456789 | head -c 1000000000`, belay.LimitOutput},
	{"a gigabyte that is kept", "wall: 60s", `yes 0123456789 | head -c 1000000000`, ""},
	{"descriptor eater", "open_files: '64'", `exec python3 -c 'f = [open("/dev/null") for _ in range(1000000)]'`, belay.LimitOpenFiles},
	{"inode eater", "disk: 8MiB", `i=0; while : >/tmp/$i; do i=$((i+1)); done`, belay.LimitInodes},
	{"disk eater", "disk: 8MiB", `head -c 100000000 /dev/zero >/tmp/big`, belay.LimitDisk},
	{"large file", "file_size: 1MiB", `head -c 100000000 /dev/zero >big`, belay.LimitFileSize},
	{"busy loop", "cpu: 1s", `exec python3 -c 'while True: pass'`, belay.LimitCPU},
	{"daemons of a session of their own", "wall: 30s", "setsid sleep 600 & setsid sh -c 'trap \"\" TERM HUP INT; sleep 600' & env -i setsid sleep 600 & exit 0", ""},
	{"double forks", "wall: 30s", `exec python3 -c '
import os, time
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(600)
        os._exit(0)'`, ""},
}

// TestHostilePrograms is a row for each of what a program can use up, as root
// and as a plain user: the runtime answers meanwhile, it stays small, nobody is
// left, and the log says which limit it was.
// Guarantee: T70, T56.
func TestHostilePrograms(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	for user, plain := range users(t) {
		for _, r := range rows {
			if slow[r.name] && !full {
				continue
			}
			t.Run(user+"/"+r.name, func(t *testing.T) {
				if root := os.Geteuid() == 0 && !plain; root && (r.limit == belay.LimitWall || r.limit == belay.LimitProcesses) {
					needs.Facility(t, "cgroup", grouped(), "nothing else limits the processes of root")
				}
				r.play(t, plain)
			})
		}
	}
}

func (r row) play(t *testing.T, plain bool) {
	m := newMachine(t, plain, r.limits, "exec 3>tether\necho here >&3\n"+r.script)
	before := m.memory("VmRSS")
	id := m.begin()
	took := m.meanwhile(id)
	left := m.gone()
	grown := m.memory("VmHWM") - before
	p99 := took[len(took)*99/100]
	if p99 > within(500*time.Millisecond) {
		t.Errorf("of %d answers meanwhile the slowest hundredth took %s", len(took), p99)
	}
	if grown > room {
		t.Errorf("the runtime grew by %d MiB", grown>>20)
	}
	if left > within(2*time.Second) {
		t.Errorf("somebody was left for %s", left)
	}
	end, stopped := ends(t, m.facts(id))
	if end.Limit != r.limit {
		t.Errorf("the program's end names limit %q, want %q", end.Limit, r.limit)
	}
	if r.limit != "" && (stopped.Op != "limit" || stopped.Target != r.limit || stopped.Layer == "" || stopped.Reason == "") {
		t.Errorf("the violation is %+v", stopped)
	}
	t.Logf("%d answers, p99 %s; grew %d MiB; all gone after %s; ended by %q (%s: %s), %d ms of processors, %d MiB, %d processes",
		len(took), p99.Round(time.Millisecond), grown>>20, left.Round(time.Millisecond), end.Limit, stopped.Layer, stopped.Reason, end.CPU, max(end.Peak, end.Together)>>20, end.Processes)
}

// ends is what a log says of the program's end.
func ends(t *testing.T, log []fact) (use event.ProcessUse, stopped event.SandboxViolation) {
	t.Helper()
	seen := false
	for _, f := range log {
		switch f.Type {
		case "process.completed", "process.terminated":
			seen = true
			if err := json.Unmarshal(f.Data, &use); err != nil {
				t.Fatal(err)
			}
		case "sandbox.violation":
			if err := json.Unmarshal(f.Data, &stopped); err != nil {
				t.Fatal(err)
			}
		case "process.failed", "tool.failed":
			if use.Limit == "" || f.Type == "process.failed" {
				t.Errorf("%s: %s", f.Type, f.Data)
			}
		}
	}
	if !seen {
		t.Errorf("the log of %d facts has no end of a process", len(log))
	}
	return use, stopped
}

// TestHostileStop stops the runtime without ending it: nobody renews its hold on
// the session then, so what it runs must be gone when that ends. Going on, the
// runtime says why.
// Guarantee: T57.
func TestHostileStop(t *testing.T) {
	confined(t)
	t.Parallel()
	m := newMachine(t, false, "wall: 10m", "exec 3>tether\necho here >&3\nsetsid sleep 600 & sleep 600")
	id := m.begin()
	m.begun()
	if err := m.server.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	left := m.gone()
	if left < time.Second || left > engine.Lease+within(2*time.Second) {
		t.Errorf("it was gone after %s, and the lease is %s", left, engine.Lease)
	}
	if err := m.server.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	m.meanwhile(id)
	if end, stopped := ends(t, m.facts(id)); end.Limit != belay.LimitLease || stopped.Target != belay.LimitLease {
		t.Errorf("the end names limit %q, the violation is %+v: %s", end.Limit, stopped, m.facts(id))
	}
	t.Logf("gone after %s", left.Round(time.Millisecond))
}

// TestHostileQuota lets a program loop that has a twentieth of a processor, which is
// less than a busy machine leaves it: what it used is counted against the time that it
// ran. Where there are no groups the log says that nothing holds the quota.
// Guarantee: T58.
func TestHostileQuota(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	for user, plain := range users(t) {
		m := newMachine(t, plain, "cpu_quota: 5%, wall: 2s", "exec 3>tether\necho here >&3\nexec python3 -c 'while True: pass'")
		id := m.begin()
		m.meanwhile(id)
		m.gone()
		log := m.facts(id)
		end, _ := ends(t, log)
		held := false
		for _, f := range log {
			var a event.SandboxApplied
			if f.Type == "sandbox.applied" && json.Unmarshal(f.Data, &a) == nil {
				held = a.Layers[boxinit.Cgroup] == "applied(v1 cpu memory pids)" || a.Layers[boxinit.Cgroup] == "applied(v2)"
				t.Logf("%s: the layer is %s", user, a.Layers[boxinit.Cgroup])
			}
		}
		starved := end.CPU < 80 // the machine gave it less than the quota, which held nothing back then
		if held && (end.CPU > 500 || end.Throttled == 0 && !starved) {
			t.Errorf("%s: of 2 s it used %d ms, and was held back for %d ms", user, end.CPU, end.Throttled)
		}
		if want := grouped() && !plain; held != want {
			t.Errorf("%s: groups hold it: %v, want %v", user, held, want)
		}
		t.Logf("%s: it used %d ms of 2 s, held back for %d ms", user, end.CPU, end.Throttled)
	}
}
