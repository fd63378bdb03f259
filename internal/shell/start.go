package shell

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is how a command is reached.
type call struct {
	direct  bool     // no shell is there: builtins and functions don't exist
	in      input    // what it reads from
	paths   touched  // what its redirections and assignments do
	wrapped []string // the wrappers it was found in
}

// start is one program that is about to be started.
type start struct {
	touched
	r        *reader
	sc       *scope
	call     call
	name     string // as written
	args     []word
	ended    bool   // a "--" has ended the options
	pattern  bool   // an option has brought what the first operand would be
	inplace  bool   // operands are written instead of read
	target   bool   // an option has named the place that is written
	version  bool   // it only says what it is
	mode     string // of programs whose options choose what they do
	replace  string // what xargs replaces
	split    []word // what env -S splits
	archives []word // what tar works on
	module   bool   // the program is a module that an option has named
	stop     bool   // what follows are words of something else
	done     bool   // it is on record already
}

// simple judges a simple command.
func (r *reader) simple(c *syntax.CallExpr, sc *scope, in input, paths touched) outcome {
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
		if paths.touched() {
			r.add(paths.command("assignment"))
		} else {
			r.raise(ReadOnly, "nothing but variables is set")
		}
		return stays(sc.dirs)
	}
	return r.run(words, sc, call{in: in, paths: paths})
}

// run judges words whose first is a command.
func (r *reader) run(words []word, sc *scope, c call) outcome {
	s := &start{touched: c.paths, r: r, sc: sc, call: c, name: words[0].src, args: words[1:]}
	if s.class == "" {
		s.class = ReadOnly
	}
	name := words[0].text
	switch {
	case len(c.wrapped) > maxLevels:
		s.raise(Unparsable, "wrappers within wrappers, deeper than anybody reads")
	case !words[0].lit || name == "":
		s.raise(Unparsable, "which command this is only shows when it runs")
	case !ascii(name) || oddText(name) != "" || strings.ContainsAny(name, " \n\t"):
		s.raise(Unparsable, "the command's name has characters that look like others")
	case sc.defines(name) && !c.direct:
		if !sc.funcs[name] {
			s.raise(Destructive, "it starts itself again and again")
		}
		s.finish()
		if r.facts.moves {
			return outcome{}
		}
		return stays(sc.dirs)
	case !c.direct && isBuiltin(name):
		return s.builtin()
	default:
		s.program()
		return stays(sc.dirs)
	}
	s.finish()
	return outcome{}
}

// finish records the command.
func (s *start) finish() {
	c := s.command(s.name)
	c.Wrapped = s.call.wrapped
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
	for v := range s.sc.vars {
		s.raise(WriteWorkspace, "programs see the variable "+clip(v))
	}
	base, ok := s.known()
	if !ok {
		s.finish()
		return
	}
	if s.wrapper(base) {
		return
	}
	p := s.r.lookup(base)
	switch {
	case p == nil:
		s.raise(Destructive, "nothing is known about this program")
	case len(s.args) == 1 && s.args[0].lit && (s.args[0].text == "--version" || s.args[0].text == "--help"):
	case s.special(base, p):
	default:
		s.judge(p, s.args)
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
	if !strings.Contains(s.name, "/") {
		return s.name, true
	}
	for _, d := range systemDirs {
		if path.Dir(s.name) == d {
			return path.Base(s.name), true
		}
	}
	s.runsFile(literal(s.name))
	return "", false
}

// runsFile judges a program or script by where it lies.
func (s *start) runsFile(w word) {
	names, known := s.r.places(w, s.sc)
	if !known {
		s.raise(Unparsable, "it runs a file, and nobody can tell which")
		return
	}
	for _, p := range names {
		if within(p, "/dev") || within(p, "/proc") {
			s.raise(Unparsable, "it runs what "+p+" brings, which only shows then")
		}
		s.reads = append(s.reads, p)
		if s.r.o.Workspace != "" && within(p, s.r.o.Workspace) {
			s.raise(WriteWorkspace, "it runs "+p+" of the workspace")
		} else {
			s.raise(Destructive, "nothing is known about the program "+p)
		}
	}
}

// judge holds words against a row: options, then subcommand or operands.
func (s *start) judge(p *program, words []word) {
	operands := s.options(p, words)
	if s.version {
		return
	}
	if p.sub && len(operands) > 0 {
		s.subcommand(p, operands)
		return
	}
	if p.class != "" {
		s.raise(p.class, p.why)
	}
	s.operands(p.args, operands)
	if p.class == WriteWorkspace && len(s.touched.writes) == 0 {
		s.worksHere()
	}
}

// worksHere judges a program that writes where it runs.
func (s *start) worksHere() {
	names, known := s.r.places(literal("."), s.sc)
	for _, p := range names {
		known = known && s.r.o.Workspace != "" && within(p, s.r.o.Workspace)
	}
	if !known {
		s.raise(EscapeAttempt, "it works outside the workspace, or nobody can tell where")
	}
}

// subcommand finds the row of a program's subcommand. One that has none may be
// anything: a plugin, an alias.
func (s *start) subcommand(p *program, operands []word) {
	base, _, _ := strings.Cut(p.name, ",")
	if !operands[0].lit {
		s.raise(Unparsable, "which subcommand this is only shows when it runs")
		return
	}
	name := base + " " + operands[0].text
	if w := wrapperNamed(name); w != nil {
		s.name, s.done = name, true
		s.wrap(w, operands[1:])
		return
	}
	q := s.r.lookup(name)
	if q == nil {
		s.raise(Join(p.class, Destructive), "nothing is known about "+base+" "+clip(operands[0].text))
		return
	}
	if !s.specialSub(name, q, operands[1:]) {
		s.judge(q, operands[1:])
	}
}

// operands judges what is left after the options, by what a row calls them.
func (s *start) operands(kind string, words []word) {
	if s.inplace {
		kind = strings.NewReplacer("r", "w").Replace(kind)
	}
	rest := words
	if strings.HasPrefix(kind, "p") {
		kind = kind[1:]
		if !s.pattern && len(rest) > 0 {
			rest = rest[1:]
		}
	}
	switch kind {
	case "", "*":
	case "l":
		for _, w := range rest { // names, not contents
			if list, known := s.r.places(w, s.sc); known {
				s.reads = append(s.reads, list...)
			}
		}
	case "r", "w", "d":
		for _, w := range rest {
			s.effect(option{effect: kind[0]}, "", w)
		}
	case "cp", "mv", "rw":
		s.pair(kind, rest)
	case "ln":
		if len(rest) == 1 {
			s.writes(literal("."))
		} else {
			s.pair("cp", rest)
		}
	case "h":
		for _, w := range rest {
			s.host(w)
		}
	case "+":
		for _, w := range rest {
			if !strings.HasPrefix(w.text, "+") {
				s.raise(Destructive, clip(w.src)+" changes the setting that it would show")
			}
		}
	case "none":
		if len(rest) > 0 {
			s.raise(Destructive, clip(rest[0].src)+" isn't expected there")
		}
	default:
		s.raise(Unparsable, "its operands have no meaning here")
	}
}

// pair judges operands of which the last is written: those before it are read,
// or moved away.
func (s *start) pair(kind string, words []word) {
	for i, w := range words {
		switch last := i == len(words)-1 && i > 0 && !s.target; {
		case last:
			s.writes(w)
		case kind == "mv":
			s.writes(w)
		default:
			s.r.reads(&s.touched, w, s.sc)
		}
	}
}

func (s *start) writes(w word) { s.r.writes(&s.touched, w, s.sc) }

// host notes an address that is connected to.
func (s *start) host(w word) {
	s.raise(Network, "it may connect to "+clip(w.src))
	if h := hostOf(w.text); w.lit && h != "" {
		s.hosts = append(s.hosts, h)
	}
}

// hostOf is the host in an address: a URL, user@host:path, host:port.
func hostOf(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "/")
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	if strings.HasPrefix(s, "[") {
		s, _, _ = strings.Cut(s[1:], "]")
		return s
	}
	s, _, _ = strings.Cut(s, ":")
	return s
}

