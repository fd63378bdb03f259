package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
)

// TestRulesAreKeptOneAfterAnother: of many that come at once under one name one is kept,
// and who comes later sees it before anything is decided.
// Guarantee: V51.
func TestRulesAreKeptOneAfterAnother(t *testing.T) {
	env := Env{Vars: []string{"HOME=" + t.TempDir()}}
	var kept, inside atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			text := fmt.Appendf(nil, "version: 1 # %d\n", i)
			path, _, err := env.KeepRules(t.Context(), "same", text, func() error {
				if inside.Add(1) != 1 {
					t.Error("two are decided at once")
				}
				defer inside.Add(-1)
				_, err := os.Stat(filepath.Join(env.ConfigDir(), policyDir, "same.yaml"))
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it is decided beside another one: %v", err)
				}
				return nil
			})
			if err == nil {
				kept.Add(1)
				if have, err := os.ReadFile(path); err != nil || string(have) != string(text) {
					t.Errorf("%s %v", have, err)
				}
			} else if belay.CodeOf(err) != belay.CodeConflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if kept.Load() != 1 {
		t.Errorf("%d are kept", kept.Load())
	}
}
