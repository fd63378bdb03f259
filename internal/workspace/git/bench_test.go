//go:build unix

package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/belay-run/belay/internal/workspace/git"
)

// used is the processor time of this process, in microseconds.
func used() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) //nolint:errcheck // it takes this one
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000
}

// BenchmarkLook is what a look costs around one program, in a workspace with so
// many folders. The first one reads them all.
func BenchmarkLook(b *testing.B) {
	for _, n := range []int{300, 3000, 30000} {
		dir := b.TempDir()
		for i := range n {
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(i%30), fmt.Sprint(i%900), fmt.Sprint(i)), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		g := git.Git{Environ: os.Environ()}
		b.Run(fmt.Sprintf("first/%d", n), func(b *testing.B) {
			for b.Loop() {
				g.NewWatch(dir, dir).Begin(b.Context(), git.Program{})
			}
		})
		b.Run(fmt.Sprintf("both/%d", n), func(b *testing.B) {
			w := g.NewWatch(dir, dir)
			w.Begin(b.Context(), git.Program{})
			w.Look(b.Context(), git.Program{}, true)
			cpu := used()
			for b.Loop() {
				w.Begin(b.Context(), git.Program{})
				w.Look(b.Context(), git.Program{}, true)
			}
			b.ReportMetric(float64(used()-cpu)/float64(b.N)/1e3, "cpu-ms/op")
		})
	}
}
