package policy

import (
	"testing"

	"github.com/belay-run/belay"
)

// TestAModeNarrowsAnother: what a file that nobody trusts names allows nothing that
// the mode without it doesn't.
func TestAModeNarrowsAnother(t *testing.T) {
	for _, m := range belay.Modes {
		if !Narrows(belay.ModePlan, m) || !Narrows(m, m) || !Narrows(m, belay.ModeBypass) {
			t.Errorf("mode %s: plan, itself or below bypass it would widen", m)
		}
	}
	if Narrows(belay.ModeAcceptEdits, "") || Narrows(belay.ModeNever, belay.ModeUntrusted) || Narrows(belay.ModeAuto, belay.ModeOnRequest) {
		t.Error("a wider mode, or one that can't be compared, narrows")
	}
}
