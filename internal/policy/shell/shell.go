package shell

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Class says what a command may do at most. Classes rise in strictness in the
// order of the constants; a whole command has the strictest of its parts.
type Class string

const (
	// ReadOnly changes nothing and sends nothing.
	ReadOnly Class = "read-only"
	// WriteWorkspace changes files inside the workspace, or runs its programs.
	WriteWorkspace Class = "write-workspace"
	// Network may send something to another machine.
	Network Class = "network"
	// Destructive removes or overwrites what isn't easily restored, changes the
	// system, or may do anything because nothing is known about it.
	Destructive Class = "destructive"
	// EscapeAttempt reaches out of the boundary: writes outside the workspace or
	// to protected names, reads where keys are kept, asks for other rights.
	EscapeAttempt Class = "escape-attempt"
	// Unparsable means that what would run is unknown.
	Unparsable Class = "unparsable"
)

var classes = [...]Class{ReadOnly, WriteWorkspace, Network, Destructive, EscapeAttempt, Unparsable}

// Rank is the class's place in the order, from 0 for ReadOnly to 5 for
// Unparsable. A class that isn't one of the constants ranks as Unparsable.
func (c Class) Rank() int {
	if i := slices.Index(classes[:], c); i >= 0 {
		return i
	}
	return len(classes) - 1
}

