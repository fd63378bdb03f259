package cli

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
)

type demoCmd struct {
	Keep bool `help:"Keep the project and the store, and say where they are."`
}

// demoTime is how long the whole of it may take.
const demoTime = time.Minute

// show is one run of the demo: a project, a store beside it, and what was seen.
type show struct {
	env     *term.Env
	dir     string // holds everything
	project string
	store   string
	script  string

	session belay.SessionID
	lost    belay.CallID
	n       int // headings so far
}

// Run kills an agent in the middle of its work and lets another process go on.
func (c *demoCmd) Run(ctx context.Context, a *command.Program) (exit int, err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	e := &a.Env
	ctx, release := e.UntilSignal(ctx)
	defer release()
	dir, err := os.MkdirTemp("", "belay-demo-")
	if err != nil {
		return 0, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return 0, err
	}
	s := &show{env: e, dir: dir, project: filepath.Join(dir, "project"), store: filepath.Join(dir, "store"), script: filepath.Join(dir, "demo.yaml")}
	defer func() {
		if c.Keep {
			s.say("kept: %s; continue with: belay sessions list --all --store %s", dir, s.store)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	begun := e.Now()
	for _, act := range []func(context.Context) error{s.prepare, s.killed, s.resumed, s.explained, s.verified} {
		if err := act(ctx); err != nil {
			if ctx.Err() != nil {
				return belay.ExitCancelled, belay.Errorf(belay.CodeInternal, "the demo was stopped: %v", context.Cause(ctx)).WithHint("belay demo")
			}
			return 0, err
		}
	}
	s.heading("Done in %s", term.Millis(e.Now().Sub(begun).Milliseconds()))
	s.say("The model was a script, so that this needs no network and no key; everything else was real:")
	s.say("the processes, the kill, the files, the store. Your own script on your own directory:")
	s.say("  belay run --script FILE --allow exec \"what to do\"      (docs/scripted.md has the format)")
	s.say("A real model takes the place of --script: --provider openai-chat --model NAME (docs/providers.md).")
	return belay.ExitOK, nil
}

func (s *show) say(format string, args ...any) { fmt.Fprintf(s.env.Out, format+"\n", args...) }

func (s *show) heading(format string, args ...any) {
	s.n++
	s.say("\n%d. "+format, append([]any{s.n}, args...)...)
}

// broke is a demo in which something did not happen that should have.
func broke(format string, args ...any) error {
	return belay.Errorf(belay.CodeInternal, "the demo did not go as it should: "+format, args...).WithHint("belay doctor; belay demo --keep shows what is there")
}

// prepare makes the project and the script.
func (s *show) prepare(ctx context.Context) error {
	s.heading("A project with a failing test")
	if err := os.CopyFS(s.project, demoProject()); err != nil {
		return err
	}
	if err := os.WriteFile(s.script, demoScript, 0o600); err != nil {
		return err
	}
	s.say("%s, as %s. The store is beside it.", s.project, s.repository(ctx))
	out, err := s.test(ctx)
	if err == nil {
		return broke("the test passes before anything was fixed")
	}
	s.quote(out)
	return nil
}

// repository makes the project a git repository where there is git.
func (s *show) repository(ctx context.Context) string {
	git := process.LookPath(s.env.Environ, "git")
	if git == "" {
		return "a plain folder (git is not installed)"
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "A greeting"}} {
		cmd := exec.CommandContext(ctx, git, args...)
		cmd.Dir = s.project
		cmd.Env = append(s.environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=demo", "GIT_AUTHOR_EMAIL=demo@localhost",
			"GIT_COMMITTER_NAME=demo", "GIT_COMMITTER_EMAIL=demo@localhost")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "a plain folder (git failed: " + term.Short(string(out), 80) + ")"
		}
	}
	return "a git repository"
}

// environ is the environment without settings of belay, which the demo brings
// itself, and without the person's tools and instructions.
func (s *show) environ() []string {
	var env []string
	for _, kv := range s.env.Environ {
		if !strings.HasPrefix(kv, "BELAY_") || strings.HasPrefix(kv, "BELAY_SANDBOX=") {
			env = append(env, kv)
		}
	}
	return append(env, "XDG_CONFIG_HOME="+filepath.Join(filepath.Dir(s.project), "config"))
}

