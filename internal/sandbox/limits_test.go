//go:build linux

package sandbox_test

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"github.com/belay-run/belay/internal/testkit/needs"
)

const mib = 1 << 20

// Guarantee: T53.
func TestLimitsHold(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	for _, c := range []struct {
		name   string
		limits belay.ProcessLimits
		line   string
		holds  func(r result) bool
	}{
		{"memory of one", belay.ProcessLimits{Memory: 96 * mib},
			`python3 -c 'b = bytearray(400 << 20); b[::4096] = b"x" * len(b[::4096])'`,
			func(r result) bool { return r.end.Code != 0 }},
		{"memory is enough", belay.ProcessLimits{Memory: 256 * mib}, `python3 -c 'b = bytearray(50 << 20)'`,
			func(r result) bool { return r.end.Code == 0 }},
		{"file size", belay.ProcessLimits{FileSize: mib}, `head -c 3000000 /dev/zero > big; test $(stat -c %s big) -le 1048576`,
			func(r result) bool { return r.end.Code == 0 && strings.Contains(r.out, "File") }},
		{"open files", belay.ProcessLimits{OpenFiles: 32}, `python3 -c 'f = [open("/dev/null") for _ in range(64)]'`,
			func(r result) bool { return r.end.Code != 0 && strings.Contains(r.out, "Too many open files") }},
		{"cpu", belay.ProcessLimits{CPU: belay.Duration(time.Second)}, `exec python3 -c 'while True: pass'`,
			func(r result) bool { return r.end.Signal == syscall.SIGKILL || r.end.Signal == syscall.SIGXCPU }},
		{"wall", belay.ProcessLimits{Wall: belay.Duration(150 * time.Millisecond)}, `trap "" TERM; while :; do sleep 0.05; done`,
			func(r result) bool { return r.end.Limit == "wall" && r.end.Signal == syscall.SIGKILL }},
		{"processes", belay.ProcessLimits{Processes: 24},
			`python3 -c '
import os, sys
n = 0
try:
    while n < 200:
        if os.fork() == 0: os.execvp("sleep", ["sleep", "100"])
        n += 1
except OSError: sys.exit(0 if n < 60 else 1)
sys.exit(1)'`,
			func(r result) bool { return r.end.Code == 0 }},
		{"fork bomb", belay.ProcessLimits{Processes: 32, Wall: belay.Duration(time.Second)}, `b() { b | b & b; }; b 2>/dev/null; sleep 30`,
			func(r result) bool { return r.said }},
		{"disk", belay.ProcessLimits{Disk: 4 * mib}, `! head -c 9000000 /dev/zero > /tmp/big && test $(stat -c %s /tmp/big) -le 4194304`,
			func(r result) bool { return r.end.Code == 0 && strings.Contains(r.out, "No space left") }},
		{"limits can't be raised", belay.ProcessLimits{FileSize: mib, OpenFiles: 32},
			`python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (64, 64))'`,
			func(r result) bool { return r.end.Code != 0 && strings.Contains(r.out, "maximum limit") }},
		{"output that nobody reads all of", belay.ProcessLimits{}, `head -c 20000000 /dev/zero | tr '\0' x | tail -c 3`,
			func(r result) bool { return r.out == "xxx" }},
	} {
		s := newSpace(t)
		s.b.Limits, s.o.Grace = c.limits, 50*time.Millisecond
		if r := s.sh(c.line); !c.holds(r) {
			t.Errorf("%s: got %+v %v", c.name, r, r.state)
		}
	}
}

// TestLimitsHoldForEachProgram: two programs that run at once, each with nearly
// as many processes as its boundary has.
// Guarantee: T70.
func TestLimitsHoldForEachProgram(t *testing.T) {
	confined(t)
	s := newSpace(t)
	s.b.Limits = belay.ProcessLimits{Processes: 24}
	const line = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 600 & p="$p $!"; done; echo "$1" >"$1"; until test -e a -a -e b; do sleep 0.01; done; kill $p`
	var said [2]bytes.Buffer
	var holds []*sandbox.Hold
	var programs []*exec.Cmd
	for i, name := range []string{"a", "b"} {
		cmd := s.command("/bin/sh", "-c", line, "sh", name)
		cmd.Stdout, cmd.Stderr = &said[i], &said[i]
		h := s.start(cmd)
		defer h.Close()
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
		holds, programs = append(holds, h), append(programs, cmd)
	}
	for i, cmd := range programs {
		cmd.Wait() //nolint:errcheck // the helper says it
		if end, ok := holds[i].Ended(); !ok || end.Code != 0 || holds[i].Evidence().Limit != "" {
			t.Errorf("program %d: %+v, %+v: %s", i, end, holds[i].Evidence(), said[i].String())
		}
	}
}

// TestLimitsHoldBesideOthersOfTheUser: where the system counts all processes of a
// user together, those of outside don't use up the boundary's.
// Guarantee: T70.
func TestLimitsHoldBesideOthersOfTheUser(t *testing.T) {
	confined(t)
	s := newSpace(t).at(belay.L2) // without a user namespace; this test has more threads than the limit
	s.b.Limits = belay.ProcessLimits{Processes: 3}
	if r := s.sh("sleep 0 & wait; echo done"); r.end.Code != 0 || r.out != "done\n" {
		t.Errorf("got %+v", r)
	}
}

// Guarantee: T53.
func TestLimitsOfAllTogether(t *testing.T) {
	confined(t)
	needs.Root(t)
	m := sandbox.Probe()
	needs.Facility(t, "cgroup", state(m.Layers, boxinit.Cgroup) == belay.LayerApplied, layer(belay.Applied{Layers: m.Layers}, boxinit.Cgroup).String())
	needs.Program(t, "python3")
	s := newSpace(t)
	s.b.Limits = belay.ProcessLimits{Memory: 96 * mib, Processes: 100, CPUQuota: 20}
	r := s.sh(`for i in 1 2 3 4; do python3 -c 'import time; b = bytearray(b"x") * (40 << 20); time.sleep(0.5)' & p="$p $!"; done; n=0; for i in $p; do wait $i || n=$((n+1)); done; test $n -gt 0`)
	if r.end.Code != 0 || !strings.HasPrefix(layer(r.applied, boxinit.Cgroup).String(), "applied(v") {
		t.Errorf("four of 40 MiB within 96: got %+v", r)
	}
	r = s.sh(`python3 -c '
import time
w, c = time.monotonic(), time.process_time()
while time.monotonic() < w + 1: pass
print(time.process_time() - c < 0.6)'`)
	if !strings.Contains(r.out, "True") {
		t.Errorf("a fifth of a processor: got %+v", r)
	}
}

