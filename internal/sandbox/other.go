//go:build !linux

package sandbox

import (
	"os/exec"
	"runtime"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
)

// Main does nothing here: there is no helper.
func Main() {}

// Settle does nothing here: nothing is left.
func Settle() {}

// Machine is what this machine can do, layer by layer.
type Machine struct {
	Layers []belay.Layer
	Root   bool
	Level  belay.Level
	Why    string // what keeps it from a higher one
}

// Probe says that there is no layer here.
func Probe() Machine {
	m := Machine{Level: belay.L0}
	for _, name := range Layers {
		m.Layers = append(m.Layers, belay.Layer{Name: name, State: belay.LayerUnavailable, Detail: "not on " + runtime.GOOS})
	}
	m.Level, m.Why = LevelOf(m.Layers)
	return m
}

// Recall is Probe: there is nothing to remember.
func Recall(string) Machine { return Probe() }

// Box refuses to start programs within a boundary.
type Box struct{ b belay.Boundary }

// New makes a box.
func New(b belay.Boundary, o Options) (*Box, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	return &Box{b: b}, o.check()
}

// Plan is what the boundary will be: nothing.
func (b *Box) Plan() (belay.Applied, error) {
	m := Probe()
	return belay.Applied{Level: m.Level, Why: m.Why, Network: belay.NetworkFull, Layers: m.Layers}, b.refuse()
}

func (b *Box) refuse() error {
	return belay.Errorf(belay.CodeNotConfined, "nothing can be confined on %s", runtime.GOOS).
		WithHint("a rule or a person can let it run without a boundary")
}

// Prepare refuses.
func (b *Box) Prepare(*exec.Cmd) (process.Hold, error) { return nil, b.refuse() }

// Hold would be the helper of one program.
type Hold struct{ process.Hold }

// Applied is nothing.
func (*Hold) Applied() belay.Applied {
	return belay.Applied{Level: belay.L0, Network: belay.NetworkFull}
}

// Ended knows nothing.
func (*Hold) Ended() (Ending, bool) { return Ending{}, false }
