//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
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
		name     string
		boundary string
		repo     bool
		limits   belay.ProcessLimits
		level    belay.Level
	}{
		{"L3", belay.BoundaryWorkspace, false, belay.ProcessLimits{}, belay.L3},
		{"L3 in a repository", belay.BoundaryWorkspace, true, belay.DefaultProcessLimits, belay.L3},
		{"L3 in a repository, reading", belay.BoundaryReadOnly, true, belay.DefaultProcessLimits, belay.L3},
		{"L3 with limits", belay.BoundaryWorkspace, false, belay.ProcessLimits{Memory: 1 << 30, Processes: 200, CPUQuota: 200}, belay.L3},
		{"L3 by default", belay.BoundaryWorkspace, false, belay.DefaultProcessLimits, belay.L3},
		{"L2", belay.BoundaryWorkspace, false, belay.ProcessLimits{}, belay.L2},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := &space{t: b, home: b.TempDir(), b: belay.Boundary{Name: c.boundary, Limits: c.limits}}
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

// BenchmarkToolchains is the same work outside and within a boundary, in turns:
// what programs do, two calls of go with their caches, and the tests of three
// packages of this project. The figures are medians.
func BenchmarkToolchains(b *testing.B) {
	confined(b)
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		b.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range append(toolchains[:len(toolchains):len(toolchains)],
		toolchain{"go build and test", "go", "go build ./... && go test -count=1 ./..."},
		toolchain{"go test of this project", "go", "cd " + root + " && go test -count=1 ./internal/lib/jcs ./internal/tool/patch ./internal/lib/strictyaml"}) {
		b.Run(c.name, func(b *testing.B) {
			needs.Program(b, c.program)
			s := newSpace(b)
			s.o.Home = home(s)
			s.b.Write = []string{strings.TrimSpace(string(cache))}
			s.b.Read = []string{root}
			s.env = append(s.env, "GOCACHE="+s.b.Write[0], "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
			for name, content := range goModule {
				s.file(name, content)
			}
			clean := func() { // what the lines make
				for _, f := range []string{"sub", "out", "in", "n", "db", "db-wal", "db-shm", "Makefile"} {
					os.RemoveAll(filepath.Join(s.o.Workspace, f))
				}
			}
			var outside, inside []time.Duration
			for range b.N {
				began := time.Now()
				if out, err := s.command("/bin/sh", "-c", c.line).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				outside = append(outside, time.Since(began))
				clean()
				began = time.Now()
				if r := s.sh(c.line); r.end.Code != 0 || r.applied.Level != belay.L3 {
					b.Fatalf("exit %d: %s", r.end.Code, r.out)
				}
				inside = append(inside, time.Since(began))
				clean()
			}
			b.ReportMetric(float64(percentile(outside, 50))/1e6, "outside-ms")
			b.ReportMetric(float64(percentile(inside, 50))/1e6, "inside-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
