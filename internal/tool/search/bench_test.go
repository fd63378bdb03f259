//go:build unix

package search_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/tool/search"
)

// BenchmarkGrep searches the sources of the Go library and compares with the
// system's grep -rn on the same files: the ratio is our time by theirs, and the
// cpu-ratio that of the processors' time, which says more when the machine has
// other work.
func BenchmarkGrep(b *testing.B) {
	needs.Program(b, "grep")
	root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	dir := filepath.Join(strings.TrimSpace(string(root)), "src")
	if _, statErr := os.Stat(dir); err != nil || statErr != nil {
		needs.Facility(b, "goroot", false, "no sources of the Go library")
	}
	for _, c := range []struct {
		name, pattern string
		fold          bool
	}{
		{"rare text", "ErrUnexpectedEOF", false},
		{"frequent text", "func ", false},
		{"in any case", "unexpectedeof", true},
		{"alternatives", "ErrUnexpectedEOF|ErrShortWrite|ErrNoProgress", false},
		{"expression with text", `func \w+\(ctx context\.Context`, false},
		{"expression without text", `[A-Z]{3}[0-9]{3}`, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			args := []string{"-rnE", "-e", c.pattern, dir}
			if c.fold {
				args = append([]string{"-i"}, args...)
			}
			theirs, theirCPU, lines := grepTime(b, args)
			b.ReportAllocs()
			n, begun := 0, cpuTime()
			for b.Loop() {
				var err error
				if n, err = search.Everything(b.Context(), dir, c.pattern, c.fold, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			ours, ourCPU := b.Elapsed()/time.Duration(b.N), (cpuTime()-begun)/time.Duration(b.N)
			b.ReportMetric(float64(n), "matches")
			b.ReportMetric(float64(lines), "grep-lines")
			b.ReportMetric(float64(theirs.Microseconds())/1000, "grep-ms")
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
			b.ReportMetric(float64(ourCPU)/float64(theirCPU), "cpu-ratio")
		})
	}
}

// cpuTime is what this process has used of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// grepTime is the best of some runs, on the clock and of the processors, and how
// many lines came.
func grepTime(b *testing.B, args []string) (best, cpu time.Duration, lines int) {
	b.Helper()
	for range 4 {
		var out bytes.Buffer
		cmd := exec.CommandContext(b.Context(), "grep", args...)
		cmd.Stdout = &out
		began := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		if d := time.Since(began); best == 0 || d < best {
			best = d
		}
		if d := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); cpu == 0 || d < cpu {
			cpu = d
		}
		lines = bytes.Count(out.Bytes(), []byte("\n"))
	}
	return best, cpu, lines
}
