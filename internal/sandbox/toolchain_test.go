//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// toolchain is a line that needs a program.
type toolchain struct{ name, program, line string }

// toolchains are lines that work inside a writable workspace.
var toolchains = []toolchain{
	{"git", "git", `git init -q sub && cd sub && echo x > f && git add f && git commit -qm one && git checkout -qb b && git log --oneline | grep -q one`},
	{"make", "make", `printf 'all: out\nout: in\n\tcp in out\n' > Makefile && echo x > in && make -s -j2 && test -s out`},
	{"python3", "python3", `python3 -c 'import json, subprocess, tempfile, sqlite3, threading, multiprocessing as m
if __name__ == "__main__":
    assert subprocess.check_output(["echo", "x"]) == b"x\n"
    with tempfile.NamedTemporaryFile() as f: f.write(b"x")
    assert m.get_context("fork").Pool(2).map(abs, [-1, -2]) == [1, 2]'`},
	{"node", "node", `node -e 'const fs = require("fs"), http = require("http"), os = require("os"); os.networkInterfaces(); fs.writeFileSync("n", "x");
const s = http.createServer((q, r) => r.end("ok")).listen(0, "127.0.0.1", () => http.get({port: s.address().port}, r => r.on("data", d => { s.close(); process.exit(String(d) === "ok" ? 0 : 1) })))'`},
	{"sqlite3", "sqlite3", `sqlite3 db 'pragma journal_mode=wal; create table t(x); insert into t values(1);' && test "$(sqlite3 db 'select x from t')" = 1`},
}

// goModule is a small module whose test listens on the loopback.
var goModule = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.24\n",
	"m.go":   "package m\n\nimport \"strings\"\n\nfunc Up(s string) string { return strings.ToUpper(s) }\n",
	"m_test.go": `package m

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { c, _ := l.Accept(); io.WriteString(c, Up("ok")); c.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(c)
	if string(b) != "OK" {
		t.Fatalf("%q", b)
	}
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteFile(filepath.Join("f"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}
`,
}

// Guarantee: T12.
func TestToolchainsWorkInside(t *testing.T) {
	confined(t)
	s := newSpace(t)
	s.b.Limits = belay.DefaultProcessLimits
	s.env = []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	s.o.Home = home(s)
	for _, c := range toolchains {
		t.Run(c.name, func(t *testing.T) {
			needs.Program(t, c.program)
			if r := s.sh(c.line); r.end.Code != 0 || r.applied.Level != "L3" {
				t.Errorf("exit %d: %s", r.end.Code, r.out)
			}
		})
	}
}

// home is where the tool chains of who runs the tests are.
func home(s *space) string {
	if h := os.Getenv("HOME"); h != "" && os.Getenv(asUser) == "" {
		s.env = append(s.env, "HOME="+h)
		return h
	}
	return s.home
}

// A module is built and tested inside. The build cache of who runs the tests is
// lent, because making the standard library anew takes longer than all else.
// Guarantee: T12.
func TestGoWorksInside(t *testing.T) {
	confined(t)
	needs.Program(t, "go")
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := newSpace(t)
	s.b.Limits = belay.DefaultProcessLimits
	s.o.Home = home(s)
	s.b.Write = []string{strings.TrimSpace(string(cache))}
	s.env = append(s.env, "GOCACHE="+s.b.Write[0])
	for name, content := range goModule {
		s.file(name, content)
	}
	if r := s.sh(`go build ./... && go test -count=1 ./...`); r.end.Code != 0 || r.applied.Level != "L3" {
		t.Fatalf("exit %d: %s", r.end.Code, r.out)
	}
}

func TestCacheLastsFromOneProgramToTheNext(t *testing.T) {
	confined(t)
	s := newSpace(t)
	s.o.Cache = filepath.Join(t.TempDir(), "cache")
	if r := s.sh(`mkdir ~/.cache/tool && echo x > ~/.cache/tool/f && echo y > ~/other`); r.end.Code != 0 {
		t.Fatalf("exit %d: %s", r.end.Code, r.out)
	}
	if r := s.sh(`cat ~/.cache/tool/f && ! cat ~/other`); r.end.Code != 0 {
		t.Errorf("exit %d: %s", r.end.Code, r.out)
	}
	if _, err := os.Stat(filepath.Join(s.home, ".cache")); err == nil {
		t.Error("the person's own cache was written")
	}
}
