//go:build linux

package sandbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/testkit/sample"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// reader is a space of the boundary that only reads, with a world around it: a cache
// that is kept, a process, a socket with a name and one of the loopback.
type reader struct {
	*space
	victim    *exec.Cmd
	port      string
	socket    string
	connected atomic.Int64
}

func newReader(t testing.TB) *reader {
	t.Helper()
	r := &reader{space: newSpace(t)}
	r.b = belay.Boundary{Name: belay.BoundaryReadOnly}
	r.o.Cache = filepath.Join(t.TempDir(), "cache")
	r.o.Secret = func(p string, folder bool) bool {
		return folder && protected.SecretPlace(p) || !folder && protected.Secret(p) != ""
	}
	if err := os.Mkdir(r.o.Cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.o.Cache, "kept"), []byte("kept\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.file("a.txt", "alpha\nbeta\n")
	r.file("b.txt", "3\n1\n2\n")
	r.file("sub/c.go", "package sub\n")
	if err := syscall.Mkfifo(filepath.Join(r.o.Workspace, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	r.victim = exec.Command("sleep", "3600")
	r.victim.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.victim.Process.Kill() //nolint:errcheck // it may have ended
		r.victim.Wait()         //nolint:errcheck // killed
	})
	r.socket = filepath.Join(r.o.Workspace, "s")
	for _, where := range []string{"unix " + r.socket, "tcp 127.0.0.1:0"} {
		network, address, _ := strings.Cut(where, " ")
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			r.port = strconv.Itoa(tcp.Port)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				r.connected.Add(1)
				c.Close()
			}
		}()
	}
	return r
}

// world is all that a line must leave as it is.
func (r *reader) world() string {
	var b strings.Builder
	for _, dir := range []string{r.home, r.o.Cache} {
		filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error { //nolint:errcheck // what can't be read is noted as that
			if err != nil {
				fmt.Fprintln(&b, p, err)
				return nil
			}
			info, err := d.Info()
			if err == nil {
				fmt.Fprintln(&b, p, info.Mode(), info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
	}
	fmt.Fprintln(&b, "alive", r.victim.Process.Signal(syscall.Signal(0)) == nil, "connections", r.connected.Load())
	return b.String()
}

// TestReadOnlyLeavesTheWorldAsItIs: in the boundary that only reads a program writes
// only what is thrown away, and reaches no socket, no pipe and no process.
// Guarantee: G96.
func TestReadOnlyLeavesTheWorldAsItIs(t *testing.T) {
	confined(t)
	for _, level := range []belay.Level{belay.L3, belay.L2} {
		r := newReader(t)
		r.at(level)
		before := r.world()
		for _, line := range []string{
			"echo x >a.txt", "touch new", "rm -f a.txt", "mkdir d", "ln a.txt b", "mv a.txt c", "chmod 600 a.txt", "touch -d 2001-01-01 a.txt", "timeout 1 sh -c 'echo x >pipe'", "echo x >$HOME/../x",
			"kill -9 $VICTIM", "kill -STOP $VICTIM", "perl -e 'kill 9, $ENV{VICTIM}'", "exec 3<>/dev/tcp/127.0.0.1/$PORT", "echo x >$CACHE/kept", "rm -rf $CACHE",
			"perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0)&&connect(S,pack_sockaddr_un($ENV{SOCKET}))||exit 1'", "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_DGRAM,0)&&send(S,1,0,pack_sockaddr_un($ENV{SOCKET}))||exit 1'",
			"perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0)&&connect(S,pack_sockaddr_in($ENV{PORT},inet_aton(\"127.0.0.1\")))||exit 1'",
		} {
			r.env = []string{"VICTIM=" + strconv.Itoa(r.victim.Process.Pid), "PORT=" + r.port, "SOCKET=" + r.socket, "CACHE=" + r.o.Cache}
			res := r.run("/bin/bash", "-c", line)
			if after := r.world(); after != before {
				t.Fatalf("at %s, %s: the world was\n%sand is\n%s(%s)", level, line, before, after, res.out)
			}
			if res.applied.Level != level {
				t.Fatalf("it came out as %s", res.applied.Level)
			}
		}
	}
}

// TestReadOnlyHasPlacesToWrite: what programs expect to be able to write they can, and
// nothing of it is there the next time; what the cache holds is seen.
// Guarantee: G96.
func TestReadOnlyHasPlacesToWrite(t *testing.T) {
	confined(t)
	needs.Program(t, "flock")
	r := newReader(t)
	r.env = []string{"TMPDIR=" + r.o.Workspace}
	for _, line := range []string{
		"touch $TMPDIR/y; for d in /tmp /var/tmp /dev/shm ~ ~/.cache; do [ ! -e $d/x ] || exit 1; echo x >$d/x && grep -q x $d/x || exit 2; done", "[ $(cat ~/.cache/kept) = kept ]", "rm ~/.cache/kept && mkdir -p ~/.cache/go-build/00 && mktemp", "[ ! -e /tmp/x ]", "sort a.txt | tee /dev/stderr | wc -l",
		"kill -0 $$ && sleep 9 & kill $! && wait", "flock /tmp/l true",
	} {
		if res := r.sh(line); res.end.Code != 0 && !strings.HasPrefix(line, "kill") {
			t.Errorf("%s: exit %d: %s", line, res.end.Code, res.out)
		}
	}
	if b, err := os.ReadFile(filepath.Join(r.o.Cache, "kept")); err != nil || string(b) != "kept\n" {
		t.Errorf("the cache holds %q, %v", b, err)
	}
}

// TestReadOnlyIsNoViolation: harmless commands in a repository with a secret, a key and a
// folder that nobody may read aren't taken for what a boundary stopped.
// Guarantee: G96.
func TestReadOnlyIsNoViolation(t *testing.T) {
	confined(t)
	needs.Program(t, "xargs")
	r := newReader(t)
	r.file(".env", "A=1\n")
	r.file("deploy.key", "-----BEGIN PRIVATE KEY-----\n")
	r.file("locked/x", "x\n")
	if out, err := exec.Command("sh", "-c", "cd "+r.o.Workspace+" && rm -f s pipe && git init -q . && git add -f . && git -c user.name=a -c user.email=a@b commit -qm one && echo x >>a.txt && chmod 0 locked").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(r.o.Workspace, "locked"), 0o755) }) //nolint:errcheck // it is removed
	lines := []string{"find . -type f | xargs wc -l", "git diff", "git status", "grep -rn x .", "ss -ltn", "ps aux", "cat .env", "cat deploy.key", "ls -laR", "find / -maxdepth 2 -name x", "ls locked", "du -sh .", "tar -cf - . | wc -c", "cat /etc/shadow"}
	if os.Getenv(asUser) == "" { // who may not be let into the source
		lines = append(lines, slices.DeleteFunc(harmlessLines(t, r.o.Workspace), func(l string) bool { return !sample.Has(l) })...)
	}
	for _, line := range lines {
		cmd := r.run("/usr/bin/timeout", "10", "/bin/bash", "-c", line)
		seen := policy.Seen{Exists: func(p string) bool { _, err := os.Lstat(p); return err == nil }, Private: cmd.saw.Private}
		if op, target, ok := policy.ParseViolation(cmd.out, r.o.Workspace, r.o.Workspace, r.b, seen); ok && op != policy.OpRead {
			t.Errorf("%s: %s %s\n%s", line, op, target, cmd.out)
		}
		if covered := policy.CoveredSecrets(cmd.out, r.o.Workspace, cmd.saw.Covered); (line == "cat .env" || line == "find . -type f | xargs wc -l") && len(covered) == 0 {
			t.Errorf("%s: nothing is said of what is covered: %s", line, cmd.out)
		}
	}
	t.Logf("%d commands", len(lines))
}

