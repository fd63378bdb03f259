package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
)

// ground is a workspace, a folder of programs on PATH, and an environment.
type ground struct {
	*bench
	ws, bin string
	env     []string
}

// onGround is a session that wants to run the program "tell" of a folder, and
// notes what ran in a file.
func onGround(t *testing.T, script string) *ground {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{ws: filepath.Join(root, "ws"), bin: filepath.Join(root, "bin")}
	for _, d := range []string{g.ws, g.bin, g.ws + "/sub", root + "/late"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g.env = []string{"PATH=" + root + "/late:" + g.bin + ":/usr/bin:/bin", "LANG=C", "TERM=xterm"}
	g.bench = newBench(t, script, waits, exec.Exec(exec.Config{Environ: g.env}))
	g.changeRules(func(r *thread.Rules) { r.Workspace = g.ws })
	g.dropGrants()
	g.rewire(func(c *config) { c.ArgsKey = []byte("the key of this store") })
	g.program(g.bin, "first")
	return g
}

func (g *ground) program(dir, says string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "tell"), []byte("#!/bin/sh\necho "+says+" >>"+g.ws+"/../told\n"), 0o700); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) told() string {
	b, _ := os.ReadFile(g.ws + "/../told")
	return strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", " ")
}

// otherwise drives the session with other variables, as a process that continues
// with it may have them.
func (g *ground) otherwise(env ...string) {
	g.t.Helper()
	set, err := tool.NewSet(append(tool.TurnTools(), exec.Exec(exec.Config{Environ: append(slices.Clone(g.env), env...)}))...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.rewire(func(c *config) { c.Tools = set })
}

const telling = "steps:\n  - calls: [{tool: exec, args: {argv: [tell], dir: sub}}]\n"

// What a person allowed isn't run once it would be another call, and they are
// asked about that one, with the reason.
// Guarantee: G62.
func TestApprovalInvalidatedByChangedContext(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		change func(g *ground)
		code   string
		ran    string // after the second yes
	}{
		"another content of the program":          {telling, func(g *ground) { g.program(g.bin, "second") }, thread.CodeProgramChanged, "second"},
		"another program earlier on PATH":         {telling, func(g *ground) { g.program(filepath.Dir(g.bin)+"/late", "late") }, thread.CodeProgramChanged, "late"},
		"a program that a line names":             {"steps:\n  - calls: [{tool: exec, args: {command: 'true && tell'}}]\n", func(g *ground) { g.program(g.bin, "second") }, thread.CodeProgramChanged, "second"},
		"a program of the workspace, by its path": {"steps:\n  - calls: [{tool: exec, args: {argv: [./tell]}}]\n", func(g *ground) { g.program(g.ws, "second") }, thread.CodeProgramChanged, "second"},
		"the folder is a link": {telling, func(g *ground) {
			g.must(os.Rename(g.ws+"/sub", g.ws+"/old"), os.Symlink("old", g.ws+"/sub"))
		}, "PATH_MOVED", ""},
		"the workspace is a link": {telling, func(g *ground) {
			g.must(os.Rename(g.ws, g.ws+"2"), os.Symlink(g.ws+"2", g.ws))
			g.otherwise()
		}, thread.CodeFolderChanged, "first"},
		"the folder is another one": {telling, func(g *ground) {
			g.must(os.Rename(g.ws+"/sub", g.ws+"/old"), os.Mkdir(g.ws+"/sub", 0o700))
		}, thread.CodeFolderChanged, "first"},
		"other variables": {telling, func(g *ground) { g.otherwise("LC_ALL=de_DE") }, thread.CodeEnvironmentChanged, "first"},
		"another value":   {telling, func(g *ground) { g.otherwise("LANG=de_DE") }, thread.CodeEnvironmentChanged, "first"},
	} {
		t.Run(name, func(t *testing.T) {
			g := onGround(t, c.script+done)
			if strings.Contains(c.script, "./tell") {
				g.program(g.ws, "first")
			}
			log := g.run()
			if err := g.brings(log, belay.RespondAction{Decision: "allow"}); err != nil {
				t.Fatal(err)
			}
			c.change(g)
			if err := g.e.Session(t.Context(), sess, nil); err != nil {
				t.Fatal(err)
			}
			log = g.log()
			failed := find[event.ToolFailed](log)
			if len(failed) != 1 || failed[0].Problem.Code != c.code || g.told() != "" {
				t.Fatalf("failed is %+v; it told %q", failed, g.told())
			}
			if c.ran == "" {
				return
			}
			asks := find[event.PermissionRequested](log)
			if len(asks) != 2 || asks[1].Again == nil || asks[1].Again.Code != c.code || asks[0].Stands.Same(asks[1].Stands) {
				t.Fatalf("asked is %+v", asks)
			}
			g.answer(log, belay.RespondAction{Decision: "allow"})
			if got := g.told(); got != c.ran {
				t.Errorf("it told %q", got)
			}
			if n := len(find[event.TurnCompleted](g.log())); n != 1 {
				t.Errorf("%d ends", n)
			}
		})
	}
}

