package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	need "github.com/belay-run/belay/internal/testkit/needs"
	"golang.org/x/sys/unix"
)

// tries counts trials that find one answer.
type tries struct {
	n int
	m Machine
}

func (c *tries) try() Machine { c.n++; return c.m }

// strong is the answer of a machine that has every layer.
func strong() Machine {
	m := Machine{Root: isAdmin()}
	for _, name := range Layers {
		m.Layers = append(m.Layers, belay.Layer{Name: name, State: belay.LayerApplied})
	}
	m.Level, m.Why = levelOf(m.Layers)
	return m
}

// lacking is that of one that lacks some.
func lacking(names ...string) Machine {
	m := strong()
	for i, l := range m.Layers {
		if slices.Contains(names, l.Name) {
			m.Layers[i] = belay.Layer{Name: l.Name, State: belay.LayerUnavailable, Detail: "EPERM"}
		}
	}
	m.Level, m.Why = levelOf(m.Layers)
	return m
}

func same(a, b Machine) bool {
	return a.Root == b.Root && a.Level == b.Level && a.Why == b.Why && slices.Equal(a.Layers, b.Layers)
}

func TestAMachineIsTriedOnceAndRecalled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "of", "belay", "machine.json")
	c := &tries{m: strong()}
	for range 3 { // each is a process
		if m := new(finding).get(file, c.try); !same(m, c.m) {
			t.Fatalf("recalled %+v of %+v", m, c.m)
		}
	}
	if c.n != 1 {
		t.Errorf("the machine was tried %d times", c.n)
	}
	in, err := os.Stat(file)
	if err != nil || in.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", in.Mode(), err)
	}
	if in, err = os.Stat(filepath.Dir(file)); err != nil || in.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", in.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// TestOnlyTheBestAnswerIsKept: an answer that is too modest would make a weaker
// boundary than there could be, and nothing would notice.
func TestOnlyTheBestAnswerIsKept(t *testing.T) {
	for _, m := range []Machine{lacking(boxinit.Net), lacking(boxinit.Landlock), lacking(boxinit.Seccomp), lacking(Layers...)} {
		file := filepath.Join(t.TempDir(), "machine.json")
		c := &tries{m: m}
		for range 2 {
			if got := new(finding).get(file, c.try); !same(got, m) {
				t.Errorf("got %+v of %+v", got, m)
			}
		}
		if _, err := os.Stat(file); c.n != 2 || !os.IsNotExist(err) {
			t.Errorf("%s (%s) was kept: %d trials, %v", m.Level, m.Why, c.n, err)
		}
	}
	if g, err := newCgroup(trialLimits); err == nil { // groups that an older process couldn't have
		g.remove()
		file := filepath.Join(t.TempDir(), "machine.json")
		keep(file, answer{circumstances(), lacking(boxinit.Cgroup).Layers})
		c := &tries{m: strong()}
		if m := new(finding).get(file, c.try); c.n != 1 || !same(m, c.m) {
			t.Errorf("groups can be had and weren't: %+v", m)
		}
	}
}

