//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
)

// BenchmarkStart is what a boundary adds to a command: /bin/true from the start
// to its end, plain and within a boundary in turns, with the real program as the
// helper. The figures are the differences of the percentiles.
func BenchmarkStart(b *testing.B) {
	confined(b)
	exe := filepath.Join(b.TempDir(), "belay")
	if out, err := exec.Command("go", "build", "-o", exe, "github.com/belay-run/belay/cmd/belay").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name   string
		repo   bool
		limits belay.ProcessLimits
		level  belay.Level
	}{
		{"L3", false, belay.ProcessLimits{}, belay.L3},
		{"L3 in a repository", true, belay.ProcessLimits{}, belay.L3},
		{"L3 with limits", false, belay.ProcessLimits{Memory: 1 << 30, Processes: 200, CPUQuota: 200}, belay.L3},
		{"L2", false, belay.ProcessLimits{}, belay.L2},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := &space{t: b, home: b.TempDir(), b: belay.Boundary{Name: belay.BoundaryWorkspace, Limits: c.limits}}
			s.o = sandbox.Options{Workspace: filepath.Join(s.home, "project"), Home: s.home, Protected: isProtected}
			if err := os.Mkdir(s.o.Workspace, 0o755); err != nil {
				b.Fatal(err)
			}
			if c.repo {
				for _, name := range []string{".git/HEAD", ".git/config", ".vscode/settings.json", "AGENTS.md", "a/b/c/f", "d/e/f/g"} {
					if err := os.MkdirAll(filepath.Join(s.o.Workspace, filepath.Dir(name)), 0o755); err != nil {
						b.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(s.o.Workspace, name), nil, 0o644); err != nil {
						b.Fatal(err)
					}
				}
			}
			s.at(c.level)
			s.true(exe) // the machine is probed once
			var plain, boxed, used []time.Duration
			for range b.N {
				began := time.Now()
				if err := s.command("/bin/true").Run(); err != nil {
					b.Fatal(err)
				}
				plain = append(plain, time.Since(began))
				began = time.Now()
				used = append(used, s.true(exe))
				boxed = append(boxed, time.Since(began))
			}
			for _, p := range []int{50, 95} {
				b.ReportMetric(float64(percentile(boxed, p)-percentile(plain, p))/1e6, fmt.Sprintf("added-ms-p%d", p))
			}
			b.ReportMetric(float64(percentile(plain, 50))/1e6, "plain-ms-p50")
			b.ReportMetric(float64(percentile(used, 50))/1e6, "cpu-ms-p50")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// true runs /bin/true within the boundary, with exe as the helper. It returns the
// processor time of both.
func (s *space) true(exe string) time.Duration {
	cmd := s.command("/bin/true")
	box, err := sandbox.New(s.b, s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := box.Prepare(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	defer h.Close()
	cmd.Path = exe
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if err := h.Await(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func percentile(d []time.Duration, p int) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, len(d)*p/100)]
}