// effect does what an option's letter says with its argument.
func (s *start) effect(o option, name string, w word) {
	switch o.effect {
	case 0:
	case 'r':
		s.r.reads(&s.touched, w, s.sc)
	case 'w':
		s.writes(w)
	case 'T':
		s.target = true
		s.writes(w)
	case 'd':
		s.r.removes(&s.touched, w, s.sc)
	case 'W':
		s.raise(WriteWorkspace, "option "+name+" writes")
	case 'D':
		s.raise(Destructive, "option "+name+" removes, overwrites or changes the system")
	case 'N':
		s.raise(Network, "option "+name+" connects")
	case 'h':
		s.host(w)
	case 'E':
		s.raise(EscapeAttempt, "option "+name+" reaches out of the boundary")
	case 'U':
		s.raise(Unparsable, "option "+name+" runs or loads what can't be judged")
	case 'x':
		s.source(w, name)
	case 'C':
		s.chdir(w)
	case 'i':
		s.inplace = true
		s.raise(WriteWorkspace, "option "+name+" changes files in place")
	case 'p':
		s.pattern = true
	case 's':
		s.pattern = true
		s.inline(w)
	case 'v':
		s.version = true
	case 'e':
		s.helper(w, name)
	case 'f':
		s.scriptFile(w)
	case 'P':
		s.pattern = true
		s.r.reads(&s.touched, w, s.sc)
	case '@':
		s.fromFile(w)
	case 'F':
		s.archives = append(s.archives, w)
	case 'g':
		s.gitSetting(w)
	case 'G':
		s.gitPlace(w)
	case 'M':
		s.pythonModule(w)
	case 'I':
		if s.replace = "{}"; w.lit && w.text != "" {
			s.replace = w.text
		}
	case 'S':
		s.splitString(w)
	case 'o':
		s.sshOption(w)
	case 'm':
		s.mode += name
	default:
		s.raise(Unparsable, "option "+name+" has no meaning here")
	}
}

// chdir takes an option that names the directory the program works in.
func (s *start) chdir(w word) {
	in := s.sc.inner()
	if w.lit {
		in.dirs = in.dirs.to(w.text)
	} else {
		in.dirs = dirs{}
	}
	s.sc = in
}

// source judges the argument of an option, or an operand, that a shell runs.
func (s *start) source(w word, what string) {
	if !w.lit {
		s.raise(Unparsable, what+" runs "+clip(w.src)+", which only shows when it runs")
		return
	}
	s.r.script(w.text, s.within(), append(s.call.wrapped[:len(s.call.wrapped):len(s.call.wrapped)], s.name))
}

// within is the scope of what a program starts: a shell's functions aren't there.
func (s *start) within() *scope {
	in := s.sc.inner()
	in.funcs = nil
	return in
}
