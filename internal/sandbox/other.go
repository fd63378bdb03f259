//go:build !linux

package sandbox

import (
	"cmp"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
)

// Main does nothing here: there is no helper.
func Main() {}

// Cleanup does nothing here: nothing is left.
func Cleanup() {}

// Clear does nothing here: nothing is left.
func Clear() {}

// Probe says that there is no layer here.
func Probe() Machine {
	m := Machine{Level: belay.L0}
	for _, name := range Layers {
		m.Layers = append(m.Layers, belay.Layer{Name: name, State: belay.LayerUnavailable, Detail: "not on " + runtime.GOOS})
	}
	m.Level, m.Why = levelOf(m.Layers)
	return m
}

// ProbeCached is Probe: there is nothing to remember.
func ProbeCached(string) Machine { return Probe() }

// Memory is how much there is for programs, in bytes; 0: that can't be found out.
func Memory() int64 {
	out, err := exec.Command("/usr/sbin/sysctl", "-n", "hw.memsize").Output()
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Seatbelt reports whether there is a sandbox that can be tried, though it is
// unverified.
func Seatbelt() bool { return runtime.GOOS == "darwin" }

// Box refuses to start programs within a boundary, unless it is to try macOS's
// sandbox and no level is required.
type Box struct {
	b belay.Boundary
	o Options
}

// New makes a box.
func New(b belay.Boundary, o Options) (*Box, error) {
	o, err := o.checked(b)
	if err != nil {
		return nil, err
	}
	return &Box{b: b, o: o}, nil
}

// Plan is what the boundary will be: no level that anybody could promise.
func (b *Box) Plan() (belay.Applied, error) {
	m := Probe()
	a := belay.Applied{Level: m.Level, Why: m.Why, Network: belay.NetworkFull, Layers: m.Layers}
	if !b.o.Seatbelt || !Seatbelt() || !belay.L0.AtLeast(b.b.Least) {
		return a, b.refuse()
	}
	a.Layers = append(a.Layers, belay.Layer{Name: layerSeatbelt, State: belay.LayerApplied, Detail: unverified})
	return a, nil
}

func (b *Box) refuse() error {
	return belay.Errorf(belay.CodeNotConfined, "nothing can be confined on %s to level %s", runtime.GOOS, cmp.Or(string(b.b.Least), string(belay.L0))).
		WithHint("a rule or a person can let it run without a boundary")
}

// Prepare makes cmd start its program under a profile, or refuses.
func (b *Box) Prepare(cmd *exec.Cmd) (process.Hold, error) {
	a, err := b.Plan()
	if err != nil {
		return nil, err
	}
	h := &seatbeltHold{layers: a.Layers}
	if err := b.strap(cmd, h); err != nil {
		h.Close() //nolint:errcheck // the first error counts
		return nil, belay.Errorf(belay.CodeNotConfined, "seatbelt can't be tried").Wrap(err)
	}
	return h, nil
}

// seatbeltExe applies a profile to itself and executes a program.
const seatbeltExe = "/usr/bin/sandbox-exec"

func (b *Box) strap(cmd *exec.Cmd, h *seatbeltHold) (err error) {
	if h.scratch, err = makeScratch(); err != nil {
		return err
	}
	s, err := seatbeltOf(b.b, b.o, h.scratch)
	if err != nil {
		return err
	}
	text, err := s.profile(b.b)
	if err != nil {
		return err
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(slices.Clone(cmd.Env), "TMPDIR="+h.scratch)
	return h.strap(cmd, seatbeltExe, text)
}
