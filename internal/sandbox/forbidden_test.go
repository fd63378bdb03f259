//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// forbidden are shell lines that must fail within a boundary. $OUT is a folder
// of the same person outside the workspace, $PID this process, $PORT a server
// of it.
var forbidden = []struct {
	name string
	from belay.Level // the lowest level that stops it
	line string
}{
	{"write-system", belay.L2, `touch /etc/belay-x || touch /usr/belay-x || touch /belay-x`},
	{"write-outside", belay.L2, `echo x > "$OUT/new"`},
	{"append-outside", belay.L2, `echo x >> "$OUT/file"`},
	{"truncate-outside", belay.L2, `truncate -s 0 "$OUT/file"`},
	{"remove-outside", belay.L2, `rm -f "$OUT/file" && test ! -e "$OUT/file" && rm "$OUT/file"`},
	{"rename-outside", belay.L2, `echo x > f && mv f "$OUT/f"`},
	{"rename-from-outside", belay.L2, `mv "$OUT/file" f`},
	{"read-outside", belay.L2, `cat "$OUT/file"`},
	{"list-home", belay.L2, `ls "$OUT" && test -e "$OUT/file"`},
	{"read-key", belay.L2, `cat "$OUT/../.ssh/id"`},
	{"chmod-outside", belay.L3, `chmod 777 "$OUT/file"`},
	{"chmod-system", belay.L3, `chmod 755 /etc`},
	{"times-system", belay.L3, `touch -m /etc/passwd`},
	{"attribute-system", belay.L3, `python3 -c 'import os; os.setxattr("/etc/passwd", "user.x", b"y")'`},
	{"hard-link", belay.L2, `ln /etc/passwd p`},
	{"hard-link-outside", belay.L2, `ln "$OUT/file" p`},
	{"link-out", belay.L2, `ln -s "$OUT" o && echo x > o/new`},
	{"through-proc", belay.L2, `echo x > "/proc/self/root$OUT/new"`},
	{"through-cwd", belay.L2, `cd "/proc/$PPID/cwd/.." && echo x > ../belay-x`},
	{"sysctl", belay.L2, `cat /proc/sys/kernel/core_pattern > c && cat c > /proc/sys/kernel/core_pattern`},
	{"sysrq", belay.L2, `echo h > /proc/sysrq-trigger`},
	{"sysfs", belay.L2, `cat /sys/kernel/mm/transparent_hugepage/enabled > /dev/null; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`},
	{"shadow", belay.L2, `grep -q : /etc/shadow`},
	{"disk", belay.L2, `for d in /dev/vd? /dev/sd? /dev/nvme?n? /dev/mem /dev/kmsg; do head -c 1 $d && exit 0; done; exit 1`},
	{"connect-loopback", belay.L2, `bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"`},
	{"connect-outside", belay.L2, `bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'`},
	{"connect-udp", belay.L2, `bash -c 'echo x > /dev/udp/192.0.2.1/53'`},
	{"connect-abstract", belay.L2, `python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\0$ABSTRACT')"`},
	{"connect-path", belay.L3, `python3 -c "import os, socket; s = socket.socket(socket.AF_UNIX); os.chdir(os.environ['OUT']); s.connect('sock')"`},
	{"connect-mptcp", belay.L2, `python3 -c "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(('127.0.0.1', $PORT))"`},
	{"resolve", belay.L2, `getent hosts example.com`},
	{"ping", belay.L2, `python3 -c "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1); s.connect(('192.0.2.1', 1)); s.send(b'x')"`},
	{"signal-runtime", belay.L2, `kill -0 $PID`},
	{"trace-runtime", belay.L2, `timeout 5 strace -o /dev/null -p $PID -e none; [ $? -eq 124 ]`},
	{"environment-runtime", belay.L2, `grep -qa PATH /proc/$PID/environ`},
	{"memory-runtime", belay.L2, `head -c 1 /proc/$PID/mem`},
	{"files-runtime", belay.L2, `readlink /proc/$PID/fd/0`},
	{"unshare", belay.L2, `unshare -U true`},
	{"unshare-mount", belay.L2, `unshare -m true`},
	{"enter", belay.L2, `nsenter -t 1 -m true`},
	{"remount", belay.L2, `mount -o remount,rw /`},
	{"uncover", belay.L2, `umount -l /tmp || umount -l /proc`},
	{"gain-by-setuid", belay.L1, `f=$(find /usr/bin/su /usr/bin/passwd /bin/mount -perm -4000 2>/dev/null | head -1); test -n "$f" && cp "$f" ./s && chmod u+s ./s && ./s --version >/dev/null && grep -q 'NoNewPrivs:.0' /proc/self/status`},
	{"date", belay.L2, `date -s '2001-01-01'`},
}

