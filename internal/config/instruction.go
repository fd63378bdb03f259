package config

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// instructionFiles are the names under which projects tell agents how to work.
var instructionFiles = [...]string{"AGENTS.md", "CLAUDE.md"}

// Bounds of instructions: they are part of every request.
const (
	maxInstruction  = 32 << 10 // bytes of one file
	maxInstructions = 64 << 10 // bytes of all
)

// Instruction is a text that tells agents how to work in a place.
type Instruction struct {
	Name  string // of the file, below the folder of its scope
	Scope string // user, workspace
	Text  string
}

// String is the instruction as a model gets it.
func (i Instruction) String() string {
	return "\n## " + i.Name + " (" + i.Scope + ")\n\n" + strings.TrimSpace(i.Text) + "\n"
}

// Omission is a file of instructions that was left out.
type Omission struct {
	Name   string
	Reason string // budget, denied
}

// Instructions are the instructions that agents get in the workspace, and what was
// left out: the user's own file first, then those from the workspace's root down
// to the current folder, so that the nearest one takes precedence.
func (w *Workspace) Instructions() ([]Instruction, []Omission) { return w.instructions, w.omitted }

// instructing collects instructions.
type instructing struct {
	all     []Instruction
	omitted []Omission
	size    int64
	seen    map[string]bool
}

func (in Input) readInstructions() ([]Instruction, []Omission) {
	c := &instructing{seen: map[string]bool{}}
	if dir := in.ConfigDir(); dir != "" {
		c.folder(dir, []string{"."}, "user")
	}
	if in.Workspace != "" {
		c.folder(in.Workspace, in.downTo(), "workspace")
	}
	return c.all, c.omitted
}

// downTo lists the directories from the workspace to where the person stands.
func (in Input) downTo() []string {
	dirs := []string{"."}
	here, err := filepath.EvalSymlinks(in.Dir)
	if err != nil {
		return dirs
	}
	rel, err := filepath.Rel(in.Workspace, here)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return dirs
	}
	at := ""
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		dirs = append(dirs, at)
	}
	return dirs
}

// folder takes the instruction files of directories below a root. A link that
// leads out of the root is not followed.
func (c *instructing) folder(root string, dirs []string, scope string) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return // no such folder
	}
	defer r.Close()
	for _, dir := range dirs {
		for _, base := range instructionFiles {
			name := filepath.Join(dir, base)
			text, why := c.read(r, name)
			switch {
			case why == "absent" || c.seen[text] && why == "": // the second name of one file
			case why != "":
				c.omitted = append(c.omitted, Omission{filepath.ToSlash(name), why})
			default:
				c.seen[text] = true
				i := Instruction{filepath.ToSlash(name), scope, text}
				c.all, c.size = append(c.all, i), c.size+int64(len(i.String()))
			}
		}
	}
}

// read returns a file's text, or why it isn't taken.
func (c *instructing) read(root *os.Root, name string) (text, why string) {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "absent"
	case err != nil || !info.Mode().IsRegular():
		return "", "denied"
	case info.Size() > maxInstruction || c.size+info.Size() > maxInstructions:
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
