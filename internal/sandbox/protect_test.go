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
	s.file(".git/hooks/update.sample", "x\n")
	s.file("deep/er/.cursor/rules", "x\n")
	s.file("plain/file", "x\n")
	s.file("deep/.github/workflows/ci.yml", "x\n")
	s.file("deep/er/.npmrc", "x\n")
	s.env = append(s.env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
}

// tries are ways to change a protected name that is there. Each must fail.
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
	{"clone onto", `rm -rf .vscode; git clone -q . .vscode`},
	{"hook", `echo x > .git/hooks/pre-commit`},
	{"hook by copy", `cp /bin/true .git/hooks/post-checkout`},
	{"hooks replaced", `rm -rf .git/hooks; mkdir .git/hooks && echo x > .git/hooks/pre-commit`},
	{"deep workflows", `echo x > deep/.github/workflows/ci.yml`},
	{"deep settings of a package manager", `echo x > deep/er/.npmrc`},
}

// Guarantee: T52.
func TestProtectedNamesAreHeld(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	s := newSpace(t)
	repository(t, s)
	evilBranch(t, s)
	before := guarded(t, s)
	for _, c := range tries {
		r := s.sh(c.line)
		t.Logf("%s: exit %d: %.200s", c.name, r.end.Code, r.out)
		if r.end.Code == 0 && !strings.HasPrefix(c.name, "git ") { // git may go on without the file
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
git checkout -q -b evil; echo "be evil" >CLAUDE.md; git add -A; git commit -qm evil; git checkout -q main`)
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
		`cat CLAUDE.md .git/config > /dev/null && ls .vscode`,
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

// TestAProgramSeesWhatIsThere: while programs run, and after the runtime was killed, a
// workspace has the names that it had, inside the boundary and outside.
// Guarantee: T52.
func TestAProgramSeesWhatIsThere(t *testing.T) {
	confined(t)
	s := newSpace(t)
	s.file("README.md", "x\n")
	s.file(".idea/w.xml", "x\n")
	before := listing(t, s.o.Workspace)
	outside := func() string {
		entries, err := os.ReadDir(s.o.Workspace)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, "\n") + "\n"
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
	if r := s.sh("LC_ALL=C ls -A; cat *.md >/dev/null; test ! -e .envrc"); r.end.Code != 0 || r.out != outside() || r.out != ".idea\nREADME.md\n" {
		t.Errorf("inside there is %q (exit %d), outside %q", r.out, r.end.Code, outside())
	}
	in.Close()
	cmd.Wait()
	h.Close()
	f := tether(t, s)
	killedRuntime(t, s, "ready", "BELAY_TEST_RELEASE=1")
	cut(t, f)
	for _, name := range []string{"ran", "tether"} { // the program's, and the test's
		os.Remove(filepath.Join(s.o.Workspace, name))
	}
	if after := listing(t, s.o.Workspace); !slices.Equal(after, before) {
		t.Errorf("a killed runtime left %q more and %q less", minus(after, before), minus(before, after))
	}
}

// TestStandInsOfEarlierVersionsAreCleared: they had empty folders stand in the place of
// missing names, which stayed after a kill.
func TestStandInsOfEarlierVersionsAreCleared(t *testing.T) {
	confined(t)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	killed, living := newSpace(t), newSpace(t)
	locks := filepath.Join(cache, "belay", "sandbox-locks")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*space{"killed": killed, "living": living} {
		s.file(".idea/w.xml", "x\n")
		for _, n := range []string{".git", ".git/hooks", "AGENTS.md", ".envrc"} {
			if n == ".git/hooks" {
				os.Chmod(filepath.Join(s.o.Workspace, ".git"), 0o755)
			}
			if err := os.Mkdir(filepath.Join(s.o.Workspace, n), 0o555); err != nil {
				t.Fatal(err)
			}
		}
		os.Chmod(filepath.Join(s.o.Workspace, ".git"), 0o555)
		if err := os.WriteFile(filepath.Join(locks, name), []byte(s.o.Workspace), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(filepath.Join(locks, "living"), os.O_RDWR, 0)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sandbox.Clear()
	if got := listing(t, killed.o.Workspace); len(got) != 3 {
		t.Errorf("the workspace has %q", got)
	}
	if got := listing(t, living.o.Workspace); len(got) != 7 {
		t.Errorf("a living process needs them, and there is %q", got)
	}
}