// harmlessLines is the corpus of package shell, in a workspace.
func harmlessLines(t *testing.T, workspace string) (lines []string) {
	t.Helper()
	f, err := os.Open("../policy/shell/testdata/harmless.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var j struct{ Cmd string }
		if err := json.Unmarshal(in.Bytes(), &j); err != nil {
			t.Fatal(err)
		}
		if sample.Has(j.Cmd) {
			lines = append(lines, strings.ReplaceAll(j.Cmd, "/srv/proj", workspace))
		}
	}
	return lines
}

// lineMaker makes lines of bash that only read by their text.
type lineMaker struct {
	*rand.Rand
	n int
}

func (g *lineMaker) pick(list ...string) string { return list[g.IntN(len(list))] }

// does is what a subscript runs: what prints, or what would change the world.
func (g *lineMaker) does(hostile bool) string {
	if !hostile {
		return g.pick("echo 0", "wc -l <a.txt", "expr 1 + 1", "grep -c a a.txt", "cat b.txt | head -n 1")
	}
	return g.pick("touch P", "echo x >>a.txt", "rm -f b.txt", "mkdir q", "kill -9 $VICTIM", "exec 3<>/dev/tcp/127.0.0.1/$PORT", "echo x >$HOME/p", "rm -rf $CACHE/kept", "timeout 1 bash -c \"echo x >pipe\"",
		"perl -MSocket -e \"socket(S,PF_UNIX,SOCK_STREAM,0)&&connect(S,pack_sockaddr_un(q{$SOCKET}))\"", "chmod 0 a.txt", "ln -s / l", "pkill sleep")
}

