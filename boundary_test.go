package belay_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

func TestLevelsHaveAnOrder(t *testing.T) {
	for _, c := range []struct {
		has, want belay.Level
		ok        bool
	}{
		{belay.L2, belay.L2, true}, {belay.L3, belay.L1, true}, {belay.L1, belay.L2, false}, {belay.L0, "", true},
		{"", belay.L1, false}, {"", "", true}, {"L9", belay.L1, false}, {belay.L3, "L9", false},
	} {
		if got := c.has.AtLeast(c.want); got != c.ok {
			t.Errorf("%q at least %q: got %v", c.has, c.want, got)
		}
	}
}

func TestBoundaryThatMeansNothing(t *testing.T) {
	for _, c := range []struct {
		b    belay.Boundary
		says string // empty: it is fine
	}{
		{belay.Boundary{}, ""},
		{belay.Boundary{Name: "own", Network: "hosts", Hosts: []string{"example.com:443"}, Write: []string{"/srv"}, Least: belay.L2}, ""},
		{belay.Boundary{Name: "own", Least: "L7"}, `level "L7"`},
		{belay.Boundary{Name: "own", Network: "some"}, `network "some"`},
		{belay.Boundary{Name: "own", Network: "hosts"}, "0 hosts"},
		{belay.Boundary{Name: "own", Hosts: []string{"example.com:443"}}, "1 hosts"},
		{belay.Boundary{Name: "own", Write: []string{"srv"}}, `path "srv"`},
		{belay.Boundary{Name: "own", Read: []string{"/a\x00b"}}, "isn't absolute"},
		{belay.Boundary{Name: "own", Limits: belay.ProcessLimits{Memory: -1}}, "below zero"},
	} {
		err := c.b.Check()
		if c.says == "" {
			if err != nil {
				t.Errorf("%+v: got %v", c.b, err)
			}
			continue
		}
		if belay.CodeOf(err) != belay.CodeBadBoundary || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: got %v, want %s", c.b, err, c.says)
		}
	}
}
