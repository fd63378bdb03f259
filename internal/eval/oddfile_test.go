package eval

import (
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/testkit/oddfile"
)

// TestAFileOfTheAgentIsNotWaitedFor: what a scenario expects of a file, or writes into it
// while an agent works, fails at once when the agent made something else of it.
// Guarantee: T115.
func TestAFileOfTheAgentIsNotWaitedFor(t *testing.T) {
	s := &Seen{Workspace: t.TempDir()}
	oddfile.Each(t, filepath.Join(s.Workspace, "out"), func(t *testing.T, kind string) {
		if text, there, err := s.File("out"); err == nil || there {
			t.Errorf("it has %d bytes, %t", len(text), there)
		}
		if err := writeFile(s.Workspace, "out", "text"); (err == nil) != (kind == "a huge file") {
			t.Errorf("written: %v", err)
		}
	})
}
