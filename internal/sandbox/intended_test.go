//go:build linux

package sandbox_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// rounds is the variable that says how many boundaries are tried, by whoever
// runs the tests and by a user without rights.
const rounds = "BELAY_SANDBOX_ROUNDS"

// seed returns what chance begins with, so that a failure can be repeated with
// BELAY_SANDBOX_SEED.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("BELAY_SANDBOX_SEED"), 10, 64); err == nil {
		n = given
	}
	t.Logf("BELAY_SANDBOX_SEED=%d", n)
	return n
}

// TestIntendedIsApplied gives programs random boundaries and asks each what it
// has. BELAY_SANDBOX_ROUNDS is how many, BELAY_SANDBOX_SEED which.
// Guarantee: T13.
func TestIntendedIsApplied(t *testing.T) {
	confined(t)
	n, seed := 40, seed(t)
	if given, err := strconv.Atoi(os.Getenv(rounds)); err == nil {
		n = given
	} else if os.Getenv(asUser) != "" {
		n = 20
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := newSpace(t)
	repository(t, s)
	levels := map[belay.Level]int{}
	for i := range n {
		s.b, s.o.Disabled = randomBoundary(rnd, s)
		box, err := sandbox.New(s.b, s.o)
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, i, err)
		}
		plan, err := box.Plan()
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, i, err)
		}
		r := s.sh("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/ipc; (echo x >written) 2>/dev/null && echo writes; true")
		if r.applied.Level != plan.Level || r.applied.Network != plan.Network || r.end.Code != 0 {
			t.Fatalf("seed %d, round %d: %+v: got %+v, planned %+v", seed, i, s.b, r, plan)
		}
		for j, l := range r.applied.Layers {
			if l.State != plan.Layers[j].State {
				t.Errorf("seed %d, round %d: %s is %s and should be %s", seed, i, l.Name, l, plan.Layers[j])
			}
		}
		if problem := contradicts(s.b, r); problem != "" {
			t.Errorf("seed %d, round %d: %s: %+v", seed, i, problem, r)
		}
		levels[r.applied.Level]++
	}
	t.Logf("seed %d: intended = applied in %d of %d, levels %v", seed, n, n, levels)
}

func randomBoundary(rnd *rand.Rand, s *space) (b belay.Boundary, disabled []string) {
	b.Name = []string{belay.BoundaryReadOnly, belay.BoundaryWorkspace, "own"}[rnd.IntN(3)]
	b.Network = []string{belay.NetworkNone, belay.NetworkFull, ""}[rnd.IntN(3)]
	if rnd.IntN(3) == 0 {
		b.Write = []string{s.home}
	}
	if rnd.IntN(3) == 0 {
		b.Read = []string{s.home}
	}
	if rnd.IntN(2) == 0 {
		b.Limits = belay.ProcessLimits{Memory: 2 << 30, Processes: 100 + rnd.IntN(100), FileSize: 1 << 20, CPUQuota: 100 * rnd.IntN(2), OpenFiles: 64}
	}
	for _, l := range sandbox.Layers {
		if rnd.IntN(12) == 0 {
			disabled = append(disabled, l)
		}
	}
	return b, disabled
}

// contradicts holds what a program found against what was reported.
func contradicts(b belay.Boundary, r result) string {
	has := func(name string) bool { return layer(r.applied, name).State == belay.LayerApplied }
	if has(boxinit.Seccomp) != strings.Contains(r.out, "Seccomp:\t2") {
		return "seccomp"
	}
	if (has(boxinit.Privileges) || has(boxinit.Landlock) || has(boxinit.Seccomp)) != strings.Contains(r.out, "NoNewPrivs:\t1") {
		return "no_new_privs"
	}
	holds := b.Name == belay.BoundaryReadOnly && len(b.Write) == 0 && (has(boxinit.Mounts) || has(boxinit.Landlock))
	if holds == strings.Contains(r.out, "writes") {
		return "writing"
	}
	for name, kind := range map[string]string{boxinit.Net: "net", boxinit.PID: "pid", boxinit.IPC: "ipc"} {
		mine, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil || has(name) == strings.Contains(r.out, mine) {
			return name
		}
	}
	return ""
}
