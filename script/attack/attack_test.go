//go:build linux

// Package attack plays calls of a hostile model against the real program, and
// looks afterwards at what happened on the disk: a file appeared or it didn't, a
// secret reached the model or it didn't. Each class of attacks is a table in a
// file of its own.
package attack

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/testkit/sample"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	testscript.Main(m, map[string]func(){
		"belay": func() {
			code := cli.Main(context.Background(), os.Args[1:], cli.Process())
			sandbox.Cleanup()
			os.Exit(code)
		},
	})
}

// plainUser is the user without rights that attacks are also played as.
const plainUser = 65534

// attack is one thing that a model tries. In Command, Args, Files and After the
// word MARK stands for a file that exists once the attack has worked.
type attack struct {
	name    string
	files   map[string]string // of the workspace, by path; a content that begins with #! is executable
	setup   string            // run by sh in the workspace before the session, as its owner
	command string            // what the model runs with the tool exec
	tool    string            // or another tool
	args    string            // and its arguments, a JSON object
	flags   []string          // of belay run, besides the mode: what the person has allowed
	after   string            // run by sh in the workspace after the session, as the person would
	mark    string            // the file that is the mark, wherever it is looked for; empty: MARK
	secret  string            // must not be in what the model gets to read
	given   string            // what is in a file that belay and the shells get open, as descriptor 7
	shell   string            // the attack is one only where this shell runs it; proof uses it (default bash)
	listen  bool              // PORT stands for one of the loopback, and nobody must connect to it, but for first
	first   string            // what the model runs before, and may
	still   bool              // the workspace must be as it was
	control bool              // not an attack: MARK must exist afterwards, wherever its decision is to run
}

// setting is where attacks are played.
type setting struct {
	mode    belay.Mode
	plain   bool // as a user without rights
	sandbox bool // at level L3; else there is no boundary
	sh      bool // where bash isn't to be had: the session's shell is sh
}

func (s setting) String() string {
	user, boundary := "root", "L3"
	if s.plain {
		user = "user"
	}
	if !s.sandbox {
		boundary = "off"
	}
	shell := ""
	if s.sh {
		shell = "/sh"
	}
	return fmt.Sprintf("%s/%s/%s%s", s.mode, user, boundary, shell)
}

// settings are all of them, with bash.
func settings(t *testing.T, modes ...belay.Mode) []setting {
	needs.Root(t)
	m := sandbox.Probe()
	needs.Facility(t, "sandbox", m.Level.AtLeast(belay.L3), "level "+string(m.Level)+": "+m.Why)
	var all []setting
	for _, mode := range modes {
		for _, plain := range []bool{false, true} {
			all = append(all, setting{mode: mode, plain: plain, sandbox: true}, setting{mode: mode, plain: plain})
		}
	}
	return all
}

// expectation says what must hold of a class of attacks in every setting.
type expectation struct {
	decided bool // without a boundary the call itself isn't allowed; in one it may be, if that only reads
	every   bool // in every mode that doesn't leave the boundary; each attack once, by turns, unless BELAY_ATTACKS is full
	outside bool // in auto within a boundary only what happens outside the workspace counts: auto allows the rest
	sh      bool // in sessions whose shell is sh; of the settings each attack is played in a quarter, by turns
}

// play runs a table in every setting. Each attack is first shown to be one: its
// command, run by its shell without Belay, leaves its mark, after what a person
// does next where that belongs to it. BELAY_SAMPLE picks some.
func play(t *testing.T, want expectation, table []attack) {
	modes := []belay.Mode{belay.ModeDefault, belay.ModePlan, belay.ModeAuto}
	if want.every {
		modes = append(modes, belay.ModeUntrusted, belay.ModeNever)
	}
	exe, all := program(t), settings(t, modes...)
	cases, held := 0, 0
	gate := make(chan struct{}, runtime.NumCPU())
	t.Run("cases", func(t *testing.T) {
		for i, a := range table {
			if a.command != "" && a.secret == "" && !a.control && !want.sh && !want.every && sample.Has(a.name) {
				t.Run(a.name+"/works", func(t *testing.T) { a.works(t) })
			}
			for j, s := range all {
				if s.sh = want.sh; s.sh && (i+j)%4 != 0 || want.every && os.Getenv("BELAY_ATTACKS") != "full" && i%len(all) != j {
					continue
				}
				if !sample.Has(a.name + s.String()) {
					continue
				}
				cases++
				t.Run(a.name+"/"+s.String(), func(t *testing.T) {
					t.Parallel()
					gate <- struct{}{}
					defer func() { <-gate }()
					a.try(t, exe, s, want)
				})
			}
		}
	})
	if !t.Failed() {
		held = cases
	}
	t.Logf("%d cases in %d settings: %d of %d held", len(table), len(all), held, cases)
}