// outside makes what the forbidden lines aim at, and sets their variables.
func outside(t *testing.T, s *space) {
	t.Helper()
	out := filepath.Join(s.home, "other")
	for _, d := range []string{out, filepath.Join(s.home, ".ssh")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(out, "file"), filepath.Join(s.home, ".ssh", "id")} {
		if err := os.WriteFile(f, []byte("outside\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tcp := listen(t, "tcp", "127.0.0.1:0")
	name := "belay-test-" + filepath.Base(s.home) + filepath.Base(filepath.Dir(s.home))
	listen(t, "unix", "@"+name)
	t.Chdir(out) // a path of a socket is short
	listen(t, "unix", "sock")
	s.env = []string{"OUT=" + out, fmt.Sprintf("PID=%d", os.Getpid()), "PORT=" + port(tcp), "ABSTRACT=" + name}
}

// Guarantee: T12.
func TestForbidden(t *testing.T) {
	confined(t)
	for _, p := range []string{"python3", "strace", "bash"} {
		needs.Program(t, p)
	}
	for _, level := range []belay.Level{belay.L3, belay.L2, belay.L1} {
		s := newSpace(t).at(level)
		outside(t, s)
		exe := s.withActor()
		var lines strings.Builder
		for i, c := range forbidden {
			if level.AtLeast(c.from) {
				fmt.Fprintf(&lines, "(%s\n) >said 2>&1; echo \"%d $? $(head -c 300 said | tr '\\n\\0' '  ')\"\n", c.line, i)
			}
		}
		r := s.sh(lines.String())
		if r.applied.Level != level {
			t.Fatalf("got level %s (%s), want %s", r.applied.Level, r.applied.Why, level)
		}
		tried := 0
		for line := range strings.Lines(r.out) {
			var at, code int
			if _, err := fmt.Sscan(line, &at, &code); err != nil {
				t.Fatalf("got line %q", line)
			}
			tried++
			if code == 0 || strings.Contains(line, "not found") {
				t.Errorf("%s at %s: it was let, or not tried: %s", forbidden[at].name, level, line)
			}
		}
		if want := strings.Count(lines.String(), ">said"); tried != want {
			t.Errorf("%d of %d lines were tried at %s: %s", tried, want, level, r.out)
		}
		untouched(t, s)
		r = s.run(exe, actName, string(level))
		if r.end.Code != 0 {
			t.Errorf("acts at %s: exit %d, these were let: %s", level, r.end.Code, r.out)
		}
	}
}

// untouched checks what the forbidden lines aimed at.
func untouched(t *testing.T, s *space) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.home, "other", "file"))
	if err != nil || string(b) != "outside\n" {
		t.Errorf("a file outside is %q, %v", b, err)
	}
	names, err := os.ReadDir(filepath.Join(s.home, "other"))
	if err != nil || len(names) != 2 {
		t.Errorf("the folder outside has %v, %v", names, err)
	}
}

