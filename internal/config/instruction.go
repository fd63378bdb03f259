package config

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/policy"
)

// instructionFiles are the names under which projects tell agents how to work.
var instructionFiles = [...]string{"AGENTS.md", "CLAUDE.md", "CLAUDE.local.md"}

// Bounds of instructions: they are part of every request, and of a fact.
const (
	maxInstruction  = 32 << 10 // bytes of one file
	maxInstructions = 64 << 10 // bytes of all
	maxFiles        = 16       // that are taken
	maxLeftOut      = 12       // that are named
	maxImports      = 5        // files that import one another
	maxNameLength   = 120      // bytes of a file's name
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
	Reason string // budget, denied, depth, missing
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
	seen    map[string]bool // texts
	taken   map[string]bool // files, by scope and name
	home    string          // of the person; empty: nothing there is imported
}

func (in Input) readInstructions() ([]Instruction, []Omission) {
	c := newInstructing()
	if dir := in.ConfigDir(); dir != "" {
		c.home = in.Get("HOME")
		c.folder(dir, []string{"."}, scopeUser)
	}
	if in.Workspace != "" {
		c.folder(in.Workspace, in.downTo(), scopeWorkspace)
	}
	return c.all, c.omitted
}

// Scopes of instructions.
const (
	scopeUser      = "user"
	scopeWorkspace = "workspace"
)

func newInstructing() *instructing {
	return &instructing{seen: map[string]bool{}, taken: map[string]bool{}}
}

// ReadInstructions reads files of instructions of a workspace, with what they import.
func ReadInstructions(workspace string, names []string) ([]Instruction, []Omission) {
	c := newInstructing()
	if r, err := files.OpenRoot(workspace); err == nil {
		defer r.Close()
		for _, name := range names {
			c.file(r, filepath.FromSlash(name), scopeWorkspace, 0)
		}
	}
	return c.all, c.omitted
}

// InstructionsAbove names the files of instructions in the folders of a workspace that
// some of its files lie in, from its root down.
func InstructionsAbove(workspace string, paths []string) (names []string) {
	r, err := files.OpenRoot(workspace)
	if err != nil {
		return nil
	}
	defer r.Close()
	looked := map[string]bool{}
	for _, f := range paths {
		if filepath.IsAbs(f) {
			if f, err = filepath.Rel(workspace, f); err != nil {
				continue
			}
		}
		if !filepath.IsLocal(f) {
			continue
		}
		var dirs []string
		for dir := filepath.Dir(f); !looked[dir] && len(looked) < 64; dir = filepath.Dir(dir) {
			looked[dir] = true
			dirs = append(dirs, dir)
		}
		for _, dir := range slices.Backward(dirs) {
			for _, base := range instructionFiles {
				name := filepath.Join(dir, base)
				if info, err := r.Stat(name); err == nil && info.Mode().IsRegular() && len(name) <= maxNameLength && len(names) < 8 {
					names = append(names, filepath.ToSlash(name))
				}
			}
		}
	}
	return names
}

// Cwd is the folder of the workspace in which the person stands; empty: its root, or
// elsewhere.
func (w *Workspace) Cwd() string {
	dirs := w.in.downTo()
	if len(dirs) == 1 {
		return ""
	}
	return filepath.ToSlash(dirs[len(dirs)-1])
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
	r, err := files.OpenRoot(root)
	if err != nil {
		return // no such folder
	}
	defer r.Close()
	for _, dir := range dirs {
		for _, base := range instructionFiles {
			c.file(r, filepath.Join(dir, base), scope, 0)
		}
	}
}