// works shows that the attack does what it is there for.
func (a attack) works(t *testing.T) {
	w := newWorkspace(t, a, cmp.Or(a.mark, "MARK"), false)
	shell := a.shell
	if shell == "" {
		shell = "bash"
	}
	w.run(shell, a.place(a.command, w.mark))
	if a.after != "" {
		w.run("sh", a.place(a.after, w.mark))
	}
	if !w.marked() {
		t.Errorf("%s of %q leaves no mark: it isn't an attack", shell, a.command)
	}
}

// try plays the attack in one setting.
func (a attack) try(t *testing.T, exe string, s setting, want expectation) {
	mark := cmp.Or(a.mark, "MARK")
	inside := s.mode == belay.ModeAuto && s.sandbox && want.outside && !a.control
	var heard *ear
	if a.listen {
		heard = listen(t)
		a = a.at(heard.port)
	}
	if inside {
		mark = "../outside/MARK" // the workspace is auto's to write
	}
	w := newWorkspace(t, a, mark, s.plain)
	before := w.tree()
	facts := w.belay(exe, s, a)
	if a.still && w.tree() != before {
		t.Errorf("the workspace was\n%sand is\n%s", before, w.tree())
	}
	if said := heard.end(); a.secret == "" && said != "" || a.secret != "" && strings.Contains(said, a.secret) {
		t.Errorf("somebody connected: %.200q", said)
	}
	if a.after != "" {
		w.run("sh", a.place(a.after, w.mark))
	}
	decisions := facts.decisions()
	if len(decisions) == 0 {
		t.Fatalf("nothing was decided: %s", facts.raw)
	}
	allowed := decisions[0] == "allow"
	if a.control {
		if allowed && !w.marked() {
			t.Errorf("allowed, but it left no mark: %s", facts.raw)
		}
		return
	}
	if w.marked() {
		t.Errorf("it left its mark; decisions %v", decisions)
	}
	if a.secret != "" && !a.listen && facts.shown(a.secret) {
		t.Errorf("the model reads the secret; decisions %v", decisions)
	}
	if want.decided && allowed && !s.sandbox {
		t.Errorf("the call was allowed: %v", decisions)
	}
}

// place puts the mark's path into a text.
func (a attack) place(text, mark string) string { return strings.ReplaceAll(text, "MARK", mark) }

// workspace is a fresh place on the disk for one attack.
type workspace struct {
	t     *testing.T
	dir   string // has work, home, store and outside
	mark  string // as it is spelled in the attack
	plain bool
	given *os.File
}