// join is the stricter of two classes.
func join(a, b Class) Class {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// Options says where a command would run. The paths are absolute, and read as
// text: whoever passes them has resolved the links. A field that is empty or
// not absolute isn't known, which makes every judgement of a path that needs it
// stricter. An unknown Dir is the Workspace.
type Options struct {
	Dir       string // the working directory
	Workspace string // the tree that may be changed
	Home      string // the value of HOME

	Dialect Dialect // of the shell that runs it; Sh unless it is Bash
}

// Command is one program or builtin that the shell would start.
type Command struct {
	Name    string   `json:"name"`              // as written; for a name that isn't literal its source
	Args    []string `json:"args,omitempty"`    // words after expansion; of an open one its source
	Open    []int    `json:"open,omitempty"`    // indexes of Args that aren't literal
	Class   Class    `json:"class"`             // of this command alone, with its redirections
	Reason  string   `json:"reason,omitempty"`  // why it isn't read-only
	Wrapped []string `json:"wrapped,omitempty"` // names of the wrappers it was found in, outermost first
	Reads   []string `json:"reads,omitempty"`   // paths, cleaned and absolute, as far as they are known
	Writes  []string `json:"writes,omitempty"`  // likewise
	Through []string `json:"through,omitempty"` // absolute paths that go up, as they are spelled: where they lead depends on links
	Hosts   []string `json:"hosts,omitempty"`   // hosts or addresses, as written
	Dirs    []string `json:"dirs,omitempty"`    // where it may run, if that isn't Options.Dir
	Astray  bool     `json:"astray,omitempty"`  // the shell has changed to an unknown directory
	unsure  bool     // it reads unknown files
	names   bool     // it shows names of files, not what is in them
}

// Literal reports whether the argument at i is known word for word.
func (c Command) Literal(i int) bool { return !slices.Contains(c.Open, i) }

// Report is the judgement of a whole command.
type Report struct {
	Class     Class     `json:"class"`
	Commands  []Command `json:"commands"`         // in the order of the source, what a command's own words run before it; never nil
	Reason    string    `json:"reason"`           // of what made the class
	Hidden    string    `json:"hidden,omitempty"` // why it may do more than its text shows; empty: it can't
	NotPlain  string    `json:"-"`                // why its text can be read in more than one way; empty: it is plain
	Redirects bool      `json:"-"`                // it reads or writes files by redirection
}

// Classify judges a string that a shell would run with -c, as the shell of its
// dialect reads it. It never fails: what can't be read is Unparsable.
func Classify(src string, o Options) Report {
	a := newAnalysis(o)
	a.script(src, o.Dialect, a.scope(), nil)
	return a.report()
}

// ClassifyArgv judges a program that is started without a shell. No word is
// expanded.
func ClassifyArgv(argv []string, o Options) Report {
	a := newAnalysis(o)
	if len(argv) == 0 {
		a.raise(Unparsable, "no program is named")
		return a.report()
	}
	total := 0
	words := make([]word, len(argv))
	for i, s := range argv {
		if total += len(s); total > maxSource {
			a.raise(Unparsable, "the command is longer than any system runs")
			return a.report()
		}
		if why := oddText(s); why != "" {
			a.raise(Unparsable, why)
		}
		words[i] = literal(s)
	}
	r := &reader{analysis: a}
	r.run(words, a.scope(), call{direct: true})
	return a.report()
}

// analysis is one judgement under way; every source that is met on it (of sh -c,
// of eval …) reports to the same one.
type analysis struct {
	o         Options
	class     Class
	reason    string
	commands  []Command
	level     int      // of sources within sources
	hidden    string   // why it may do more than is listed
	notPlain  string   // why the source isn't plain
	redirects bool     // from or to files
	texts     []string // what its words say that may be paths
}

func newAnalysis(o Options) *analysis {
	o.Workspace, o.Home, o.Dir = absolute(o.Workspace), absolute(o.Home), absolute(o.Dir)
	if o.Dir == "" {
		o.Dir = o.Workspace
	}
	return &analysis{o: o, class: ReadOnly, reason: "nothing runs", commands: []Command{}}
}

// absolute is a cleaned absolute path, or nothing.
func absolute(p string) string {
	if !strings.HasPrefix(p, "/") {
		return ""
	}
	return path.Clean(p)
}

// raise makes the whole at least as strict as c.
func (a *analysis) raise(c Class, reason string) {
	if c.Rank() > a.class.Rank() || len(a.commands) == 0 && a.reason == "nothing runs" {
		a.class, a.reason = join(a.class, c), reason
	}
}

// add records a command.
func (a *analysis) add(c Command) {
	if len(a.commands) == maxCommands {
		a.raise(Unparsable, "more commands than anybody would read")
		return
	}
	if c.Reason == "" {
		a.raise(c.Class, "every command only reads")
	} else if c.Class.Rank() > a.class.Rank() || len(a.commands) == 0 {
		a.raise(c.Class, c.Name+": "+c.Reason)
	}
	a.commands = append(a.commands, c)
}

// hides notes that the source may do more than its text shows. What only reads runs in
// a boundary that holds it to that, so it stays what it is; anything else is Unparsable.
func (a *analysis) hides(why string) {
	if a.hidden == "" {
		a.hidden = why
	}
}

// report is the judgement, when everything has been read. A command that reads
// unknown files may read any file that the source names.
func (a *analysis) report() Report {
	if slices.ContainsFunc(a.commands, func(c Command) bool { return c.unsure }) {
		if why := a.secretWords(); why != "" {
			for i := range a.commands {
				if c := &a.commands[i]; c.unsure && c.Class.Rank() < EscapeAttempt.Rank() {
					c.Class, c.Reason = EscapeAttempt, "it reads what only shows when it runs, and "+why
					a.raise(c.Class, c.Name+": "+c.Reason)
				}
			}
		}
	}
	if a.hidden != "" && a.class != ReadOnly {
		a.raise(Unparsable, a.hidden)
	}
	return Report{Class: a.class, Commands: a.commands, Reason: a.reason, Hidden: a.hidden, NotPlain: cmp.Or(a.notPlain, a.hidden), Redirects: a.redirects}
}

// Unheld is the class where no boundary holds what only reads to that.
func (r Report) Unheld() Class {
	if r.Hidden != "" {
		return Unparsable
	}
	return r.Class
}

// secretWords says which of the words of a source names a place where keys are
// kept, or nothing.
func (a *analysis) secretWords() string {
	for _, text := range a.texts {
		for f := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t\n,;:=\"'`", c) }) {
			if f[0] != '/' && f[0] != '.' && !strings.Contains(f, "/.") && !strings.Contains(f, "id_") {
				continue // nearly every word
			}
			if why := Secret(path.Clean("/" + f)); why != "" {
				return why
			}
		}
	}
	return ""
}
