package effect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/testkit/oddfile"
)

// TestAChecksFileIsOrdinary: a check of a file, or of a folder that has it, ends at once
// whatever the agent made of the file.
// Guarantee: T115.
func TestAChecksFileIsOrdinary(t *testing.T) {
	ws := t.TempDir()
	v := &performer{e: &Performers{}}
	v.e.rules.all = map[belay.Digest]*sharedRules{}
	if err := os.WriteFile(filepath.Join(ws, "other"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	oddfile.Each(t, filepath.Join(ws, "sub", "out"), func(t *testing.T, kind string) {
		if seen, err := v.digests(t.Context(), ws, []string{"sub/out"}); (err == nil) != (kind == "a folder") {
			t.Errorf("its digest is %v: %v", seen, err)
		}
		if _, err := v.digests(t.Context(), ws, []string{"sub"}); (err != nil) != (kind == "a huge file") {
			t.Errorf("the digest of its folder: %v", err)
		}
		eff := core.Verify{Check: belay.Check{Kind: belay.CheckSchema, Path: "sub/out"}}
		if raw, missing, err := v.held(t.Context(), eff, ws); err == nil || missing != "" || len(raw) > 0 {
			t.Errorf("%d bytes and %q are held against the schema: %v", len(raw), missing, err)
		} else if !strings.HasPrefix(err.Error(), "sub/out") {
			t.Errorf("the reason doesn't name it: %v", err)
		}
		if kind == "a folder" || kind == "a huge file" {
			return
		}
		if got := contentOf(filepath.Join(ws, "sub", "out")); got != whichFile(filepath.Join(ws, "sub", "out")) {
			t.Errorf("the program is %s", got)
		}
	})
}
