package thread

import (
	"testing"

	"github.com/belay-run/belay"
)

// Guarantee: F10.
func TestOnlyTheSameQuestionsAreAlike(t *testing.T) {
	digest := func(kind, tool, args, folder, within string) belay.Digest {
		s := &State{Workspace: folder}
		return s.Alike(Open{&Ask{Kind: kind, Within: belay.Digest(within)}, &Call{Name: tool, ArgsHash: belay.Digest(args)}})
	}
	one := digest("permission", "exec", "a", "/ws", "b")
	if one == "" || one != digest("permission", "exec", "a", "/ws", "b") {
		t.Errorf("the same question is %q", one)
	}
	for _, other := range []belay.Digest{digest("question", "exec", "a", "/ws", "b"), digest("permission", "edit", "a", "/ws", "b"), digest("permission", "exec", "c", "/ws", "b"),
		digest("permission", "exec", "a", "/tree", "b"), digest("permission", "exec", "a", "/ws", "d"), digest("budget", "exec", "a", "/ws", "b")} {
		if other == one {
			t.Errorf("another question is like it: %s", other)
		}
	}
}
