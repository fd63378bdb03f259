//go:build unix

package search_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay/internal/tool/search"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

type args = map[string]any

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// project is a workspace with a bit of everything.
func project(t *testing.T) *tooltest.Bench {
	t.Helper()
	b := tooltest.NewBench(t)
	for name, content := range map[string]string{
		"main.go":          "package main\n\nfunc main() {\n\trun()\n}\n\nfunc run() {}\n",
		"main_test.go":     "package main\n\nfunc TestRun() {}\n",
		"lib/lib.go":       "package lib\n\n// Run runs.\nfunc Run() {}\n",
		"lib/deep/x.c":     "int run;\r\nint Run;\r\n",
		".github/ci.yml":   "run: go test\n",
		".gitignore":       "dist/\n*.log\n",
		"dist/out.go":      "func run() {}\n",
		"app.log":          "run\n",
		".git/config":      "run\n",
		"pic.png":          "\x89PNG\x00run\n",
		"docs/we ird\n.md": "run\n",
	} {
		b.Put(name, content)
	}
	out := filepath.Join(filepath.Dir(b.Dir), "outside.txt")
	must(t, os.WriteFile(out, []byte("run outside\n"), 0o644))
	must(t, os.Symlink("../outside.txt", filepath.Join(b.Dir, "leads_out")))
	must(t, os.Symlink("main.go", filepath.Join(b.Dir, "linked.go")))
	must(t, syscall.Mkfifo(filepath.Join(b.Dir, "pipe"), 0o644))
	return b
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		name string
		args args
		want string
	}{
		{"by name, anywhere", args{"pattern": "*.go"}, "lib/lib.go|linked.go|main.go|main_test.go"},
		{"at the top", args{"pattern": "/*.go"}, "linked.go|main.go|main_test.go"},
		{"below", args{"pattern": "lib/**"}, "lib/deep/x.c|lib/lib.go"},
		{"alternatives", args{"pattern": "**/*.{c,yml}"}, "lib/deep/x.c"},
		{"from a folder", args{"pattern": "**/*.c", "path": "lib"}, "lib/deep/x.c"},
		{"tied to a folder", args{"pattern": "deep/*", "path": "./lib/"}, "lib/deep/x.c"},
		{"hidden", args{"pattern": "*.yml", "hidden": true}, ".github/ci.yml"},
		{"a pattern that says it is hidden", args{"pattern": ".github/*"}, ".github/ci.yml"},
		{"ignored", args{"pattern": "{dist/**,*.log}", "ignored": true}, "app.log|dist/out.go"},
		{"a name that would break the line", args{"pattern": "docs/*"}, `"docs/we ird\n.md"`},
		{"nothing", args{"pattern": "*.rs"}, "[no file matches; hidden and ignored files were not looked at]"},
		{"nothing in all", args{"pattern": "*.rs", "hidden": true, "ignored": true}, "[no file matches]"},
		{"a limit", args{"pattern": "*.go", "limit": 2}, "lib/lib.go|linked.go|[2 of 4 files shown; narrow the pattern or the path]"},
		{"a file", args{"pattern": "*.go", "path": "main.go"}, "main.go"},
		{"git's own folder never", args{"pattern": ".git/**", "hidden": true, "ignored": true}, "[no file matches]"},
	} {
		r, err := project(t).Run(t.Context(), search.Glob(), c.args)
		if got := strings.ReplaceAll(r.Text, "\n", "|"); err != nil || got != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

func TestGrep(t *testing.T) {
	for _, c := range []struct {
		name string
		args args
		want string
	}{
		{"lines by file", args{"pattern": `func \w+un\(`}, "lib/lib.go|4:func Run() {}||main.go|7:func run() {}||main_test.go|3:func TestRun() {}|[3 matches in 3 files]|[binary files, not searched: pic.png]"},
		{"plain text", args{"pattern": "Run()", "literal": true, "include": []string{"*.go"}}, "lib/lib.go|4:func Run() {}||main_test.go|3:func TestRun() {}|[2 matches in 2 files]"},
		{"any case", args{"pattern": "INT run", "ignore_case": true, "include": []string{"*.c"}}, "lib/deep/x.c|1:int run;|2:int Run;|[2 matches in 1 file]"},
		{"context", args{"pattern": "run", "path": "main.go", "before": 1, "after": 1}, "main.go|3-func main() {|4:\trun()|5-}|6-|7:func run() {}|[2 matches in 1 file]"},
		{"context with gaps", args{"pattern": "^package|run..$", "path": "main.go", "after": 1}, "main.go|1:package main|2-|--|4:\trun()|5-}|[2 matches in 1 file]"},
		{"names only", args{"pattern": "(?i)run", "mode": "files", "include": []string{"*.go", "*.c", "!*_test.go"}}, "lib/deep/x.c|lib/lib.go|main.go|[3 files]"},
		{"counts", args{"pattern": "run", "mode": "count", "include": []string{"*.{go,c}"}}, "lib/deep/x.c: 1|lib/lib.go: 1|main.go: 2|[4 matches in 3 files]"},
		{"hidden", args{"pattern": "go test", "hidden": true}, ".github/ci.yml|1:run: go test|[1 match in 1 file]|[binary files, not searched: pic.png]"},
		{"ignored", args{"pattern": "run", "ignored": true, "include": []string{"dist/**", "*.log"}}, "app.log|1:run||dist/out.go|1:func run() {}|[2 matches in 2 files]"},
		{"an ignored folder that is asked for", args{"pattern": "run", "path": "dist"}, "dist/out.go|1:func run() {}|[1 match in 1 file]"},
		{"a file that is asked for", args{"pattern": "run", "path": "app.log", "include": []string{"*.go"}}, "app.log|1:run|[1 match in 1 file]"},
		{"a limit", args{"pattern": "(?i)run", "limit": 3, "include": []string{"*.go", "*.c"}}, "lib/deep/x.c|1:int run;|2:int Run;||lib/lib.go|3:// Run runs.|[3 matches shown, and the search ended there; narrow the pattern, the path or include, or raise limit]"},
		{"a limit of names", args{"pattern": "run", "limit": 1, "mode": "files", "include": []string{"*.go", "*.c"}}, "lib/deep/x.c|[1 file shown, and the search ended there; narrow the pattern, the path or include, or raise limit]"},
		{"nothing", args{"pattern": "nowhere", "include": []string{"*.go"}}, "[no match in 3 files; hidden and ignored files were not looked at]"},
		{"binary", args{"pattern": "PNG", "path": "pic.png"}, "[no match in 1 file; hidden and ignored files were not looked at]|[binary files, not searched: pic.png]"},
		{"a strange name", args{"pattern": "run", "path": "docs"}, `"docs/we ird\n.md"|1:run|[1 match in 1 file]`},
		{"the end of a line with CR LF", args{"pattern": "run;$", "include": []string{"*.c"}}, "lib/deep/x.c|1:int run;|[1 match in 1 file]"},
	} {
		r, err := project(t).Run(t.Context(), search.Grep(), c.args)
		if got := strings.ReplaceAll(r.Text, "\n", "|"); err != nil || got != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

// Guarantee: T16.
func TestSearchesThatCanNotBe(t *testing.T) {
	glob, grep := search.Glob(), search.Grep()
	b := project(t)
	for _, c := range []struct {
		name, code, says string
		args             args
	}{
		{"glob", search.CodeBadGlob, "is empty", args{"pattern": ""}},
		{"glob", search.CodeBadGlob, "[ isn't closed", args{"pattern": "[a"}},
		{"glob", search.CodeBadGlob, "too many alternatives", args{"pattern": strings.Repeat("{a,b}", 10)}},
		{"glob", "BAD_ARGUMENTS", "limit is at most", args{"pattern": "*", "limit": 5001}},
		{"glob", "BAD_ARGUMENTS", "limit is at most", args{"pattern": "*", "limit": -1}},
		{"glob", "NO_SUCH_FILE", "none does not exist", args{"pattern": "*", "path": "none"}},
		{"glob", "OUTSIDE_WORKSPACE", "outside", args{"pattern": "*", "path": "../"}},
		{"glob", "OUTSIDE_WORKSPACE", "outside", args{"pattern": "*", "path": "/etc"}},
		{"grep", search.CodeBadPattern, "is empty", args{"pattern": ""}},
		{"grep", search.CodeBadPattern, "missing closing )", args{"pattern": "a(b"}},
		{"grep", search.CodeBadPattern, "invalid or unsupported Perl syntax", args{"pattern": "(?=a)"}},
		{"grep", search.CodeBadPattern, "line break", args{"pattern": `a\nb`}},
		{"grep", search.CodeBadPattern, "line break", args{"pattern": "a\nb", "literal": true}},
		{"grep", search.CodeBadGlob, "[ isn't closed", args{"pattern": "a", "include": []string{"!["}}},
		{"grep", "BAD_ARGUMENTS", `not "lines"`, args{"pattern": "a", "mode": "lines"}},
		{"grep", "BAD_ARGUMENTS", "limit is at most", args{"pattern": "a", "limit": 9999}},
		{"grep", "BAD_ARGUMENTS", "before and after are at most", args{"pattern": "a", "after": 21}},
		{"grep", "BAD_ARGUMENTS", "before and after are at most", args{"pattern": "a", "before": -1}},
		{"grep", "NO_SUCH_FILE", "none does not exist", args{"pattern": "a", "path": "none"}},
		{"grep", "OUTSIDE_WORKSPACE", "outside", args{"pattern": "a", "path": "leads_out"}},
		{"grep", "OUTSIDE_WORKSPACE", "outside", args{"pattern": "a", "path": "a/../.."}},
	} {
		tl := glob
		if c.name == "grep" {
			tl = grep
		}
		_, err := b.Run(t.Context(), tl, c.args)
		e := tooltest.Failure(err)
		if e == nil || e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s %v: got %v, want %s %q", c.name, c.args, err, c.code, c.says)
		}
	}
	if r, err := b.Run(t.Context(), grep, args{"pattern": "outside", "hidden": true, "ignored": true}); err != nil || !strings.HasPrefix(r.Text, "[no match") {
		t.Errorf("what lies outside is found: %q, %v", r.Text, err)
	}
}

// Guarantee: T16.
func TestAnswersAreBoundedAndAlwaysTheSame(t *testing.T) {
	b := tooltest.NewBench(t)
	for i := range 300 {
		b.Put(fmt.Sprintf("d%02d/f%03d", i%20, i), strings.Repeat("needle "+strings.Repeat("x", 500)+"\n", 40))
	}
	for _, c := range []args{
		{"pattern": "needle", "limit": 2000}, {"pattern": "needle", "limit": 50}, {"pattern": "x+", "limit": 2000, "before": 3, "after": 3},
		{"pattern": "needle", "mode": "files"}, {"pattern": "needle", "mode": "count", "limit": 2000},
	} {
		first := ""
		for range 3 {
			r, err := b.Run(t.Context(), search.Grep(), c)
			must(t, err)
			if len(r.Text) > 32<<10 {
				t.Fatalf("%v: %d bytes", c, len(r.Text))
			}
			if first == "" {
				first = r.Text
			}
			if r.Text != first {
				t.Fatalf("%v: another answer", c)
			}
		}
		if c["mode"] == nil && !strings.Contains(first, "the search ended there") {
			t.Errorf("%v: it doesn't say that it ended: %q", c, first[len(first)-100:])
		}
	}
	r, err := b.Run(t.Context(), search.Glob(), args{"pattern": "**", "limit": 100})
	if lines := strings.Split(r.Text, "\n"); err != nil || len(lines) != 101 || lines[100] != "[100 of 300 files shown; narrow the pattern or the path]" {
		t.Errorf("%v: %q", err, lines[len(lines)-1])
	}
}

// A search that is cut short, by its limit or from outside, leaves nothing behind.
func TestASearchEndsWithAllItStarted(t *testing.T) {
	b := tooltest.NewBench(t)
	for i := range 2000 {
		b.Put(fmt.Sprintf("d%03d/f%d", i%200, i), "needle\n")
	}
	before := runtime.NumGoroutine()
	for range 5 {
		must2(b.Run(t.Context(), search.Grep(), args{"pattern": "needle", "limit": 3}))
	}
	for i := 0; runtime.NumGoroutine() > before && i < 1_000_000; i++ {
		runtime.Gosched() // they have ended, but may not be gone
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines more", n-before)
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		open := 0
		for _, fd := range fds {
			if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, b.Dir+"/") {
				open++
			}
		}
		if open > 0 {
			t.Errorf("%d folders or files are still open", open)
		}
	}
}

func must2[T any](_ T, err error) error { return err }

// A search through folders shows nothing of files that usually hold secrets, however
// they are meant, and says so; one that is named is the gate's business.
// Guarantee: G72.
func TestASearchLeavesSecretsOut(t *testing.T) {
	b := tooltest.NewBench(t)
	secrets := []string{".env", ".env.local", "app/.env.production", "config/prod.env", "deploy/server.key", "deploy/ca.pem", "id_rsa", ".netrc", ".npmrc", ".pypirc", "secrets/db_password", "infra/terraform.tfstate", "credentials.json", ".docker/config.json", ".aws/credentials", "service-account.json", "x.kdbx"}
	for _, name := range secrets {
		b.Put(name, "KEY=hunter2\n")
	}
	for _, name := range []string{".env.example", "id_rsa.pub", "src/secrets/index.ts", "main.go"} {
		b.Put(name, "KEY=public\n")
	}
	for _, a := range []args{
		{"pattern": "KEY", "hidden": true, "ignored": true}, {"pattern": "KEY", "include": []string{".env*", "*.key", "**/*.pem"}}, {"pattern": "hunter", "mode": "count", "hidden": true}, {"pattern": "KEY", "mode": "files", "hidden": true, "limit": 2000},
		{"pattern": "KEY", "path": "deploy"}, {"pattern": "KEY", "path": "secrets"}, {"pattern": "KEY", "path": ".docker", "hidden": true}, {"pattern": "KEY", "include": []string{"**"}, "hidden": true, "before": 3},
	} {
		r, err := b.Run(t.Context(), search.Grep(), a)
		if err != nil || strings.Contains(r.Text, "hunter2") || !strings.Contains(r.Text, "not searched, because they usually hold secrets") {
			t.Errorf("%v: %v\n%s", a, err, r.Text)
		}
		for _, name := range secrets {
			if strings.Contains(r.Text, name+"\n1:") || strings.Contains(r.Text, name+": 1") {
				t.Errorf("%v: %s was searched", a, name)
			}
		}
	}
	if r, err := b.Run(t.Context(), search.Grep(), args{"pattern": "KEY", "hidden": true}); err != nil || strings.Count(r.Text, "KEY=public") != 4 {
		t.Errorf("%v: the rest is searched: %s", err, r.Text)
	}
	for _, name := range []string{".env", "deploy/server.key"} {
		if r, err := b.Run(t.Context(), search.Grep(), args{"pattern": "KEY", "path": name}); err != nil || !strings.Contains(r.Text, "hunter2") {
			t.Errorf("%s by its name: %v %s", name, err, r.Text)
		}
	}
}
