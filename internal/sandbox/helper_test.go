//go:build linux

package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
	"golang.org/x/sys/unix"
)

// helperDoors are what /proc shows of a process, and the descriptor that the
// runtime inherited. Each must lead nowhere: $HELPER is the helper, $FD the
// descriptor.
var helperDoors = []struct{ name, line string }{
	{"own descriptor", `cat <&$FD`},
	{"own descriptor by path", `cat /proc/self/fd/$FD`},
	{"other descriptors", `n=$(ls /proc/$$/fd | grep -v '^[0-2]$'); test -n "$n"`},
	{"descriptor", `cat /proc/$HELPER/fd/$FD`},
	{"descriptor of a thread", `cat /proc/$HELPER/task/$HELPER/fd/$FD`},
	{"all descriptors", `timeout 1 cat /proc/$HELPER/fd/*; [ $? = 124 ]`},
	{"a descriptor's target", `readlink /proc/$HELPER/fd/0`},
	{"a descriptor's facts", `grep . /proc/$HELPER/fdinfo/0`},
	{"writing to a descriptor", `echo x > /proc/$HELPER/fd/$FD`},
	{"root", `ls /proc/$HELPER/root/`},
	{"root's target", `readlink /proc/$HELPER/root`},
	{"file below root", `cat /proc/$HELPER/root/etc/hostname /proc/$HELPER/root/etc/passwd`},
	{"folder", `cd /proc/$HELPER/cwd`},
	{"program", `head -c 4 /proc/$HELPER/exe`},
	{"environment", `grep -qa . /proc/$HELPER/environ`},
	{"memory", `python3 -c "
import re
for l in open('/proc/$HELPER/maps'):
    m = re.match('([0-9a-f]+)-([0-9a-f]+) rw', l)
    if m:
        f = open('/proc/$HELPER/mem', 'rb'); f.seek(int(m[1], 16)); f.read(1); break
"`},
	{"memory, first byte", `head -c 1 /proc/$HELPER/mem`},
	{"map", `grep . /proc/$HELPER/maps`},
	{"map's sizes", `grep . /proc/$HELPER/smaps`},
	{"mapped files", `cat /proc/$HELPER/map_files/*`},
	{"pages", `head -c 8 /proc/$HELPER/pagemap`},
	{"start values", `grep -qa . /proc/$HELPER/auxv`},
	{"namespace", `readlink /proc/$HELPER/ns/mnt`},
	{"call", `grep . /proc/$HELPER/syscall`},
	{"disk use", `grep . /proc/$HELPER/io`},
}

// TestForbiddenIsWhatTheHelperHolds: what the runtime inherited, and all that the
// helper has, leads a confined program nowhere.
// Guarantee: T110.
func TestForbiddenIsWhatTheHelperHolds(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	for _, level := range []belay.Level{belay.L3, belay.L2, belay.L1} {
		s := newSpace(t).at(level)
		secret := filepath.Join(s.home, "secret")
		if err := os.WriteFile(secret, []byte("the secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(secret, unix.O_RDWR, 0) // as one that came from the runtime's parent
		if err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		lines.WriteString("HELPER=$PPID\n")
		for i, c := range helperDoors {
			fmt.Fprintf(&lines, "(%s\n) >said 2>&1; echo \"%d $? $(head -c 200 said | tr '\\n\\0' '  ')\"\n", c.line, i)
		}
		s.env = append(s.env, fmt.Sprintf("FD=%d", fd))
		r := s.sh(lines.String())
		unix.Close(fd)
		if tried := strings.Count(r.out, "\n"); tried != len(helperDoors) || r.applied.Level != level {
			t.Errorf("%d of %d were tried at %s: %s", tried, len(helperDoors), r.applied.Level, r.out)
		}
		for line := range strings.Lines(r.out) {
			var at, code int
			if _, err := fmt.Sscan(line, &at, &code); err != nil {
				t.Fatalf("got line %q", line)
			}
			if code == 0 || strings.Contains(line, "not found") || strings.Contains(line, "the secret") {
				t.Errorf("%s at %s: it was let, or not tried: %s", helperDoors[at].name, level, line)
			}
		}
		if b, err := os.ReadFile(secret); err != nil || string(b) != "the secret\n" {
			t.Errorf("at %s the file is %q, %v", level, b, err)
		}
	}
}

// TestNobodyIsLeftWhenTheProgramIsStopped: the runtime reaches the helper, though
// it can't look into it.
// Guarantee: T110.
func TestNobodyIsLeftWhenTheProgramIsStopped(t *testing.T) {
	confined(t)
	for _, level := range []belay.Level{belay.L3, belay.L2} {
		s := newSpace(t).at(level)
		f := tether(t, s)
		box, err := sandbox.New(s.b, s.o)
		if err != nil {
			t.Fatal(err)
		}
		var out ready
		out.come = make(chan struct{})
		c := s.command("/bin/sh", "-c", daemons+"echo ready; wait")
		p, err := process.Start(process.Command{Path: c.Path, Argv: c.Args, Dir: c.Dir, Env: c.Env, Output: &out, Grace: patience, Box: box})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Release(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-out.come:
		case <-time.After(patience):
			t.Fatal("it doesn't begin")
		}
		began := time.Now()
		p.Stop("enough")
		<-p.Done()
		if e := p.Exit(); e.How != "enough" || time.Since(began) > patience/2 {
			t.Errorf("at %s: got %+v after %s", level, e, time.Since(began))
		}
		cut(t, f)
	}
}

// ready closes come once a program has said so.
type ready struct {
	bytes.Buffer
	come chan struct{}
	said sync.Once
}

func (r *ready) Write(b []byte) (int, error) {
	n, err := r.Buffer.Write(b)
	if bytes.Contains(r.Bytes(), []byte("ready\n")) {
		r.said.Do(func() { close(r.come) })
	}
	return n, err
}