// line is one: some statements that evaluate, and some that print.
func (g *lineMaker) line(hostile bool) string {
	var all []string
	for range 1 + g.IntN(3) {
		g.n++
		v, text := "v"+strconv.Itoa(g.n%7), "q[$("+g.does(hostile)+")]"
		if !hostile && g.IntN(2) == 0 {
			text = strconv.Itoa(g.IntN(40))
		}
		set := strings.NewReplacer("V", v, "T", "'"+text+"'").Replace(g.pick("V=T", "read -r V <<<T", "for V in T; do :; done", "printf -v V %s T", "set -- T; V=$1", "declare V=T", "w=(1 T); V=${w[1]}", "mapfile -t w <<<T; V=${w[0]}", "V=${none:-T}", "local_() { V=$1; }; local_ T", "V=$(printf %s T)"))
		use := strings.ReplaceAll(g.pick("echo $((V))", "((V)); echo $?", "[[ $V -eq 0 ]]; echo $?", "echo ${b[V]}", "echo \"${HOME:0:V*0}\"", "let k=V; echo $k", "for ((i=V*0;i<2;i++)); do echo $i; done", "declare -i n=V; echo $n", "[[ -v b[V] ]]; echo $?", "printf -v \"b[$V]\" x; echo ${#b[@]}",
			"f() { local -i k=$1; echo $k; }; f \"$V\"", "b[V]=1; echo ${!b[@]}", "echo \"${V@Q}\"", "trap 'echo end $((V))' EXIT", "while ((V>100)); do break; done; echo $?", "OPTIND=$V; echo set", "exec {b[V]}<a.txt; echo $?", "echo 5 | { read x; echo $((x+V)); }", "case $((V)) in 0) echo zero;; *) echo more;; esac",
			"unset \"b[$V]\"; echo $?", "test -v \"b[$V]\"; echo $?", "bash -c 'echo $(($1))' z \"$V\"", "echo \"$V\" | xargs -d '\\n' bash -c 'echo $(($1))' z", "eval 'echo $((V))'", "diff <(echo $((V))) <(echo 1); echo $?", "[ \"$V\" = 1 ] || echo $((V+1))", "echo $[V]", "RANDOM=$V; echo set", "SECONDS=$V; echo set"), "V", v)
		all = append(all, set, use)
		if g.IntN(3) == 0 {
			all = append(all, g.pick("ls", "sort b.txt", "grep -n a a.txt", "cat sub/*.go", "find . -name '*.txt' | sort", "wc -l a.txt b.txt", "head -c 3 a.txt; echo", "echo ~/x", "sed -n 1p a.txt", "awk '{print $1}' b.txt", "echo {1..3}", "printf '%s\\n' *.txt"))
		}
	}
	return strings.Join(all, g.pick("; ", "\n", "; "))
}

// readings is how many random lines are run; make full runs 20,000.
const readings = "BELAY_READINGS"

// TestReadOnlyHoldsRandomLines runs random lines of bash that are judged to only read,
// as the gate decides of them and in the boundary that it gives, and compares the world
// before and after each. Those that do only read print what they print outside.
// Guarantee: G96.
func TestReadOnlyHoldsRandomLines(t *testing.T) {
	confined(t)
	needs.Program(t, "bash")
	count := sample.Of(200)
	if n, err := strconv.Atoi(os.Getenv(readings)); err == nil {
		count = n
	}
	r := newReader(t)
	r.env = []string{"VICTIM=" + strconv.Itoa(r.victim.Process.Pid), "PORT=" + r.port, "SOCKET=" + r.socket, "CACHE=" + r.o.Cache}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("BELAY_SHELLSEED"), 10, 64); err == nil {
		seed = n
	}
	g := &lineMaker{Rand: rand.New(rand.NewPCG(seed, 7))}
	spec := belay.ToolSpec{Name: "exec", Destructive: true, Access: belay.Write, Capabilities: []string{"process"}, Command: &belay.CommandArgs{Line: "command"}}
	place := policy.Place{Workspace: r.o.Workspace, Home: r.home, Dialect: "bash"}.Within("L3", "")
	ran, asked, reads, same := 0, 0, 0, 0
	before := r.world()
	for i := range count {
		hostile := i%2 == 0
		line := g.line(hostile)
		args, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		v := policy.Evaluate(policy.Builtin(), &policy.Request{Tool: spec, Args: args, Commands: policy.CommandsOf(spec, args, place), Mode: belay.ModeDefault, Workspace: r.o.Workspace, Dialect: "bash", Level: "L3", Confine: true})
		if v.Decision != policy.Allow {
			asked++
			t.Logf("%q asks: %s", line, v.Reason)
			continue
		}
		if !v.Bound.Is.Reads() {
			t.Fatalf("%q runs in %+v", line, v.Bound)
		}
		ran++
		got := r.run("/usr/bin/timeout", "20", "/bin/bash", "-c", line)
		if after := r.world(); after != before {
			t.Fatalf("%q: the world was\n%sand is\n%s(%s)", line, before, after, got.out)
		}
		if !hostile {
			reads++
			cmd := r.command("/usr/bin/timeout", "20", "/bin/bash", "-c", line)
			out, _ := cmd.CombinedOutput()
			if string(out) == got.out {
				same++
			} else {
				t.Logf("%q prints\n%s, outside\n%s", line, got.out, out)
			}
			before = r.world() // reading a pipe or a clock outside may show
		}
	}
	t.Logf("%d lines, seed %d: %d ran, %d asked; 0 changes, 0 connections; %d of %d that only read print the same as outside", count, seed, ran, asked, same, reads)
	if ran*10 < count*8 || same*20 < reads*19 {
		t.Errorf("too few of them say anything")
	}
}
