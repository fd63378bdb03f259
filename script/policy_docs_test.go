package script

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/cli/term"
)

// docsRun is a folder in which the examples of a document are typed.
type docsRun struct {
	t   *testing.T
	dir string
	env []string
}

func newDocsRun(t *testing.T) *docsRun {
	dir := t.TempDir()
	r := &docsRun{t: t, dir: filepath.Join(dir, "project"), env: []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "BELAY_STORE=" + filepath.Join(dir, "store"), "USER=tester", "PATH=" + os.Getenv("PATH")}}
	if err := os.MkdirAll(filepath.Join(r.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write(".git/HEAD", "ref: refs/heads/main\n")
	return r
}

func (r *docsRun) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// belay runs the program and returns what it printed, and its exit code.
func (r *docsRun) belay(args ...string) (string, int) {
	var out, errs strings.Builder
	exit := cli.Main(context.Background(), args, cli.Sys{Env: term.Env{Out: &out, Err: &errs, Environ: r.env}, Dir: r.dir})
	return out.String() + errs.String(), exit
}

// follow plays the blocks of a section: files are written, commands typed, and
// what is shown must be printed, line by line in this order; lines between may
// be left out.
func (r *docsRun) follow(section string) (commands int) {
	r.t.Helper()
	blocks := strings.Split(section, "\n```")
	for i := 1; i < len(blocks); i += 2 {
		head, body, _ := strings.Cut(blocks[i], "\n")
		kind, file, named := strings.Cut(head, " file=")
		switch {
		case named && kind == "yaml":
			r.write(file, body)
		case kind == "console":
			commands += r.console(body)
		default:
			r.t.Errorf("a block is neither a file nor typed: %q", head)
		}
	}
	return commands
}

func (r *docsRun) console(body string) (commands int) {
	r.t.Helper()
	output := ""
	for _, l := range strings.Split(strings.TrimRight(body, "\n"), "\n") {
		if typed, ok := strings.CutPrefix(l, "$ belay "); ok {
			commands++
			output, _ = r.belay(words(typed)...)
			output = strings.ReplaceAll(output, r.dir+"/", "")
			continue
		}
		want := strings.TrimSpace(l)
		i := strings.Index(output, want)
		if i < 0 {
			r.t.Errorf("not printed, or not in this place: %s\nleft is:\n%s", want, output)
			continue
		}
		output = output[i+len(want):]
	}
	return commands
}

// words splits a line as a shell does that knows single quotes only.
func words(line string) (out []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

// recordedFirst is what an agent did before the reader begins.
const recordedFirst = `steps:
  - calls: [{tool: exec, args: {command: npm test}}]
  - calls: [{tool: exec, args: {command: git log}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`

// A reader of docs/policy.md can type what stands there, from the first question
// to the rolled out rule, and sees what stands there.
func TestTheExamplesOfTheRulesDocumentWork(t *testing.T) {
	doc, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "## Write, test, roll out a rule\n")
	if !found {
		t.Fatal("the section is not where it was")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	r := newDocsRun(t)
	r.write("script.yaml", recordedFirst)
	if out, exit := r.belay("run", "--script", "script.yaml", "try it"); exit != 0 {
		t.Fatalf("exit code %d: %s", exit, out)
	}
	if n := r.follow(section); n < 3 {
		t.Errorf("%d commands are shown", n)
	}
}
