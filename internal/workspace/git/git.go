//go:build unix

// Package git does with the repository of a workspace what the runtime needs of
// it: it keeps states of the files, makes worktrees for sessions, and looks after
// the files that git obeys. It promises of its calls: nothing that a repository
// configures is run (no hook, filter, monitor, helper, pager or other program), the
// repository is the one that git itself made, and a call that can't be made so
// isn't made. It promises of a workspace: what a program leaves there that makes a
// later git run or load something is found and moved aside, and a plain repository
// isn't.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
)

// Git is the git program of this machine. Environ is the runtime's; PATH and
// HOME count.
type Git struct{ Environ []string }

// maxOutput bounds what a git command may print.
const maxOutput = 80 << 20

// program is git by its absolute path.
func (g Git) program() (string, error) {
	if path := process.LookPath(g.Environ, "git"); path != "" {
		return path, nil
	}
	return "", belay.Errorf(belay.CodeUsage, "there is no git on the PATH").WithHint("install git")
}

// env is git's environment: no configuration but the given one, no protocol to fetch
// by, and no prompts.
func (g Git) env(set []setting) []string {
	env := []string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_SSH_COMMAND=false",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=" + os.DevNull + "/none",
	}
	for _, kv := range g.Environ {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR":
			env = append(env, kv)
		}
	}
	set = append(always[:len(always):len(always)], set...)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(set)))
	for i, s := range set {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.value))
	}
	return env
}

// always is set for each call. Later settings weigh more than those of files.
var always = []setting{
	{"core.hooksPath", os.DevNull}, {"core.fsmonitor", "false"}, {"core.attributesFile", os.DevNull}, {"core.sshCommand", "false"},
	{"core.editor", "false"}, {"core.pager", "cat"}, {"core.askPass", ""}, {"core.alternateRefsCommand", ""}, {"credential.helper", ""},
	{"diff.external", ""}, {"diff.ignoreSubmodules", "dirty"}, {"submodule.recurse", "false"}, {"status.submoduleSummary", "false"},
	{"protocol.allow", "never"}, {"gpg.program", "false"}, {"commit.gpgSign", "false"}, {"gc.auto", "0"}, {"maintenance.auto", "false"},
	{"safe.bareRepository", "explicit"}, {"core.quotePath", "false"}, {"advice.addEmbeddedRepo", "false"},
}

// run is git in a folder with settings and an environment of its own besides. It
// returns what git printed; with an error, what it complained about.
func (g Git) run(ctx context.Context, dir string, set []setting, env, args []string) ([]byte, error) {
	program, err := g.program()
	if err != nil {
		return nil, err
	}
	out, complaint := &bounded{}, &bounded{}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, append(g.env(set), env...), out, complaint, time.Second
	err = cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case ended:
		return complaint.all.Bytes(), fmt.Errorf("git %s: %s", command(args), firstLine(complaint.all.Bytes(), exit.ExitCode()))
	case err != nil:
		return nil, fmt.Errorf("git %s: %w", command(args), err)
	}
	return out.all.Bytes(), nil
}

// command is what git is to do, without the options before it.
func command(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

func firstLine(out []byte, code int) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	if len(line) == 0 {
		return fmt.Sprintf("exit code %d", code)
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(line[:min(len(line), 300)]), "fatal: "), "?")
}

// bounded takes output up to a limit. The buffer isn't embedded: what copies into it
// would read past the limit by a method of its.
type bounded struct{ all bytes.Buffer }

var errTooMuch = errors.New("it printed too much")

func (b *bounded) Write(p []byte) (int, error) {
	if b.all.Len()+len(p) > maxOutput {
		return 0, errTooMuch
	}
	return b.all.Write(p)
}

// list reads configuration as git does, from its text. Git runs nothing and
// follows no include for that.
func (g Git) list(ctx context.Context, text []byte) ([]setting, error) {
	program, err := g.program()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "config", "--file", "-", "--no-includes", "--list", "-z")
	cmd.WaitDelay = time.Second
	cmd.Dir, cmd.Env, cmd.Stdin = "/", append(g.env(nil), "GIT_DIR="+os.DevNull, "GIT_CEILING_DIRECTORIES=/"), bytes.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git can't read it: %w", err)
	}
	var all []setting
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			all = append(all, setting{key, value})
		} else if entry != "" { // a key alone is true
			all = append(all, setting{entry, "true"})
		}
	}
	return all, nil
}