// file takes a file and what it imports; depth is how many files led to it.
func (c *instructing) file(r *os.Root, name, scope string, depth int) {
	key := scope + ":" + r.Name() + ":" + name
	if c.taken[key] { // it is there, or files import each other in a circle
		return
	}
	c.taken[key] = true
	text, why := c.read(r, name)
	switch {
	case why == whyAbsent:
		if depth > 0 && path.Ext(name) != "" { // else it was hardly meant to name a file
			c.leaveOut(name, "missing")
		}
		return
	case c.seen[text] && why == "": // the second name of one file
		return
	case why != "":
		c.leaveOut(name, why)
		return
	}
	c.seen[text] = true
	i := Instruction{filepath.ToSlash(name), scope, text}
	c.all, c.size = append(c.all, i), c.size+int64(len(i.String()))
	for _, to := range imports(text) {
		c.imported(r, name, to, scope, depth+1)
	}
}

// imported takes a file that another one names: one beside or below it, and never one
// outside of the workspace. A person's own file may name one of the home.
func (c *instructing) imported(r *os.Root, from, to, scope string, depth int) {
	name := filepath.Join(filepath.Dir(from), filepath.FromSlash(to))
	if below, ok := strings.CutPrefix(to, "~/"); ok && scope == scopeUser && c.home != "" {
		home, err := files.OpenRoot(c.home)
		if err != nil {
			return
		}
		defer home.Close()
		r, name = home, filepath.Clean(filepath.FromSlash(below))
	} else if ok {
		name = ""
	}
	switch {
	case depth > maxImports:
		c.leaveOut(to, "depth")
	case path.IsAbs(to) || !filepath.IsLocal(name) || policy.Secret(filepath.ToSlash(name)):
		c.leaveOut(to, "denied")
	default:
		c.file(r, name, scope, depth)
	}
}

func (c *instructing) leaveOut(name, why string) {
	o := Omission{filepath.ToSlash(name), why}
	if len(o.Name) > maxNameLength {
		o.Name = strings.ToValidUTF8(o.Name[:maxNameLength], "") + "…"
	}
	if len(c.omitted) < maxLeftOut && !slices.Contains(c.omitted, o) {
		c.omitted = append(c.omitted, o)
	}
}

// imports are the paths that a text names as @path, outside of code.
func imports(text string) (paths []string) {
	fence, blank, code := "", true, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		inner := strings.TrimLeft(line, " \t")
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		code = indented && (code || blank) // a block of code begins after an empty line
		blank = inner == ""
		mark := ""
		if strings.HasPrefix(inner, "```") || strings.HasPrefix(inner, "~~~") {
			mark = inner[:3]
		}
		switch {
		case fence != "" && mark == fence:
			fence = ""
		case fence != "":
		case mark != "":
			fence = mark
		case !code:
			paths = append(paths, importsOf(line)...)
		}
	}
	return paths
}

// importsOf are those of a line, outside of its code.
func importsOf(line string) (paths []string) {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '`':
			ticks := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			end := strings.Index(line[i+ticks:], line[i:i+ticks])
			i += ticks - 1
			if end >= 0 {
				i += end + ticks
			}
		case line[i] == '@' && (i == 0 || strings.IndexByte(" \t(", line[i-1]) >= 0):
			rest := line[i+1:]
			if end := strings.IndexAny(rest, " \t()<>[]{}|\"'`,;*"); end >= 0 {
				rest = rest[:end]
			}
			i += len(rest)
			if rest = strings.TrimRight(rest, ".:!?"); rest != "" {
				paths = append(paths, rest)
			}
		}
	}
	return paths
}

// whyAbsent is no reason that is told.
const whyAbsent = "absent"

// read returns a file's text, or why it isn't taken.
func (c *instructing) read(root *os.Root, name string) (text, why string) {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", whyAbsent
	case err != nil || !info.Mode().IsRegular():
		return "", "denied"
	case len(name) > maxNameLength || !utf8.ValidString(name):
		return "", "denied"
	case len(c.all) >= maxFiles || info.Size() > maxInstruction || c.size+info.Size() > maxInstructions:
		return "", "budget"
	}
	f, _, err := files.OpenIn(root, name)
	if err != nil {
		return "", "denied"
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxInstruction))
	if err != nil || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", "denied"
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return "", whyAbsent
	}
	return string(b), ""
}
