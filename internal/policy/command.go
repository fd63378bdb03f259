package policy

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy/shell"
)

// Place is what is known of where commands run.
type Place struct {
	Workspace string // absolute
	Dialect   Dialect
	Home      string // the value of HOME; empty: unknown
	Bare      bool   // no view of the files hides secrets from programs
	Loose     bool   // nothing holds programs that only read to that
	Full      bool   // nothing confines programs that do more than read
	Shadowed  bool   // programs are looked for in folders that the workspace can change
	Links     []Link // where paths lead that don't lead where their text says
}

// CommandsOf are the simple commands that a call would run, by the arguments that
// its tool declares to be a command line; none when the tool declares nothing.
// What can't be read is one command that is unparsable.
func CommandsOf(t belay.ToolSpec, args json.RawMessage, at Place) []Command {
	if t.Command == nil {
		return nil
	}
	o := shell.Options{Workspace: at.Workspace, Dir: at.Workspace, Home: at.Home, Dialect: at.Dialect}
	given := &arguments{raw: args}
	folder := Folder(t, args, at)
	if o.Dir = path.Clean(folder); folder == at.Workspace {
		o.Dir = at.Workspace
	}
	if i := slices.IndexFunc(at.Links, func(l Link) bool { return l.Path == folder }); i >= 0 {
		o.Dir = at.Links[i].Real
	}
	var out []Command
	var read shell.Report
	if line, ok := given.text(t.Command.Line); ok && line != "" {
		read = shell.Classify(line, o)
		out = whole(read)
	}
	if argv, ok := given.argv(t.Command.Argv); ok { // besides a line the tool refuses it
		out = append(out, whole(shell.ClassifyArgv(argv, o))...)
	}
	if out == nil {
		return []Command{{Name: t.Name, Class: Unparsable, Reason: "there is no command in it that could be read"}}
	}
	env := given.env(t.Command.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		set := shell.Classify(name+"='"+strings.ReplaceAll(env[name], "'", `'\''`)+"' true", o)
		if set.Class.Rank() > ReadOnly.Rank() {
			out = append(out, Command{Name: "env", Args: []string{name}, Class: set.Class, Reason: "it sets " + name})
		}
	}
	if at.Shadowed {
		shadowed(out)
	}
	at.follow(folder, out)
	at.unheld(out, read)
	return out
}

// unheld raises a line that nothing would hold to what was read in its text, unless
// that is plain.
func (at *Place) unheld(commands []Command, read shell.Report) {
	notPlain := read.NotPlain
	reads := !slices.ContainsFunc(commands, func(c Command) bool { return c.Class != ReadOnly })
	if reads && at.Bare && read.Hidden != "" { // it may find a secret
		for i := range commands {
			commands[i].Class, commands[i].Reason = Unparsable, read.Hidden
		}
		return
	}
	machine := slices.ContainsFunc(commands, func(c Command) bool { return c.ShowsMachine() })
	if !at.Loose && !(at.Full && (!reads || machine)) {
		return
	}
	if reads && read.Redirects && notPlain == "" {
		notPlain = "a redirection"
	}
	for i := range commands {
		if c := &commands[i]; reads && notPlain == "" && !(at.Full && c.ShowsMachine()) {
			notPlain = c.NotPlain()
		}
	}
	for i := range commands {
		if c := &commands[i]; notPlain != "" && c.Class.Rank() < Destructive.Rank() {
			c.Class, c.Reason = Destructive, "nothing confines it, and its text isn't plain: "+notPlain
		}
	}
}

// ShowsMachine reports whether a call runs a program that shows the machine.
func ShowsMachine(t belay.ToolSpec, args json.RawMessage, at Place) bool {
	return slices.ContainsFunc(CommandsOf(t, args, at), func(c Command) bool { return c.ShowsMachine() })
}

// commandsOf are the simple commands of a line.
func commandsOf(line string, at Place) []Command {
	return whole(shell.Classify(line, shell.Options{Workspace: at.Workspace, Dir: at.Workspace, Home: at.Home, Dialect: at.Dialect}))
}

// whole is a report as commands: what is said of the whole and of no command of
// it, such as that it can't be read, is one command more.
func whole(r shell.Report) []Command {
	out := slices.Clone(r.Commands)
	if !slices.ContainsFunc(out, func(c Command) bool { return c.Class.Rank() >= r.Class.Rank() }) {
		out = append(out, Command{Name: "(line)", Class: r.Class, Reason: r.Reason})
	}
	return out
}

// shadowed raises commands whose program could be one of the workspace.
func shadowed(commands []Command) {
	for i := range commands {
		if c := &commands[i]; c.Class == ReadOnly && !strings.Contains(c.Name, "/") {
			c.Class, c.Reason = WriteWorkspace, "PATH leads into the workspace: the program may be one of it"
		}
	}
}

// text is an argument that is a text.
func (a *arguments) text(name string) (text string, ok bool) { return as[string](a.named(name)) }

// argv is an argument that is a list of words.
func (a *arguments) argv(name string) ([]string, bool) {
	argv, ok := as[[]string](a.named(name))
	return argv, ok && len(argv) > 0
}

// env are the variables that a call sets, by name. The tool refuses what is no such thing.
func (a *arguments) env(name string) map[string]string {
	env, _ := as[map[string]string](a.named(name))
	return env
}

// named is the argument of a name; a tool that declares none has none.
func (a *arguments) named(name string) (any, bool) {
	if name == "" {
		return nil, false
	}
	return a.at([]string{name})
}
