package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// patching is a model that changes one file, makes one, and removes one.
const patching = `
name: patching
steps:
  - calls:
      - {tool: read, args: {path: notes/a.txt}}
      - {tool: read, args: {path: notes/b.txt}}
  - calls:
      - tool: patch
        args:
          patch: |
            *** Begin Patch
            *** Update File: notes/a.txt
            @@
            -colour grey
            +colour green
            *** Add File: new/d.txt
            +made
            *** Delete File: notes/b.txt
            *** End Patch
  - when: {tool: patch, error: false}
    calls:
      - {tool: complete_task, args: {summary: patched}}
`

// Wherever the process dies while a patch is made, the next one ends with all of
// its files changed, and a fact for each of them in the log.
// Guarantee: T14.
func TestAPatchIsWholeWhereverTheProcessDies(t *testing.T) {
	script, err := scripted.Parse("patching", []byte(patching))
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script = script
			if err := os.WriteFile(filepath.Join(m.dir, "notes/a.txt"), []byte("the\ncolour grey\nis it\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			_, hit = m.run(points + 1)
			m.checkPatch(points + 1)
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	if points < 25 {
		t.Errorf("only %d points", points)
	}
	t.Logf("%d points", points)
}

func (m *machine) checkPatch(at int) {
	m.t.Helper()
	for name, want := range map[string]string{"notes/a.txt": "the\ncolour green\nis it\n", "new/d.txt": "made\n"} {
		if got, err := os.ReadFile(filepath.Join(m.dir, name)); string(got) != want {
			m.t.Errorf("died at %d: %s has %q, %v", at, name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(m.dir, "notes/b.txt")); err == nil {
		m.t.Errorf("died at %d: notes/b.txt is still there", at)
	}
	h := m.data.Open(memory.Options{})
	defer h.Close()
	ops := map[string]string{}
	for _, stream := range []belay.StreamID{sess.Stream(), thr.Stream(), theJob.Stream()} {
		if summary := m.checkStream(m.t.Context(), h, stream, at); stream == thr.Stream() && summary != "patched" {
			m.t.Errorf("died at %d: ended with %q", at, summary)
		}
		for e, err := range h.Read(m.t.Context(), stream, 0) {
			if c, ok := e.Data.(event.ArtifactChanged); ok && err == nil {
				ops[c.Path] = c.Op
			}
		}
	}
	if len(ops) != 3 || ops["notes/a.txt"] != "changed" || ops["new/d.txt"] != "created" || ops["notes/b.txt"] != "removed" {
		m.t.Errorf("died at %d: facts say %v", at, ops)
	}
}