// test runs the project's test.
func (s *show) test(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "test.sh")
	cmd.Dir = s.project
	cmd.Env = s.environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *show) quote(out string) {
	for l := range strings.Lines(strings.TrimSpace(out)) {
		s.say("   | %s", term.Line(l))
	}
}

// open opens the store, which may be made.
func (s *show) open(ctx context.Context, create bool) (store.Store, error) {
	a := &command.Program{Sys: Sys{Env: *s.env}, Location: command.Location{Store: s.store}}
	return newHost(a).Open(ctx, create)
}

// belay is a child process of this program.
func (s *show) belay(ctx context.Context, out io.Writer, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = append([]string{"belay"}, append(args, "--store", s.store, "--workspace", s.project)...)
	cmd.Dir, cmd.Env, cmd.Stderr = s.project, s.environ(), out
	return cmd, nil
}

// run runs a command in this process on a store, and returns what it prints.
func (s *show) run(ctx context.Context, store string, args ...string) (string, int) {
	var out, errs bytes.Buffer
	e := *s.env
	e.Environ, e.In, e.Out, e.Err, e.JSON = s.environ(), nil, &out, &errs, false
	exit := perform(ctx, &command.Program{Sys: Sys{Env: e, Dir: s.project}}, append(args, "--store", store, "--workspace", s.project))
	if exit != belay.ExitOK && out.Len() == 0 {
		return errs.String(), exit
	}
	return out.String(), exit
}

// killed starts an agent in a process of its own and kills that process while
// a command runs.
func (s *show) killed(ctx context.Context) error {
	s.heading("An agent starts to work on it, in a process of its own")
	st, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	defer st.Close()
	lines := &indent{to: s.env.Out}
	child, err := s.belay(ctx, lines, "run", "--script", s.script, "--mode", "accept_edits", "--allow", "exec", "--approvals", "deny", demoObjective)
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	watchErr := s.untilExec(ctx, st)
	killErr := child.Process.Signal(syscall.SIGKILL)
	waitErr := child.Wait()
	if err := errors.Join(watchErr, killErr); err != nil {
		return err
	}
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return broke("the process ended by itself (%v) before it was killed", waitErr)
	}
	s.say("   process %d was killed with SIGKILL while this command ran: sh test.sh", child.Process.Pid)
	if was, err := s.count(ctx, st); err != nil || was.ends > 0 {
		return errors.Join(err, broke("the command had ended before the kill"))
	}
	s.say("   the log has its beginning and no end: what it did is unknown")
	return nil
}

