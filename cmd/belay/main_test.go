package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// goal is what all packages should take before main begins, on the machine of the other
// figures: every helper of the sandbox pays it, for each command. It is printed beside
// what they took, because another machine may need twice as long.
const goal = 6 * time.Millisecond

// maxAllocs is how often they may ask for memory: it is counted, and doesn't
// depend on what else the machine does. A package that comes to make tables, or
// a dependency that brings its own, is seen here first.
const maxAllocs = 9000

// TestPackagesBeginQuickly adds up what the runtime says of each package's
// initialization, the shorter of two starts. The test's binary has the program's
// packages and a few more.
// Guarantee: T55.
func TestPackagesBeginQuickly(t *testing.T) {
	least := map[string]time.Duration{}
	allocs := 0
	before := 0 // packages that begin before it is decided whether this is a helper
	for range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, trace.String())
		}
		n, asked := 0, 0
		for line := range strings.Lines(trace.String()) {
			f := strings.Fields(line) // init PACKAGE @1.2 ms, 0.34 ms clock, …
			if len(f) < 6 || f[0] != "init" {
				continue
			}
			n++
			ms, err := strconv.ParseFloat(f[4], 64)
			if err != nil {
				t.Fatalf("the trace has another form: %q", line)
			}
			if f[1] == "github.com/belay-run/belay/internal/sandbox/boxinit" {
				before = n
			}
			if count, err := strconv.Atoi(f[9]); err == nil {
				asked += count
			}
			d := time.Duration(ms * float64(time.Millisecond))
			if was, ok := least[f[1]]; !ok || d < was {
				least[f[1]] = d
			}
		}
		allocs = asked
	}
	if before == 0 || before > len(least)/2 {
		t.Errorf("%d of %d packages begin before the sandbox's helper: it came to import one that begins late", before, len(least))
	}
	sum := total(least)
	t.Logf("%d packages take %s, where %s is the goal, and ask for memory %d times", len(least), sum, goal, allocs)
	if allocs < 100 || allocs > maxAllocs {
		t.Errorf("packages ask for memory %d times before main begins; %d are the most", allocs, maxAllocs)
	}
	if len(least) < 50 {
		t.Errorf("the trace has %d packages", len(least))
	}
	for p, d := range least {
		if d > 500*time.Microsecond {
			t.Logf("%s takes %s", p, d)
		}
	}
}

func total(each map[string]time.Duration) (sum time.Duration) {
	for _, d := range each {
		sum += d
	}
	return sum
}
