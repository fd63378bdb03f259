package match_test

import (
	"testing"

	"github.com/belay-run/belay/internal/lib/match"
)

func TestAPatternIsCompiledOnceAndWhenItIsUsed(t *testing.T) {
	p := match.Lazy(`^[a-z]{2,3}$`)
	if !p.Match("abc") || p.Match("a") {
		t.Error("it matches something else")
	}
	if first := p.Get(); p.Get() != first {
		t.Error("it was compiled twice")
	}
	wrong := match.Lazy(`(`) // not looked at yet
	defer func() {
		if recover() == nil {
			t.Error("what is no expression was compiled")
		}
	}()
	wrong.Get()
}
