//go:build unix && !race

// The race detector makes pools forget on purpose, and allocates for itself.

package file_test

import (
	"runtime"
	"testing"

	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// TestAShortFileCostsLittleMemory counts what reading one allocates.
func TestAShortFileCostsLittleMemory(t *testing.T) {
	const reads, most = 50, 24 << 10
	b := tooltest.NewBench(t)
	b.Put("five", "1\n2\n3\n4\n5\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range reads {
		if _, err := file.Read().Run(t.Context(), b.Call(args{"path": "five"})); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / reads; n > most {
		t.Errorf("a read allocated %d bytes", n)
	}
}