func TestAnAnswerCountsInItsCircumstancesOnly(t *testing.T) {
	key := circumstances()
	if key == "" || key != circumstances() {
		t.Fatalf("the circumstances are %q, and then %q", key, circumstances())
	}
	said := func(key string, m Machine) []byte {
		b, err := json.Marshal(answer{key, m.Layers})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	put := func(b []byte, mode os.FileMode) func(string) error {
		return func(file string) error {
			if err := os.WriteFile(file, b, mode); err != nil {
				return err
			}
			return os.Chmod(file, mode)
		}
	}
	good := said(key, strong())
	c := &tries{m: strong()}
	for name, write := range map[string]func(file string) error{
		"of other circumstances": put(said(strings.Repeat("0", len(key)), strong()), 0o600),
		"of a lower level":       put(said(key, lacking(boxinit.Mounts)), 0o600),
		"without a layer":        put(said(key, Machine{Layers: strong().Layers[1:]}), 0o600),
		"empty":                  put(nil, 0o600),
		"half":                   put(good[:len(good)/2], 0o600),
		"that others can write":  put(good, 0o602),
		"that a group can write": put(good, 0o620),
		"too long":               put(append(bytes.Repeat([]byte(" "), maxAnswer), good...), 0o600),
		"that is a pipe":         func(file string) error { return unix.Mkfifo(file, 0o600) },
		"that is a folder":       func(file string) error { return os.Mkdir(file, 0o700) },
		"that a link leads to": func(file string) error {
			return errors.Join(os.WriteFile(file+".real", good, 0o600), os.Symlink(file+".real", file))
		},
	} {
		file := filepath.Join(t.TempDir(), "machine.json")
		if err := write(file); err != nil {
			t.Fatal(err)
		}
		before := c.n
		if m := new(finding).get(file, c.try); !same(m, c.m) || c.n != before+1 {
			t.Errorf("a file %s was believed", name)
		}
	}
}

// narrowed is a part of this binary: a process whose machine has lost something.
const narrowed = "BELAY_TEST_NARROWED"

// TestAnAnswerThatPromisesTooMuch: what a machine has lost is tried again where
// that shows; where it doesn't, the program is refused, and then it is.
// Guarantee: T13.
func TestAnAnswerThatPromisesTooMuch(t *testing.T) {
	if dir := os.Getenv(narrowed); dir != "" {
		promisedTooMuch(t, dir)
		return
	}
	file := filepath.Join(t.TempDir(), "machine.json")
	m := new(finding).get(file, probe)
	need.Facility(t, "userns", m.Level == belay.L3, "the machine has "+string(m.Level))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestAnAnswerThatPromisesTooMuch$", "-test.v")
	cmd.Args[0], cmd.Env = os.Args[0], append(os.Environ(), narrowed+"="+filepath.Dir(file))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatalf("%v: %s", err, out)
	}
}

func promisedTooMuch(t *testing.T, dir string) {
	if err := os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "machine.json")
	if m := new(finding).get(file, probe); m.Level.AtLeast(belay.L3) {
		t.Fatalf("without networks of its own the machine has %+v", m)
	}
	keep(file, answer{circumstances(), strong().Layers}) // now nothing shows it
	if m := ProbeCached(file); m.Level != belay.L3 {
		t.Fatalf("the lie wasn't read: %+v", m)
	}
	ws := filepath.Join(dir, "project")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	box, err := New(belay.Boundary{Name: belay.BoundaryWorkspace}, Options{Workspace: ws, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(ws, "ran")
	if err := runIn(t, box, "/bin/touch", ran); err == nil {
		t.Error("a boundary stood that the machine can't have")
	} else {
		t.Log(err)
	}
	if _, err := os.Lstat(ran); !os.IsNotExist(err) {
		t.Errorf("the program ran: %v", err)
	}
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("the lie is still there: %v", err)
	}
	if plan, err := box.Plan(); err != nil || plan.Level.AtLeast(belay.L3) {
		t.Errorf("the machine wasn't tried again: %+v, %v", plan, err)
	}
	if err := runIn(t, box, "/bin/touch", ran); err != nil {
		t.Errorf("at the level there is: %v", err)
	}
	if _, err := os.Lstat(ran); err != nil {
		t.Error(err)
	}
}

// runIn runs a program within a boundary, or says why it didn't.
func runIn(t *testing.T, box *Box, argv ...string) error {
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	h, err := box.Prepare(cmd)
	if err != nil {
		return err
	}
	defer h.Close() //nolint:errcheck // it never fails
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := h.Await(t.Context()); err != nil {
		cmd.Wait() //nolint:errcheck // it was never released
		return err
	}
	if err := h.Release(); err != nil {
		return err
	}
	return cmd.Wait()
}