// Guarantee: T56.
func TestALimitThatWasMetIsNamed(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	m := sandbox.Probe()
	grouped := state(m.Layers, boxinit.Cgroup) == belay.LayerApplied
	for _, c := range []struct {
		name   string
		limits belay.ProcessLimits
		line   string
		want   string
		group  bool // only groups count it
	}{
		{"nothing", belay.ProcessLimits{Memory: 256 * mib, Processes: 64, CPU: belay.Duration(time.Minute), Wall: belay.Duration(time.Minute), FileSize: mib, Disk: mib}, "exit 3", "", false},
		{"wall", belay.ProcessLimits{Wall: belay.Duration(100 * time.Millisecond)}, "exec sleep 600", belay.LimitWall, false},
		{"cpu", belay.ProcessLimits{CPU: belay.Duration(time.Second)}, "python3 -c 'while True: pass'", belay.LimitCPU, false},
		{"file size", belay.ProcessLimits{FileSize: mib}, "head -c 3000000 /dev/zero >big", belay.LimitFileSize, false},
		{"disk", belay.ProcessLimits{Disk: mib}, "head -c 3000000 /dev/zero >/tmp/big", belay.LimitDisk, false},
		{"inodes", belay.ProcessLimits{Disk: 4 * mib}, "i=0; while : >/tmp/$i; do i=$((i+1)); done", belay.LimitInodes, false},
		{"memory", belay.ProcessLimits{Memory: 64 * mib}, `python3 -c 'b = bytearray(b"x") * (300 << 20)'`, belay.LimitMemory, true},
		{"processes", belay.ProcessLimits{Processes: 24}, "b() { b | b & b; }; b", belay.LimitProcesses, true},
	} {
		if c.group && !grouped {
			continue // each process meets it for itself then, and says so
		}
		s := newSpace(t)
		s.b.Limits, s.o.Grace = c.limits, 50*time.Millisecond
		if r := s.sh(c.line); r.saw.Limit != c.want || (c.want != "") != (r.saw.Reason != "" && r.saw.Layer != "") {
			t.Errorf("%s: the evidence is %+v, the end %+v", c.name, r.saw, r.end)
		}
	}
}

// Guarantee: T56.
func TestWhatAProgramTookIsCounted(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	m := sandbox.Probe()
	needs.Facility(t, "cgroup", state(m.Layers, boxinit.Cgroup) == belay.LayerApplied, layer(belay.Applied{Layers: m.Layers}, boxinit.Cgroup).String())
	s := newSpace(t)
	s.b.Limits = belay.ProcessLimits{Memory: 256 * mib, Processes: 64, CPUQuota: 20}
	r := s.sh(`for i in 1 2 3 4; do sleep 0.3 & done; exec python3 -c '
import time
b = bytearray(b"x") * (40 << 20)
began, c = time.monotonic(), time.process_time()
while time.process_time() < c + 0.2: pass
print(time.monotonic() - began)'`)
	if e := r.saw; e.Memory < 40*mib || e.Peak < 40*mib || e.Limit != "" {
		t.Errorf("got %+v of %+v", e, r.end)
	}
	// Where the machine gave it less than its fifth, the quota had nothing to hold back.
	if took, err := strconv.ParseFloat(strings.TrimSpace(r.out), 64); err != nil || took < 1.5 && r.saw.Throttled < 100*time.Millisecond {
		t.Errorf("0.2 s took %s s (%v), held back for %s", r.out, err, r.saw.Throttled)
	}
	if r.saw.Processes < 5 {
		t.Errorf("%d processes at a time, want at least 5", r.saw.Processes)
	}
}