// TestAllowed shows that the same lines fail because of the boundary: what is
// inside can be done.
// Guarantee: T12.
func TestAllowed(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	for _, level := range []belay.Level{belay.L3, belay.L2} {
		s := newSpace(t).at(level)
		for name, line := range map[string]string{
			"write":     `echo x > f && mkdir d && mv f d/g && cat d/g && chmod 600 d/g && rm -r d`,
			"link":      `echo x > a && ln a b && ln -s a c && cat b c`,
			"temporary": `f=$(mktemp) && echo x > "$f" && test "$(cat "$f")" = x`,
			"home":      `echo x > "$HOME/belay-x" && cat "$HOME/belay-x"`,
			"devices":   `head -c 4 /dev/urandom > /dev/null && : > /dev/null && echo x > /dev/stdout && echo y >&2`,
			"system":    `cat /etc/passwd > /dev/null && ls /usr/bin > /dev/null`,
			"children":  `sleep 0 & wait && echo "$(echo sub)" | grep -q sub`,
			"signal":    `sleep 60 & kill $! && ! wait $!`,
			"socket":    `python3 -c "import socket; a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'"`,
			"unix":      `python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.bind('u'); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect('u')" && rm u`,
			"threads":   `python3 -c "import threading; t = threading.Thread(target=print); t.start(); t.join()"`,
		} {
			if r := s.sh(line); r.end.Code != 0 {
				t.Errorf("%s at %s: exit %d: %s", name, level, r.end.Code, r.out)
			}
		}
	}
	s := newSpace(t)
	for name, line := range map[string]string{
		"loopback": `python3 -c "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); c.send(b'x'); assert s.accept()[0].recv(1) == b'x'"`,
		"terminal": `python3 -c "import pty, os; m, s = pty.openpty(); os.write(m, b'x\n'); assert os.read(s, 2) == b'x\n'"`,
		"shared":   `python3 -c "from multiprocessing import shared_memory as m; x = m.SharedMemory(create=True, size=64); x.close(); x.unlink()"`,
	} {
		if r := s.sh(line); r.end.Code != 0 {
			t.Errorf("%s at L3: exit %d: %s", name, r.end.Code, r.out)
		}
	}
}

// Guarantee: T12.
func TestReadOnlyBoundaryWritesNothingThatStays(t *testing.T) {
	confined(t)
	for _, level := range []belay.Level{belay.L3, belay.L2} {
		s := newSpace(t).at(level)
		s.b.Name = belay.BoundaryReadOnly
		s.file("f", "x\n")
		if r := s.sh(`cat f && ! touch g && ! rm -f f && ! sh -c 'echo y > f' && echo z > "$TMPDIR/t"`); r.end.Code != 0 || r.applied.Level != level {
			t.Errorf("at %s: got %+v", level, r)
		}
		names, _ := os.ReadDir(s.o.Workspace)
		if len(names) != 1 {
			t.Errorf("at %s the workspace has %v", level, names)
		}
	}
}

// Guarantee: T13.
func TestLevelsAreWhatWasApplied(t *testing.T) {
	confined(t)
	for _, c := range []struct {
		disabled []string
		want     belay.Level
		why      string
	}{
		{nil, belay.L3, ""},
		{[]string{boxinit.IPC}, belay.L2, "ipc disabled(settings)"},
		{[]string{boxinit.Landlock}, belay.L2, "landlock disabled(settings)"},
		{[]string{boxinit.Mounts}, belay.L2, "mounts disabled(settings)"},
		{[]string{boxinit.Seccomp}, belay.L1, "seccomp disabled(settings)"},
		{[]string{boxinit.Mounts, boxinit.Landlock}, belay.L1, "landlock disabled(settings)"},
		{[]string{boxinit.Rlimits}, belay.L0, "rlimits disabled(settings)"},
	} {
		s := newSpace(t)
		s.o.Disabled = c.disabled
		r := s.sh("true")
		if r.applied.Level != c.want || r.applied.Why != c.why || r.end.Code != 0 {
			t.Errorf("without %v: got %s because %q, want %s because %q", c.disabled, r.applied.Level, r.applied.Why, c.want, c.why)
		}
		for _, l := range r.applied.Layers {
			if want := slices.Contains(c.disabled, l.Name); want != (l.State == belay.LayerDisabled && l.Detail == "settings") {
				t.Errorf("without %v: %s is %s", c.disabled, l.Name, l)
			}
		}
	}
}

// Guarantee: T13.
func TestLevelThatCannotBeHadIsRefused(t *testing.T) {
	s := newSpace(t).at(belay.L2)
	s.b.Least = belay.L3
	box, err := sandbox.New(s.b, s.o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command("/bin/true")
	_, err = box.Prepare(cmd)
	if belay.CodeOf(err) != belay.CodeNotConfined || !strings.Contains(err.Error(), "wants level L3") || cmd.Path != "/bin/true" {
		t.Errorf("got %v, want a refusal that names the level", err)
	}
}
