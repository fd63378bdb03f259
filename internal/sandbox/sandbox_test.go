//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// Roles that this binary has besides being the test.
const (
	asUser    = "BELAY_TEST_AS_USER"    // the tests, as somebody without rights
	asRuntime = "BELAY_TEST_AS_RUNTIME" // a runtime that somebody kills
)

// spareUID is a user that owns nothing.
const spareUID = 61234

func TestMain(m *testing.M) {
	sandbox.Main()
	if len(os.Args) == 3 && os.Args[1] == actName {
		os.Exit(act(os.Args[2]))
	}
	if dir := os.Getenv(asRuntime); dir != "" {
		os.Exit(runtimeToKill(dir))
	}
	code := m.Run()
	sandbox.Cleanup()
	if actorDir != "" {
		os.RemoveAll(actorDir)
	}
	os.Exit(code)
}

// space is where a test's programs run.
type space struct {
	t    testing.TB
	b    belay.Boundary
	o    sandbox.Options
	env  []string
	home string
}

// newSpace has a workspace below a home, as a person's is.
func newSpace(t testing.TB) *space {
	t.Helper()
	home := t.TempDir()
	ws := filepath.Join(home, "project")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	return &space{t: t, home: home, b: belay.Boundary{Name: belay.BoundaryWorkspace},
		o: sandbox.Options{Workspace: ws, Home: home, Protected: isProtected}}
}

func isProtected(path string) bool {
	_, ok := protected.Of(path)
	return ok
}

// at leaves out what is above a level.
func (s *space) at(l belay.Level) *space {
	switch l {
	case belay.L2:
		s.o.Disabled = []string{boxinit.Mounts, boxinit.Net, boxinit.IPC, boxinit.User}
	case belay.L1:
		s.o.Disabled = []string{boxinit.Mounts, boxinit.Net, boxinit.IPC, boxinit.User, boxinit.Landlock, boxinit.Seccomp}
	}
	return s
}

// result is what came of a program.
type result struct {
	out     string
	end     sandbox.Ending
	said    bool // the helper told of the end
	state   *os.ProcessState
	applied belay.Applied
	refused []string
	saw     process.Evidence
}

func (s *space) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "TMPDIR=/tmp", "LC_ALL=C"}, s.env...)
	cmd.Dir = s.o.Workspace
	return cmd
}

// sh runs a shell line within the boundary.
func (s *space) sh(line string) result { s.t.Helper(); return s.run("/bin/sh", "-c", line) }

func (s *space) run(argv ...string) result {
	s.t.Helper()
	cmd := s.command(argv...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	h := s.start(cmd)
	defer h.Close()
	if err := h.Release(); err != nil {
		s.t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // the state says it
	end, said := h.Ended()
	return result{out.String(), end, said, cmd.ProcessState, h.Applied(), h.Refused(), h.Evidence()}
}

// start starts a program up to where it is held.
func (s *space) start(cmd *exec.Cmd) *sandbox.Hold {
	s.t.Helper()
	box, err := sandbox.New(s.b, s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	hold, err := box.Prepare(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	h := hold.(*sandbox.Hold)
	if err := cmd.Start(); err != nil {
		h.Close()
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	defer cancel()
	if err := h.Await(ctx); err != nil {
		h.Close()
		cmd.Wait()
		s.t.Fatal(err)
	}
	return h
}

// file writes a file of the workspace.
func (s *space) file(name, content string) string {
	s.t.Helper()
	p := filepath.Join(s.o.Workspace, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// confined needs what level L3 takes.
func confined(t testing.TB) {
	t.Helper()
	m := sandbox.Probe()
	needs.Facility(t, "userns", state(m.Layers, boxinit.PID) == belay.LayerApplied && state(m.Layers, boxinit.Mounts) == belay.LayerApplied, "no namespaces")
	needs.Facility(t, "landlock", state(m.Layers, boxinit.Landlock) == belay.LayerApplied, "no Landlock")
}

func state(layers []belay.Layer, name string) string {
	i := slices.IndexFunc(layers, func(l belay.Layer) bool { return l.Name == name })
	if i < 0 {
		return ""
	}
	return layers[i].State
}

// TestAsAPlainUser runs every test of this package that says so once more, by
// somebody without any rights.
// Guarantee: T12, T110.
func TestAsAPlainUser(t *testing.T) {
	needs.Root(t)
	if os.Getenv(asUser) != "" {
		t.Fatal("the user is root")
	}
	dir, err := os.MkdirTemp("", "belay-user-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, spareUID, spareUID); err != nil {
		t.Fatal(err)
	}
	which := forUsers
	if os.Getenv(rounds) != "" { // somebody wants just these
		which = "^(TestIntended|TestProtectedFromWhatGitObeys)"
	}
	args := []string{"-test.run=" + which, "-test.timeout=500s"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "TMPDIR=") || strings.HasPrefix(e, "XDG_")
	}), "HOME="+dir, "TMPDIR="+dir, asUser+"=1", "GOCACHE="+dir+"/go-build")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: spareUID, Gid: spareUID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as user %d: %v\n%s", spareUID, err, out)
	}
	if testing.Verbose() {
		fmt.Printf("%s", out)
	}
	if !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("nothing ran: %s", out)
	}
}

// forUsers are the tests that are run without rights too.
const forUsers = "^(TestForbidden|TestAllowed|TestProtected|TestIntended|TestHeld|TestLevels|TestLimitsHold|TestNobodyIsLeft|TestExit|TestReadOnly|TestToolchain|TestAnAnswer)"
