package thread

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// several is a call of patch that names files.
func (w *world) several(paths ...string) event.ModelCall {
	args, err := json.Marshal(map[string][]string{"patch": paths})
	if err != nil {
		w.t.Fatal(err)
	}
	return event.ModelCall{Name: "patch", Args: args, ArgsHash: belay.DigestOf(args), Paths: paths}
}

func (w *world) edit(path string) event.ModelCall {
	args := json.RawMessage(`{"path":"` + path + `"}`)
	return event.ModelCall{Name: "edit", Args: args, ArgsHash: belay.DigestOf(args), Path: path}
}

// withPatch is a world whose turn has a tool that names several files.
func withPatch(t *testing.T) *world {
	w := newWorld(t)
	w.rules.Tools = append(w.rules.Tools, belay.ToolSpec{Name: "patch", Effect: belay.Recoverable, PathArg: "patch", PathForm: "patch", Access: belay.Write})
	w.rules.Settings.Mode = belay.ModeAcceptEdits
	w.do("open")
	w.do("submit t1")
	return w
}

// flying are the calls of the step that run, by their place in the answer.
func (w *world) flying() (n []int) {
	for i, c := range w.d.s.Turn.Step.Calls {
		if c.inFlight() {
			n = append(n, i)
		}
	}
	return n
}

// Guarantee: E13.
func TestACallOfSeveralFilesWaitsForEachOfThem(t *testing.T) {
	w := withPatch(t)
	w.answer(w.edit("a"), w.several("b", "./dir/c"), w.edit("d"), w.several("d", "e"), w.edit("dir/c"), w.edit("dir"))
	if got := w.flying(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Fatalf("%v run; the second patch waits for d, the edits of dir for the first", got)
	}
	w.do("result 3 x")
	if got := w.flying(); !slices.Equal(got, []int{0, 1, 3}) {
		t.Errorf("%v run", got)
	}
	w.do("result 2 x")
	if got := w.flying(); !slices.Equal(got, []int{0, 3, 4}) {
		t.Errorf("%v run", got)
	}
}

func TestACallOfSeveralFilesCarriesWhatWasSeenOfEach(t *testing.T) {
	w := withPatch(t)
	w.answer(w.edit("a"), w.edit("dir/b"))
	w.do("result 1 one")
	w.do("result 2 two")
	w.answer(w.several("./a", "dir/b", "new"))
	got := (&decision{State: &w.d.s, rules: &w.rules}).effect(w.d.s.Turn.Step.Calls[0]).Expect
	if want := map[string]string{"a": "sha256:one", "dir/b": "sha256:two"}; !maps.Equal(got, want) {
		t.Errorf("it is run with %v, want %v", got, want)
	}
}

// Guarantee: G5.
func TestACallOfSeveralFilesAsksWhenOneIsOutside(t *testing.T) {
	w := withPatch(t)
	w.answer(w.several("a", "../b"))
	if c := w.d.s.Turn.Step.Calls[0]; c.Ask == nil || !c.Ask.Open {
		t.Errorf("the call is judged %q %q", c.Verdict, c.Reason)
	}
}
