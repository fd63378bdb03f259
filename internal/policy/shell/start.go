package shell

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// call is how a command is reached.
type call struct {
	direct  bool     // no shell is there: builtins and functions don't exist
	in      input    // what it reads from
	paths   Command  // what its redirections and assignments do
	wrapped []string // the wrappers it was found in
}

// start is one program that is about to be started.
type start struct {
	Command
	r    *reader
	sc   *scope
	call call
	said
	recorded bool   // the command is in the report
	name     string // as written
	args     []word
	done     bool   // it is on record already
	group    string // the program and subcommands so far
}

// said is what the options of a program say of it and of its other words.
type said struct {
	odd      bool     // an option isn't known
	pattern  bool     // an option has brought what the first operand would be
	inplace  bool     // operands are written instead of read
	target   bool     // an option has named the place that is written
	version  bool     // it only says what it is
	mode     string   // of programs whose options choose what they do
	replace  string   // what xargs replaces
	split    []word   // what env -S splits
	archives []word   // what tar works on
	commands [][]word // of find, each behind its -exec
	string   bool     // a shell runs a string
	stdin    bool     // a shell runs its input
	module   bool     // the program is a module that an option has named
	stop     bool     // what follows are words of something else
}

// simple judges a simple command.
func (r *reader) simple(c *syntax.CallExpr, sc *scope, in input, paths Command) outcome {
	for _, as := range c.Assigns {
		if as.Name != nil && as.Name.Value == "IFS" && len(c.Args) > 0 && c.Args[0].Lit() == "read" {
			r.word(as.Value, sc) // it splits what is read, nothing else
			continue
		}
		r.assignment(as, sc, &paths, len(c.Args) > 0)
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		words[i] = r.word(w, sc)
	}
	if len(words) == 0 {
		if !r.record(paths, "assignment") {
			r.raise(ReadOnly, "nothing but variables is set")
		}
		return stays(sc.dirs)
	}
	return r.run(words, sc, call{in: in, paths: paths})
}

// run judges words whose first is a command.
func (r *reader) run(words []word, sc *scope, c call) outcome {
	s := &start{Command: c.paths, r: r, sc: sc, call: c, name: words[0].src, args: words[1:]}
	if s.Class == "" {
		s.Class = ReadOnly
	}
	name := words[0].text
	switch {
	case len(c.wrapped) > maxLevels:
		s.raise(Unparsable, "wrappers within wrappers, deeper than anybody reads")
	case !words[0].lit || name == "":
		s.raise(Unparsable, "which command this is only shows when it runs")
	case oddText(name) != "" || strings.ContainsFunc(name, func(c rune) bool { return c > unicode.MaxASCII || unicode.IsSpace(c) }):
		s.raise(Unparsable, "the command's name has characters that look like others")
	case sc.defines(name) && !c.direct:
		return s.function()
	case !c.direct && isBuiltin(name):
		return builtin{s}.judge()
	default:
		s.program()
		return stays(sc.dirs)
	}
	s.finish()
	return outcome{}
}

// raise makes the command at least as strict as c; one that is on record
// already makes the whole so.
func (s *start) raise(c Class, reason string) {
	s.Command.raise(c, reason)
	if s.recorded {
		s.r.raise(c, s.name+": "+reason)
	}
}

// function judges the call of a function. What it does counts where it is
// defined; if it has the name of something known, or may be taken back, what
// goes by that name counts besides.
func (s *start) function() outcome {
	if !s.sc.funcs[s.name] {
		s.raise(Destructive, "it starts itself again and again")
	}
	switch {
	case isBuiltin(s.name):
		builtin{s}.judge()
		return outcome{anywhere, anywhere}
	case s.r.facts.takesBack || lookup(s.name) != nil:
		s.program()
	default:
		s.finish()
	}
	if s.r.facts.moves {
		return outcome{anywhere, anywhere}
	}
	return stays(s.sc.dirs)
}

// finish records the command.
func (s *start) finish() {
	s.recorded = true
	c := s.called(s.name)
	c.Wrapped, c.Astray = s.call.wrapped, s.sc.dirs.astray
	if d := s.sc.dirs.list; len(d) > 1 || len(d) == 1 && d[0] != s.r.o.Dir {
		c.Dirs = d
	}
	for i, w := range s.args {
		if !w.lit {
			c.Open = append(c.Open, i)
		}
		c.Args = append(c.Args, w.src)
	}
	s.r.add(c)
}

// program judges what isn't part of the shell.
func (s *start) program() {
	if s.sc.loose {
		s.raise(WriteWorkspace, "a file that was sourced may have changed what names mean")
	}
	base, ok := s.known()
	if !ok {
		s.finish()
		return
	}
	p := lookup(base)
	if p != nil && p.starts != "" {
		wrapper{s}.judge(p, s.args)
		return
	}
	if base == "bun" && len(s.args) > 0 && !(s.args[0].lit && strings.HasPrefix(s.args[0].text, "-")) {
		s.raise(WriteWorkspace, "a script of the workspace may have that name")
	}
	if names("yarn,pnpm,mvn,bazel,bazelisk,rails,cargo,rustc,rustdoc,rustfmt", base) {
		s.raise(WriteWorkspace, "a file of the workspace may say which "+base+" runs, even for --version")
	}
	if p == nil {
		s.raise(Destructive, "nothing is known about this program")
	} else if len(s.args) != 1 || !hasWord(s.args, "--version", "--help") {
		if judge := special(base, p); judge != nil {
			judge(s, p)
		} else {
			s.judge(p, s.args)
		}
	}
	if !s.done {
		s.finish()
	}
}

// systemDirs are where a path to a program means the program of that name.
var systemDirs = [...]string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"}

// known is the name to look a program up by. Not ok is a program that lies
// elsewhere: nothing is known of it but the place.
func (s *start) known() (string, bool) {
	if !strings.Contains(s.name, "/") || slices.Contains(systemDirs[:], path.Dir(s.name)) {
		return path.Base(s.name), true
	}
	s.runsFile(literal(s.name))
	return "", false
}

// runsFile judges a program or script by where it lies.
func (s *start) runsFile(w word) {
	names, known := s.sc.places(w)
	s.sc.through(&s.Command, w)
	if !known {
		s.raise(Unparsable, "it runs a file, and nobody can tell which")
		return
	}
	for _, p := range names {
		if within(p, "/dev") || within(p, "/proc") {
			s.raise(Unparsable, "it runs what "+p+" brings, which only shows then")
		}
		s.Reads = append(s.Reads, p)
		if why := Secret(p); why != "" {
			s.raise(EscapeAttempt, why)
		}
		if s.r.o.Workspace != "" && within(p, s.r.o.Workspace) {
			s.raise(WriteWorkspace, "it runs "+p+" of the workspace")
		} else {
			s.raise(Destructive, "nothing is known about the program "+p)
		}
	}
}
