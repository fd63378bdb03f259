package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
)

// instructionFiles are the names under which projects tell agents how to work.
var instructionFiles = [...]string{"AGENTS.md", "CLAUDE.md"}

// Bounds of instructions: they are part of every request.
const (
	maxInstruction  = 32 << 10 // bytes of one file
	maxInstructions = 64 << 10 // bytes of all
)

// instructions collects the instructions that agents get in a folder: the user's
// own file first, then those of the workspace from its root down to the current
// folder, so that the nearest one takes precedence.
type instructions struct {
	r     *runtime
	rules *thread.Rules
	text  strings.Builder
	seen  map[string]bool
}

// instruct puts instructions into rules and records which they are and which
// were left out.
func (r *runtime) instruct(ctx context.Context, a *app, rules *thread.Rules) error {
	in := &instructions{r: r, rules: rules, seen: map[string]bool{}}
	if dir := a.configDir(); dir != "" {
		if err := in.folder(ctx, dir, []string{"."}, "user"); err != nil {
			return err
		}
	}
	if err := in.folder(ctx, rules.Workspace, a.downTo(rules.Workspace), "workspace"); err != nil {
		return err
	}
	if in.text.Len() > 0 {
		rules.System = strings.TrimRight(rules.System, "\n") + "\n\n# Instructions of this place\n" + in.text.String()
	}
	return nil
}

// downTo lists the directories from a workspace to where the person stands.
func (a *app) downTo(ws string) []string {
	dirs := []string{"."}
	here, err := filepath.EvalSymlinks(a.Dir)
	if err != nil {
		return dirs
	}
	rel, err := filepath.Rel(ws, here)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return dirs
	}
	at := ""
	for _, part := range strings.Split(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		dirs = append(dirs, at)
	}
	return dirs
}

// configDir is the person's folder of settings, or empty.
func (a *app) configDir() string {
	if dir := a.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "belay")
	}
	if home := a.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "belay")
	}
	return ""
}

// folder takes the instruction files of directories below a root. A link that
// leads out of the root is not followed.
func (in *instructions) folder(ctx context.Context, root string, dirs []string, scope string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil // no such folder
	}
	defer r.Close()
	for _, dir := range dirs {
		for _, name := range instructionFiles {
			if err := in.file(ctx, r, filepath.Join(dir, name), scope); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *instructions) file(ctx context.Context, root *os.Root, name, scope string) error {
	text, why := in.read(root, name)
	switch {
	case why == "absent" || in.seen[text] && why == "": // the second name of one file
		return nil
	case why != "":
		in.rules.LeftOut = append(in.rules.LeftOut, event.ContextOmission{Kind: "instruction", Name: filepath.ToSlash(name), Reason: why})
		return nil
	}
	in.seen[text] = true
	clean := in.r.scrub([]byte(text))
	ref, err := in.r.Store.Put(ctx, clean, "text/markdown")
	if err != nil {
		return err
	}
	in.text.WriteString("\n## " + filepath.ToSlash(name) + " (" + scope + ")\n\n" + strings.TrimSpace(string(clean)) + "\n")
	in.rules.Context = append(in.rules.Context, event.ContextItem{Kind: "instruction", Name: filepath.ToSlash(name), Ref: &ref, Scope: scope})
	return nil
}

// read returns a file's text, or why it isn't taken.
func (in *instructions) read(root *os.Root, name string) (text, why string) {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "absent"
	case err != nil || !info.Mode().IsRegular():
		return "", "denied"
	case info.Size() > maxInstruction || int64(in.text.Len())+info.Size() > maxInstructions:
		return "", "budget"
	}
	f, err := root.Open(name)
	if err != nil {
		return "", "denied"
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxInstruction))
	if err != nil || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", "denied"
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return "", "absent"
	}
	return string(b), ""
}
