package config

import (
	"strings"
	"testing"
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