func (g *ground) must(errs ...error) {
	g.t.Helper()
	for _, err := range errs {
		if err != nil {
			g.t.Fatal(err)
		}
	}
}

// What isn't part of the call doesn't ask again: the terminal's name, a program
// that isn't started, time that passes.
// Guarantee: G62.
func TestApprovalHoldsInUnchangedContext(t *testing.T) {
	g := onGround(t, telling+done)
	log := g.run()
	if err := g.brings(log, belay.RespondAction{Decision: "allow"}); err != nil {
		t.Fatal(err)
	}
	g.otherwise("TERM=dumb", "SECRET_OF_NOBODY=x")
	g.must(os.WriteFile(g.bin+"/other", nil, 0o700), os.WriteFile(g.ws+"/sub/file", nil, 0o600))
	if err := g.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	if g.told() != "first" {
		t.Errorf("it told %q, failed is %+v", g.told(), find[event.ToolFailed](g.log()))
	}
	if asks := find[event.PermissionRequested](g.log()); len(asks) != 1 || asks[0].Stands == nil || asks[0].Stands.Env == "" ||
		asks[0].Stands.Folder != g.ws+"/sub" || len(asks[0].Stands.Programs) == 0 || asks[0].Stands.Programs[0].Path != g.bin+"/tell" {
		t.Errorf("asked is %+v", asks)
	}
	for _, e := range g.log() {
		if raw, err := event.Encode(e.Data); err != nil || strings.Contains(string(raw), "de_DE") || strings.Contains(string(raw), "LANG") {
			t.Errorf("a variable is on record: %s %v", raw, err)
		}
	}
}

// A grant of exactly this call covers the call that was allowed. Another program
// under its name is asked about, and the grant isn't taken for it.
// Guarantee: G62.
func TestAGrantOfACallIsForItsPrograms(t *testing.T) {
	g := onGround(t, telling+strings.TrimPrefix(telling, "steps:\n")+strings.TrimPrefix(telling, "steps:\n")+done)
	log := g.run()
	g.answer(log, belay.RespondAction{Decision: "allow", Scope: "count", Count: 2})
	if asks := find[event.ActionRequired](g.log()); g.told() != "first first" || len(asks) != 2 {
		t.Fatalf("it told %q after %d asks", g.told(), len(asks))
	}

	g = onGround(t, "steps:\n  - calls: [{tool: exec, args: {argv: [tell], dir: sub}}]\n  - calls: [{tool: exec, args: {argv: [touch, mark]}}]\n"+strings.TrimPrefix(telling, "steps:\n")+done)
	log = g.run()
	g.answer(log, belay.RespondAction{Decision: "allow", Scope: "count", Count: 5})
	g.program(g.bin, "second") // while the second call waits
	g.answer(g.log(), belay.RespondAction{Decision: "allow"})
	log = g.log()
	asks := find[event.PermissionRequested](log)
	if g.told() != "first" || len(asks) != 3 || asks[2].Again == nil || asks[2].Again.Code != thread.CodeProgramChanged {
		t.Fatalf("it told %q, asked is %+v", g.told(), asks)
	}
	g.answer(log, belay.RespondAction{Decision: "allow"})
	if g.told() != "first second" {
		t.Errorf("it told %q", g.told())
	}
}
