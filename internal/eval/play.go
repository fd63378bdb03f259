package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

// Player plays scenarios.
type Player struct {
	Program Program
	Open    func(ctx context.Context, dir string) (store.Store, error) // a store that the program left
	Env     []string                                                   // of the program; settings of belay in it are left out
	Now     func() time.Time
	Keep    bool   // leave the places
	Temp    string // where places are made; the system's place for such if empty
}

// Result is the outcome of a scenario.
type Result struct {
	Scenario *Scenario
	Failures []string // what was expected and not seen; none is a pass
	Took     time.Duration
	Kept     *Where // when its place was left
}

// Passed reports whether everything was as expected.
func (r Result) Passed() bool { return len(r.Failures) == 0 }

// died is the exit code of a process that a scenario let die: that of SIGKILL.
const died = 137

// Play plays a scenario in a place of its own. An error means that it couldn't
// be played, or that ctx ended; what doesn't go as expected is in the result.
func (p Player) Play(ctx context.Context, s *Scenario) (res Result, err error) {
	res = Result{Scenario: s}
	dir, err := os.MkdirTemp(p.Temp, "belay-eval-")
	if err != nil {
		return res, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return res, err
	}
	at := Where{Dir: dir, Workspace: filepath.Join(dir, "workspace"), Store: filepath.Join(dir, "store")}
	if p.Keep {
		res.Kept = &at
	} else {
		defer func() { err = errors.Join(err, removeAll(dir)) }()
	}
	begun := p.Now()
	limit := s.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	run := &play{Player: p, s: s, at: at, stage: newStage(s, at.Workspace, p.Now)}
	failures := run.all(limited)
	res.Took = p.Now().Sub(begun)
	switch {
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case limited.Err() != nil:
		res.Failures = append([]string{fmt.Sprintf("it did not end within %s", limit)}, failures...)
		return res, nil
	case len(failures) > 0:
		res.Failures = failures
		return res, nil
	}
	seen, err := look(ctx, run, res.Took)
	if err != nil {
		res.Failures = append([]string{"what it left can't be read: " + err.Error()}, run.hints(&Seen{})...)
		return res, nil
	}
	for _, e := range s.Expect {
		res.Failures = append(res.Failures, e.Check(ctx, seen)...)
	}
	if len(res.Failures) > 0 {
		res.Failures = append(res.Failures, run.hints(seen)...)
	}
	return res, nil
}

// play is one scenario being played.
type play struct {
	Player
	s     *Scenario
	at    Where
	stage *stage
	exits []int
	last  string // what the last command printed
}

// all prepares the place and gives the commands one after the other. What it
// returns went wrong beyond what a scenario can expect.
func (p *play) all(ctx context.Context) []string {
	if err := p.prepare(ctx); err != nil {
		return []string{err.Error()}
	}
	p.command(ctx, "", append(p.run("run"), p.s.flags(p.at.Dir)...), p.s.Prompt)
	for _, t := range p.s.Then {
		switch {
		case t.Resume:
			p.command(ctx, t.By, append(p.run("sessions", "resume", "--last"), t.Settings.flags()...))
		case t.Prompt != "":
			p.command(ctx, t.By, append(p.run("run", "--continue"), t.Settings.flags()...), t.Prompt)
		default:
			p.command(ctx, t.By, p.run(p.fill(t.Belay)...))
		}
	}
	if p.stage.failed != nil {
		return []string{"what was to happen meanwhile went wrong: " + p.stage.failed.Error()}
	}
	var failures []string
	for _, f := range p.stage.missed() {
		failures = append(failures, "what was to happen meanwhile never came: there was no "+f.String()+"\n"+indent(p.last))
	}
	return failures
}

// run is a command line with its place.
func (p *play) run(words ...string) []string {
	return append(slices.Clone(words), "--store", p.at.Store, "--workspace", p.at.Workspace)
}

