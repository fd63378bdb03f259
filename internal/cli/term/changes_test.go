package term

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

func TestChangesOfAFileAreOne(t *testing.T) {
	a, b := &belay.Ref{Digest: belay.DigestOf([]byte("a"))}, &belay.Ref{Digest: belay.DigestOf([]byte("b"))}
	for name, c := range map[string]struct {
		facts []event.ArtifactChanged
		want  string
	}{
		"made and changed is made":       {[]event.ArtifactChanged{{Path: "f", Op: "created", After: a}, {Path: "f", Op: "changed", Before: a, After: b}}, "created"},
		"made and removed is nothing":    {[]event.ArtifactChanged{{Path: "f", Op: "created", After: a}, {Path: "f", Op: "removed", Before: a}}, ""},
		"removed and made is changed":    {[]event.ArtifactChanged{{Path: "f", Op: "removed", Before: a}, {Path: "f", Op: "created", After: b}}, "changed"},
		"changed and removed is removed": {[]event.ArtifactChanged{{Path: "f", Op: "changed", Before: a, After: b}, {Path: "f", Op: "removed", Before: b}}, "removed"},
	} {
		var e TurnEnd
		for _, f := range c.facts {
			e.note(f)
		}
		got := ""
		if len(e.Files) > 0 {
			got = e.Files[0].Op
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
