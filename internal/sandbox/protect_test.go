//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// repository makes the workspace one, with a few protected names in it.
func repository(t *testing.T, s *space) {
	t.Helper()
	needs.Program(t, "git")
	git := exec.Command("git", "init", "-q", "--template=", s.o.Workspace)
	git.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home}
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.file(".vscode/settings.json", "{}")
	s.file("CLAUDE.md", "be kind\n")
	s.file("deep/er/.cursor/rules", "x\n")
	s.file("plain/file", "x\n")
	s.file("deep/.github/workflows/ci.yml", "x\n")
	s.file("deep/er/.npmrc", "x\n")
	s.env = append(s.env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
}

// tries are ways to change a protected name, there or not. Each must fail.
var tries = []struct{ name, line string }{
	{"write", `echo x > CLAUDE.md`},
	{"append", `echo x >> .git/config`},
	{"remove", `rm -f CLAUDE.md`},
	{"remove all", `rm -rf .vscode`},
	{"new below", `echo x > .vscode/tasks.json`},
	{"deep", `echo x > deep/er/.cursor/rules`},
	{"rename", `mv CLAUDE.md x`},
	{"rename onto", `echo x > y && mv -f y CLAUDE.md`},
	{"rename folder", `mv .vscode v`},
	{"rename parent", `mv .git g`},
	{"rename grandparent", `mv deep shallow`},
	{"exchange", `python3 -c "import ctypes, sys; open('y', 'w'); l = ctypes.CDLL(None); sys.exit(l.renameat2(-100, b'y', -100, b'CLAUDE.md', 2) != 0)"`},
	{"hard link", `ln CLAUDE.md h`},
	{"link onto", `ln -sf plain/file CLAUDE.md`},
	{"link to", `ln -s .git/config c && echo x >> c`},
	{"case folder", `mv .vscode .VSCODE`},
	{"through proc", `echo x > /proc/self/cwd/CLAUDE.md`},
	{"through a descriptor", `exec 5< CLAUDE.md && echo x > /proc/self/fd/5`},
	{"mode", `chmod 777 .git/config`},
	{"git config", `git config core.pager evil`},
	{"git checkout", `git checkout -q evil -- CLAUDE.md`},
	{"git switch", `git checkout -q evil`},
	{"git merge", `git merge -q evil`},
	{"git apply", `git diff HEAD evil -- CLAUDE.md | git apply`},
	{"git mv", `git mv CLAUDE.md d`},
	{"git rm", `git rm -qf CLAUDE.md`},
	{"git hooks path", `git config core.hooksPath plain`},
	{"git init again", `git init -q --template=plain . && test -e .git/hooks/file`},
	{"git worktree", `mkdir -p w && git worktree add -q --force AGENTS.md evil`},
	{"clone onto", `git clone -q . .claude`},
	{"hook", `echo x > .git/hooks/pre-commit`},
	{"hook by copy", `cp /bin/true .git/hooks/post-checkout`},
	{"hooks replaced", `rm -rf .git/hooks; mkdir .git/hooks && echo x > .git/hooks/pre-commit`},
	{"missing file", `echo x > AGENTS.md`},
	{"missing folder", `mkdir .belay`},
	{"missing, below", `mkdir -p .belay && echo x > .belay/belay.yaml`},
	{"missing, renamed", `mkdir b && mv -T b .belay`},
	{"missing, linked", `ln -sT plain .idea`},
	{"missing, removed first", `rmdir .idea && mkdir .idea`},
	{"missing, by mode", `chmod 755 .idea && echo x > .idea/w.xml`},
	{"missing settings of direnv", `echo x > .envrc`},
	{"missing start of a shell", `cp plain/file .bashrc`},
	{"missing settings of an editor", `echo x > .exrc`},
	{"missing module of Python", `python3 -c 'open("sitecustomize.py", "w").write("x")'`},
	{"missing work of a build server", `printf x > .gitlab-ci.yml`},
	{"deep workflows", `echo x > deep/.github/workflows/ci.yml`},
	{"deep settings of a package manager", `echo x > deep/er/.npmrc`},
	{"missing, by tar", `mkdir -p t/.claude && echo x > t/.claude/settings.json && tar -C t -cf - .claude | tar xf -`},
}

// Guarantee: T52.
func TestProtectedNamesAreHeld(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	s := newSpace(t)
	repository(t, s)
	evilBranch(t, s)
	s.sh("true") // from here on the stubs are there
	before := guarded(t, s)
	for _, c := range tries {
		r := s.sh(c.line)
		t.Logf("%s: exit %d: %.200s", c.name, r.end.Code, r.out)
		if r.end.Code == 0 {
			t.Errorf("%s: it was let: %s", c.name, r.out)
		}
		if l := layer(r.applied, "protected"); l.State != belay.LayerApplied {
			t.Fatalf("protected is %s", l)
		}
		for _, left := range []string{"y", "x", "h", "c", "b", "t", "v", "w"} {
			os.RemoveAll(filepath.Join(s.o.Workspace, left))
		}
		if after := guarded(t, s); !slices.Equal(before, after) {
			t.Errorf("%s: the workspace has %q more and %q less", c.name, minus(after, before), minus(before, after))
			before = after
		}
	}
}