func (p *play) fill(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		out[i] = strings.NewReplacer("${session}", string(p.stage.session), "${action}", string(p.stage.action), "${dir}", p.at.Dir).Replace(w)
	}
	return out
}

// command runs one command line; text is what isn't read as a flag.
func (p *play) command(ctx context.Context, by string, args []string, text ...string) {
	if len(text) > 0 {
		args = append(append(args, "--"), text...)
	}
	var out bytes.Buffer
	exit := p.Program(ctx, Command{Args: args, Dir: p.at.Workspace, Env: p.environ(by), Stdout: &out, Stderr: &out, Tools: p.s.Tools, Store: p.stage.of})
	if p.stage.died() {
		exit = died
	}
	p.exits, p.last = append(p.exits, exit), out.String()
}

// environ is the environment without a person's settings.
func (p *play) environ(by string) []string {
	if by == "" {
		by = "eval"
	}
	var env []string
	for _, kv := range p.Env {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "BELAY_") && !strings.HasPrefix(name, "XDG_") && name != "HOME" && name != "USER" && name != "LOGNAME" {
			env = append(env, kv)
		}
	}
	return append(env, "HOME="+filepath.Join(p.at.Dir, "home"), "USER="+by)
}

// prepare makes the place.
func (p *play) prepare(ctx context.Context) error {
	for _, dir := range []string{p.at.Workspace, filepath.Join(p.at.Dir, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for name, content := range p.s.Files {
		if err := writeFile(p.at.Workspace, name, content); err != nil {
			return err
		}
	}
	for name, content := range p.s.Home {
		if err := writeFile(filepath.Join(p.at.Dir, "home"), name, content); err != nil {
			return err
		}
	}
	for name, content := range map[string][]byte{scriptName: p.s.Script, schemaName: p.s.Schema} {
		if content == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(p.at.Dir, name), content, 0o600); err != nil {
			return err
		}
	}
	for _, argv := range p.s.Commands {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = p.at.Workspace
		cmd.Env = append(p.environ(""), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=eval", "GIT_AUTHOR_EMAIL=eval@localhost", "GIT_COMMITTER_NAME=eval", "GIT_COMMITTER_EMAIL=eval@localhost")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("setup: %s: %w\n%s", strings.Join(argv, " "), err, indent(string(out)))
		}
	}
	return nil
}

// Names of what lies beside the workspace.
const (
	scriptName = "script.json"
	schemaName = "schema.json"
)

// flags are those of the first run.
func (s *Scenario) flags(dir string) []string {
	set := s.Settings
	if set.Mode == "" {
		set.Mode = string(belay.ModeAcceptEdits)
	}
	if set.Allow == nil {
		set.Allow = []string{"exec"}
	}
	if set.Approvals == "" {
		set.Approvals = string(belay.ApprovalsDeny)
	}
	flags := append(set.flags(), "--script", filepath.Join(dir, scriptName))
	if s.Schema != nil {
		flags = append(flags, "--output-schema", filepath.Join(dir, schemaName))
	}
	return flags
}

func (s Settings) flags() (flags []string) {
	add := func(name, value string) {
		if value != "" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	add("mode", s.Mode)
	for _, name := range s.Allow {
		add("allow", name)
	}
	add("approvals", s.Approvals)
	add("completion", s.Completion)
	add("max-steps", number(s.MaxSteps))
	add("max-calls", number(s.MaxCalls))
	add("max-time", s.MaxTime)
	add("ask-timeout", s.AskTimeout)
	return append(flags, s.Flags...)
}

func writeFile(dir, name, content string) error {
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // an agent may have made a pipe of it
		return errors.Join(fmt.Errorf("%s: %w", name, files.ErrNotRegular), f.Close())
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// removeAll removes a place, also what a scenario made unreadable.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func indent(s string) string {
	s = strings.TrimRight(s, "\n")
	if s == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(s, "\n", "\n  ")
}
