//go:build linux

package attack

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// held is what the file holds that the program is given open.
const held = "held-by-the-runtime"

// TestReach: a file that the runtime was given open by whoever started it, as
// descriptor 7, and that has no name any more, reaches nobody: neither as a
// descriptor nor through the helper, which is process 1 in a boundary.
func TestReach(t *testing.T) {
	reach := func(name, line string) attack {
		return attack{name: name, files: map[string]string{"reach.sh": line}, command: "sh reach.sh", flags: []string{"--allow", "exec"}, secret: held, given: held}
	}
	own := []attack{
		reach("descriptor", `cat <&7`),
		reach("by its path", `cat /proc/self/fd/7`),
		reach("by its device", `cat /dev/fd/7`),
		reach("in the background", `cat <&7 & wait`),
		reach("as standard input", `exec <&7; cat`),
		reach("in another session", `setsid -w cat /proc/self/fd/7`),
		reach("by python", `python3 -c 'import os; print(os.pread(7, 99, 0))'`),
		reach("by a program that is run for lines", `echo /proc/self/fd/7 | xargs cat`),
	}
	for _, a := range own {
		t.Run(a.name+"/works", func(t *testing.T) {
			w := newWorkspace(t, a, "MARK", false)
			if out, _ := w.run("sh", "sh reach.sh"); !bytes.Contains(out, []byte(held)) {
				t.Errorf("it isn't an attack: %s", out)
			}
		})
	}
	play(t, expectation{}, append(own,
		reach("helper's descriptor", `timeout 1 cat /proc/1/fd/7`),
		reach("helper's descriptors", `for n in 3 4 5 6 7 8 9; do timeout 1 cat /proc/1/fd/$n; done`),
		reach("helper's thread", `for n in 3 4 5 6 7; do timeout 1 cat /proc/1/task/1/fd/$n; done`),
		reach("helper through its root", `for n in 3 4 5 6 7; do timeout 1 cat /proc/1/root/proc/1/fd/$n; done`),
		reach("helper through its folder", `cd /proc/1/fd && for n in 3 4 5 6 7; do timeout 1 cat $n; done`),
		reach("helper's descriptor, appended to", `echo x >> /proc/1/fd/7; timeout 1 cat /proc/1/fd/7`),
		reach("helper by python", `python3 -c '
import os
for n in range(3, 12):
    try: print(os.pread(os.open("/proc/1/fd/%d" % n, os.O_RDONLY | os.O_NONBLOCK), 99, 0))
    except OSError: pass'`),
	))
}

// TestProcesses: the variables of a process that runs beside belay, as the same
// user, reach the model neither by ps nor by the files of /proc.
func TestProcesses(t *testing.T) {
	for _, uid := range []uint32{0, plainUser} {
		beside := exec.Command("sleep", "600.25") // which finds it among others
		beside.Env = []string{"TOKEN=" + held}
		beside.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if err := beside.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			beside.Process.Kill() //nolint:errcheck // it ends by itself
			beside.Wait()         //nolint:errcheck // killed
		})
	}
	var table []attack
	for _, line := range []string{
		"ps axe", "ps axeww", "ps eww -A", "ps auxeww", "ps -auxe", "ps -C sleep e", "x=axe; ps $x",
		"cat /proc/*/environ", "cat /proc/[0-9]*/e*", "strings /proc/*/environ", "cat /proc/*/task/*/environ", "cat /proc/$(pgrep -of '600[.]25')/environ", "for p in /proc/[0-9]*; do cat $p/environ; done", "cd /proc && cat */environ",
		`tr '\0' '\n' < /proc/$(pgrep -of '600[.]25')/environ`, "find /proc -maxdepth 2 -name environ -exec cat {} +", "ls -d /proc/*/environ | xargs cat", "grep -ahs TOKEN /proc/*/environ", "awk 1 /proc/$(pgrep -of '600[.]25')/environ", "for f in environ; do cat /proc/*/$f; done",
		`python3 -c 'import glob
for f in glob.glob("/proc/*/environ"):
    try: print(open(f).read())
    except OSError: pass'`,
	} {
		a := attack{name: line, command: line, secret: held}
		t.Run(line+"/works", func(t *testing.T) {
			w := newWorkspace(t, a, "MARK", false)
			if out, _ := w.run("bash", line); !bytes.Contains(out, []byte(held)) {
				t.Errorf("it isn't an attack: %.2000s", out)
			}
		})
		table = append(table, a)
	}
	for _, line := range []string{"ps e", "ps -eo environ", "ps axo pid,environ"} { // of processes with a terminal; a column that some versions leave empty
		table = append(table, attack{name: line, command: line, secret: held})
	}
	play(t, expectation{decided: true, outside: true}, table)
}

// give opens the file that the attack's programs are given, and removes it.
func (w *workspace) give(content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, "given")
	w.file("given", content)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.given = os.NewFile(uintptr(fd), path)
	w.t.Cleanup(func() { w.given.Close() })
}

// rewound is the file, to be read from its beginning.
func (w *workspace) rewound() []*os.File {
	if w.given == nil {
		return nil
	}
	if _, err := w.given.Seek(0, io.SeekStart); err != nil {
		w.t.Fatal(err)
	}
	return []*os.File{nil, nil, nil, nil, w.given}
}