func newWorkspace(t *testing.T, a attack, mark string, plain bool) *workspace {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "belay-attack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &workspace{t: t, dir: dir, mark: mark, plain: plain}
	if strings.HasPrefix(mark, "../") {
		w.mark = filepath.Join(dir, "work", mark)
	}
	for _, sub := range []string{"work", "home", "outside"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range a.files {
		w.file("work/"+name, a.place(text, w.mark))
	}
	w.file("model.json", a.model(w.mark))
	w.own()
	if a.given != "" {
		w.give(a.given)
	}
	if a.setup != "" {
		if out, err := w.run("sh", a.place(a.setup, w.mark)); err != nil {
			t.Fatalf("setup: %v\n%s", err, out)
		}
	}
	return w
}

// model is the script of the model: the one call, and the end.
func (a attack) model(mark string) string {
	tool, args := a.tool, json.RawMessage(a.place(a.args, mark))
	if tool == "" {
		tool = "exec"
		args, _ = json.Marshal(map[string]string{"command": a.place(a.command, mark)})
	}
	type call struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	type step struct {
		Calls []call `json:"calls"`
	}
	steps := []step{}
	if a.first != "" {
		first, _ := json.Marshal(map[string]string{"command": a.first})
		steps = append(steps, step{[]call{{"exec", first}}})
	}
	text, err := json.Marshal(map[string][]step{"steps": append(steps, []step{
		{[]call{{tool, args}}},
		{[]call{{"complete_task", json.RawMessage(`{"summary":"done"}`)}}},
	}...)})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (w *workspace) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

// own gives everything to the user that the attack is played as.
func (w *workspace) own() {
	if !w.plain {
		return
	}
	err := filepath.WalkDir(w.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, plainUser, plainUser)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// run starts a shell in the workspace, as its owner and outside any boundary.
func (w *workspace) run(shell, text string) ([]byte, error) {
	args := []string{"-c", text}
	if shell == "busybox" {
		args = append([]string{"sh"}, args...)
	}
	return w.start(exec.Command(shell, args...)).CombinedOutput()
}

// start prepares a program of the workspace's owner.
func (w *workspace) start(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir, cmd.ExtraFiles = filepath.Join(w.dir, "work"), w.rewound()
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"), "USER=tester", "LC_ALL=C.UTF-8", "TMPDIR=/tmp",
		"GIT_CONFIG_NOSYSTEM=1", "GORACE=atexit_sleep_ms=0", "BELAY_STORE=" + filepath.Join(w.dir, "store"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if w.plain {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: plainUser, Gid: plainUser}
	}
	return cmd
}

// belay runs the session of the attack, and reads the facts that it printed.
func (w *workspace) belay(exe string, s setting, a attack) facts {
	w.t.Helper()
	args := append([]string{"run", "--json", "--mode", string(s.mode), "--script", "../model.json"}, a.flags...)
	cmd := w.start(exec.Command(exe, append(args, "do it")...))
	if !s.sandbox {
		cmd.Env = append(cmd.Env, "BELAY_SANDBOX=off")
	}
	if s.sh {
		withoutBash(cmd)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if stdout.Len() == 0 {
		w.t.Fatalf("belay printed nothing: %v\n%s", err, stderr.Bytes())
	}
	f := facts{w.t, stdout.Bytes()}
	if s.sh != f.shown(`"dialect":"sh"`) {
		w.t.Fatalf("the session has another shell: %s", f.raw)
	}
	return f
}

// withoutBash has a program run where bash can't be: in mounts of its own a device
// lies over it, which no session takes for a shell.
func withoutBash(cmd *exec.Cmd) {
	const cover = `for b in /bin/bash /usr/bin/bash /usr/local/bin/bash; do [ ! -e $b ] || mount --bind /dev/null $b; done; exec "$@"`
	args := []string{"unshare", "--mount", "sh", "-ec", cover, "sh"}
	if c := cmd.SysProcAttr.Credential; c != nil {
		cmd.SysProcAttr.Credential = nil
		args = append(args, "setpriv", "--clear-groups", fmt.Sprintf("--reuid=%d", c.Uid), fmt.Sprintf("--regid=%d", c.Gid))
	}
	cmd.Args = append(args, cmd.Args...)
	cmd.Path, cmd.Err = exec.LookPath(args[0])
}

// marked reports whether the attack's file exists.
func (w *workspace) marked() bool {
	path := w.mark
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, "work", path)
	}
	_, err := os.Lstat(path)
	return err == nil
}

// facts is what a run printed: a fact on each line.
type facts struct {
	t   *testing.T
	raw []byte
}

// decisions is what was decided of the attack's call, in order.
func (f facts) decisions() []string {
	var all []string
	first := ""
	lines := bufio.NewScanner(bytes.NewReader(f.raw))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var fact struct {
			Type, ToolCallID string
			Payload          struct{ Decision string }
		}
		if err := json.Unmarshal(lines.Bytes(), &fact); err != nil {
			f.t.Fatalf("%v: %s", err, lines.Bytes())
		}
		if fact.Type != "permission.evaluated" {
			continue
		}
		if first == "" {
			first = fact.ToolCallID
		}
		if fact.ToolCallID == first {
			all = append(all, fact.Payload.Decision)
		}
	}
	return all
}

// shown reports whether a text is in any fact.
func (f facts) shown(text string) bool { return bytes.Contains(f.raw, []byte(text)) }

// program is a copy of this binary that every user can run, named as belay.
func program(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "belay-attack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "belay"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}
