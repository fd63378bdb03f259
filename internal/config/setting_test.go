package config

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// TestDefaultsAreThoseOfASession: a row's default is what a session has that sets
// nothing.
func TestDefaultsAreThoseOfASession(t *testing.T) {
	n := 0
	for i := range settings {
		s := &settings[i]
		if s.Default == "" {
			continue
		}
		n++
		p := parser{row: s}
		s.take(&p, given{text: s.Default})
		have := Settings{Settings: Input{}.Defaults()}
		if s.show(&p.out) != s.show(&have) || p.err != nil {
			t.Errorf("%s: %s, and a session has %s (%v)", s.Name, s.show(&p.out), s.show(&have), p.err)
		}
		if !strings.Contains(s.Usage(), "(default "+s.Default+").") || strings.Contains(s.Usage(), "[$BELAY_") == s.Own {
			t.Errorf("%s: the help says %q", s.Name, s.Usage())
		}
	}
	if n < 5 {
		t.Errorf("%d settings have a default", n)
	}
}

// TestAModeNarrowsAnother: what a file that nobody trusts names allows nothing that
// the mode without it doesn't.
func TestAModeNarrowsAnother(t *testing.T) {
	for _, m := range belay.Modes {
		if !narrowsMode(belay.ModePlan, m) || !narrowsMode(m, m) || !narrowsMode(m, belay.ModeBypass) {
			t.Errorf("mode %s: plan, itself or below bypass it would widen", m)
		}
	}
	if narrowsMode(belay.ModeAcceptEdits, "") || narrowsMode(belay.ModeNever, belay.ModeUntrusted) || narrowsMode(belay.ModeAuto, belay.ModeOnRequest) {
		t.Error("a wider mode, or one that can't be compared, narrows")
	}
}
