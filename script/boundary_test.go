package script

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestBoundary plays the stories of boundary/ in the machine's own sandbox.
// Guarantee: G53, G70, G55, T52, T110, T58.
func TestBoundary(t *testing.T) {
	m := sandbox.Probe()
	needs.Facility(t, "sandbox", m.Level.AtLeast(belay.L3), "level "+string(m.Level)+": "+m.Why)
	p := params("boundary")
	testscript.Run(t, p)
}