// untilExec follows the log until a command runs.
func (s *show) untilExec(ctx context.Context, st store.Store) error {
	var at store.Position
	for {
		changed := st.Changed(ctx)
		for r, err := range st.Scan(ctx, at) {
			if err != nil {
				return err
			}
			at = r.Position
			if p, ok := r.Event.Data.(event.ToolStarted); ok && p.Name == "exec" {
				s.session, s.lost = r.Event.IDs.Session, r.Event.IDs.Call
				return nil
			}
			if _, over := r.Event.Data.(event.TurnFailed); over {
				return broke("the turn ended before a command ran")
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// counts is how often the log has what the demo claims of the command.
type counts struct{ runs, ends, lost, completed int }

func (s *show) count(ctx context.Context, st store.Store) (n counts, err error) {
	for r, err := range st.Scan(ctx, 0) {
		if err != nil {
			return n, err
		}
		if _, over := r.Event.Data.(event.TurnCompleted); over {
			n.completed++
		}
		if r.Event.IDs.Call != s.lost {
			continue
		}
		switch p := r.Event.Data.(type) {
		case event.ToolStarted:
			n.runs++
		case event.ToolResult:
			n.ends++
		case event.ToolFailed:
			n.ends++
			if p.Problem.Class == "lost" {
				n.lost++
			}
		}
	}
	return n, nil
}

// resumed lets another process go on, and holds the result against the log and
// the project.
func (s *show) resumed(ctx context.Context) error {
	s.heading("Another process continues where that one died")
	lines := &indent{to: s.env.Out}
	child, err := s.belay(ctx, lines, "sessions", "resume", string(s.session))
	if err != nil {
		return err
	}
	if err := child.Run(); err != nil {
		return broke("the resumed session: %v", err)
	}
	st, err := s.open(ctx, false)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := s.audit(ctx, st); err != nil {
		return err
	}
	out, err := s.test(ctx)
	if err != nil {
		return broke("the test fails after the fix: %s", out)
	}
	s.say("   the test, run by this process and not by the agent:")
	s.quote(out)
	return nil
}

// audit counts in the log what the demo claims.
func (s *show) audit(ctx context.Context, st store.Store) error {
	n, err := s.count(ctx, st)
	if err != nil {
		return err
	}
	if n.runs != 1 || n.lost != 1 || n.completed != 1 {
		return broke("the interrupted call was started %d times, recorded as lost %d times, and %d turns completed; each should be 1", n.runs, n.lost, n.completed)
	}
	s.say("   the log: the interrupted call was started once and recorded as lost; the runtime did not run it again.")
	s.say("   The model learned of it, and decided to run the test once more. One turn, two processes, completed.")
	return nil
}

// explained shows what happened, from the facts.
func (s *show) explained(ctx context.Context) error {
	s.heading("What happened, from the log (belay why --timeline %s)", s.session)
	out, exit := s.run(ctx, s.store, "why", "--timeline", string(s.session))
	if exit != belay.ExitOK {
		return broke("the timeline: %s", out)
	}
	s.quote(out)
	s.heading("Why that command was not simply run again (belay why %s)", s.lost)
	if out, exit = s.run(ctx, s.store, "why", string(s.lost)); exit != belay.ExitOK {
		return broke("the explanation: %s", out)
	}
	if !strings.Contains(strings.ToLower(out), "lost") {
		return broke("the explanation doesn't say that the call is lost")
	}
	s.quote(out)
	return nil
}

// verified checks the store, and then a copy of it in which one bit is turned.
func (s *show) verified(ctx context.Context) error {
	s.heading("Is the log whole? (belay verify)")
	out, exit := s.run(ctx, s.store, "verify")
	if exit != belay.ExitOK {
		return broke("the store does not verify: %s", out)
	}
	s.quote(out)

	s.heading("And a copy in which one bit was turned?")
	damaged := filepath.Join(s.dir, "damaged")
	if err := os.CopyFS(damaged, os.DirFS(s.store)); err != nil {
		return err
	}
	what, err := turnBit(damaged)
	if err != nil {
		return err
	}
	s.say("   turned: %s", what)
	if out, exit = s.run(ctx, damaged, "verify"); exit == belay.ExitOK {
		return broke("the damage was not found")
	}
	s.quote(out)
	s.say("   found, as it must be (exit %d)", exit)
	return nil
}

// turnBit changes one bit of a recorded sentence in a store's files.
func turnBit(dir string) (string, error) {
	needle := []byte("Without a name greet.sh says")
	var done string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || done != "" {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		i := bytes.Index(b, needle)
		if i < 0 {
			return nil
		}
		was := b[i]
		b[i] ^= 1
		done = fmt.Sprintf("byte %d of %s, %q became %q", i, filepath.Base(p), was, b[i])
		return os.WriteFile(p, b, 0o600)
	})
	if err == nil && done == "" {
		err = broke("what the model said is not in the store's files")
	}
	return done, err
}

// indent sets what a child says apart.
type indent struct {
	to   io.Writer
	part []byte
}

func (w *indent) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		i := bytes.IndexByte(w.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		fmt.Fprintf(w.to, "   | %s\n", term.Line(string(w.part[:i])))
		w.part = w.part[i+1:]
	}
}

// demoScript is the model's side, in the format of package scripted.
//
//go:embed demo/demo.yaml
var demoScript []byte

//go:embed demo/project
var demoFiles embed.FS

// demoObjective is what the demo asks of the agent.
const demoObjective = "The test fails. Find out why, fix it, and show that it passes."

// demoProject is the throw-away project: greet.sh with a mistake, test.sh that
// finds it, and a README.
func demoProject() fs.FS {
	sub, err := fs.Sub(demoFiles, "demo/project")
	if err != nil {
		panic("demo: the embedded directory has a name that isn't valid: " + err.Error())
	}
	return sub
}