// evilBranch commits what is there, and a branch that changes instructions.
func evilBranch(t *testing.T, s *space) {
	t.Helper()
	git := exec.Command("/bin/sh", "-ec", `git checkout -q -b main; git add -A; git commit -qm good
git checkout -q -b evil; echo "be evil" >CLAUDE.md; echo "be evil" >AGENTS.md; git add -A; git commit -qm evil; git checkout -q main`)
	git.Dir, git.Env = s.o.Workspace, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home}, s.env...)
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// guarded is the listing without what git may write.
func guarded(t *testing.T, s *space) []string {
	t.Helper()
	return slices.DeleteFunc(listing(t, s.o.Workspace), func(l string) bool {
		return strings.HasPrefix(l, "/.git/") && !strings.HasPrefix(l, "/.git/hooks") && !strings.HasPrefix(l, "/.git/config")
	})
}

func layer(a belay.Applied, name string) belay.Layer {
	if i := slices.IndexFunc(a.Layers, func(l belay.Layer) bool { return l.Name == name }); i >= 0 {
		return a.Layers[i]
	}
	return belay.Layer{}
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// listing is every file of a folder with its content.
func listing(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(p, dir) + " " + d.Type().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += " " + string(b)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Guarantee: T52.
func TestProtectedNamesLetTheRestBe(t *testing.T) {
	confined(t)
	s := newSpace(t)
	repository(t, s)
	for _, line := range []string{
		`git add -A && git commit -qm one && git log --oneline | grep -q one`,
		`git status --porcelain | grep . && exit 1; echo y >> plain/file && git commit -qam two && git checkout -q -b other && git reset -q --hard HEAD~1`,
		`git stash list && echo z > new && git add new && git stash -q && git stash pop -q && git diff --cached --stat | grep -q new`,
		`mv plain p2 && mv p2 plain && rm -r plain`,
		`cat CLAUDE.md .git/config > /dev/null && ls .vscode .belay`,
	} {
		if r := s.sh(line); r.end.Code != 0 {
			t.Errorf("%s: exit %d: %s", line, r.end.Code, r.out)
		}
	}
}

// Guarantee: T52.
func TestProtectedNamesAreNotEnforcedWithoutAView(t *testing.T) {
	confined(t)
	s := newSpace(t).at(belay.L2)
	r := s.sh("mkdir .belay")
	if l := layer(r.applied, "protected"); l.String() != "unavailable(without mounts)" || r.end.Code != 0 {
		t.Errorf("got %s and exit %d", l, r.end.Code)
	}
}

// Guarantee: T52.
func TestProtectedStubsAreGoneAfterTheLastProgram(t *testing.T) {
	confined(t)
	s := newSpace(t)
	if err := os.Mkdir(filepath.Join(s.o.Workspace, ".idea"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	h := s.start(cmd)
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	s.sh("true")
	if _, err := os.Stat(filepath.Join(s.o.Workspace, ".belay")); err != nil {
		t.Error("the stub of a program that runs is gone")
	}
	in.Close()
	cmd.Wait()
	h.Close()
	sandbox.Cleanup()
	if got := listing(t, s.o.Workspace); !slices.Equal(got, []string{" d---------", "/.idea d---------"}) {
		t.Errorf("the workspace has %q", got)
	}
}

// TestProtectedStubsOfAKilledRuntimeAreCleared: whoever comes next removes them,
// wherever it works, and none that a living runtime needs.
// Guarantee: T111.
func TestProtectedStubsOfAKilledRuntimeAreCleared(t *testing.T) {
	confined(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	killed, living := newSpace(t), newSpace(t)
	for _, s := range []*space{killed, living} {
		if err := os.Mkdir(filepath.Join(s.o.Workspace, ".idea"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f := tether(t, killed)
	killedRuntime(t, killed, "ready", "BELAY_TEST_RELEASE=1")
	cut(t, f)
	cmd := living.command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	h := living.start(cmd)
	if got := len(listing(t, killed.o.Workspace)); got < 20 {
		t.Fatalf("the killed runtime left %d names: nothing is to be cleared", got)
	}
	sandbox.Clear()
	if got := listing(t, killed.o.Workspace); !slices.Equal(got, []string{" d---------", "/.idea d---------", "/ran ---------- ran\n", "/tether p---------"}) {
		t.Errorf("the workspace has %q", got)
	}
	if _, err := os.Stat(filepath.Join(living.o.Workspace, ".belay")); err != nil {
		t.Error("a stub that somebody needs is gone")
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	cmd.Wait()
	h.Close()
	sandbox.Cleanup()
	if got := listing(t, living.o.Workspace); len(got) != 2 {
		t.Errorf("the other workspace has %q", got)
	}
}

// Guarantee: T111.
func TestProtectedStubsAreGoneWhateverTheMask(t *testing.T) {
	confined(t)
	defer syscall.Umask(syscall.Umask(0o077))
	s := newSpace(t)
	s.sh("true")
	sandbox.Cleanup()
	if got := listing(t, s.o.Workspace); len(got) != 1 {
		t.Errorf("the workspace has %q", got)
	}
}
