package work

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/workspace/git"
)

// desk is what the machine of a conversation has besides the terminal.
type desk struct{ *command.Program }

var _ chat.Desk = desk{}

// Page implements chat.Desk.
func (d desk) Page(ctx context.Context, text io.Reader) error {
	argv := strings.Fields(d.Getenv("PAGER"))
	if len(argv) == 0 {
		argv = []string{"less", "-R"}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.Environ, text, d.Out, d.Err
	if err := cmd.Run(); err != nil {
		return belay.Errorf(belay.CodeUsage, "the pager %s failed", argv[0]).WithHint("set PAGER to one that works").Wrap(err)
	}
	return nil
}

// Belay implements chat.Desk.
func (d desk) Belay(ctx context.Context, args ...string) error {
	return d.belay(ctx, args, d.In, d.Out, d.Err)
}

// BelayText implements chat.Desk. What the command says of an error is part of the text.
func (d desk) BelayText(ctx context.Context, args ...string) ([]byte, error) {
	var b bytes.Buffer
	err := d.belay(ctx, args, nil, &b, &b)
	return b.Bytes(), err
}

func (d desk) belay(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"--store": d.Store, "--workspace": d.Workspace} {
		if value != "" {
			args = append(args, name, value)
		}
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.Dir, d.Environ, in, out, errs
	err = cmd.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil // it has said why
	}
	return err
}

// Most files that a folder's names are completed from.
const maxNames = 50_000

// Files implements chat.Desk.
func (d desk) Files(ctx context.Context, dir string) (names []string, err error) {
	if r, err := (git.Git{Environ: d.Environ}).Open(ctx, dir); err == nil {
		out, err := r.Run(ctx, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
		if err == nil {
			return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), nil
		}
	}
	root, err := files.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(files.Tree(root), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || ctx.Err() != nil || len(names) > maxNames:
			return fs.SkipAll
		case e.IsDir() && strings.HasPrefix(filepath.Base(name), ".") && name != ".":
			return fs.SkipDir
		case e.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Save implements chat.Desk.
func (d desk) Save(name string, write func(io.Writer) error) error {
	path := d.Environment().Abs(name)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return belay.Errorf(belay.CodeExists, "the file is there already").At(name).WithHint("another name")
	}
	return files.WriteWhole(files.System{}, path, write)
}

// Branch implements chat.Desk.
func (d desk) Branch(ctx context.Context, dir string) string {
	s, err := (git.Git{Environ: d.Environ}).Status(ctx, dir)
	if err != nil || s.Branch == "" {
		return ""
	}
	if s.Changed > 0 {
		return s.Branch + "*"
	}
	return s.Branch
}
