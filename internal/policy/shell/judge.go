package shell

import (
	"path"
	"strings"
)

// judge holds words against a row: options, then subcommand or operands.
func (s *start) judge(p *program, words []word) {
	operands := s.options(p, words)
	if s.version && !s.several && (len(s.args) == 1 || !p.table().any) { // else it may be what another option takes
		return
	}
	if p.sub && len(operands) > 0 {
		s.subcommand(p, operands)
		return
	}
	if p.sub && s.name == "yarn" {
		s.raise(Network, "it fetches what the workspace names")
	}
	if p.sub && p.why == "" { // it says how it is used
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
	if !operands[0].lit {
		s.raise(Unparsable, "which subcommand this is only shows when it runs")
		return
	}
	base := s.group
	if base == "" {
		base = path.Base(s.name)
	}
	name := base + " " + operands[0].text
	if first, _, _ := strings.Cut(p.name, ","); s.group == "" && p.why == "" && lookup(name) == nil {
		name = first + " " + operands[0].text
	}
	q := lookup(name)
	if q != nil && q.starts != "" {
		s.name, s.done = name, true
		s.wrap(q, operands[1:])
		return
	}
	if q == nil && p.why != "" && len(operands) == len(s.args) {
		s.raise(p.class, p.why)
		return
	}
	if q == nil {
		s.raise(Join(p.class, Destructive), "nothing is known about "+base+" "+clip(operands[0].text))
		return
	}
	s.group = name
	if !s.specialSub(name, q, operands[1:]) {
		s.judge(q, operands[1:])
	}
}

// operands judges what is left after the options, by what a row calls them.
func (s *start) operands(kind string, words []word) {
	if s.inplace {
		kind = strings.NewReplacer("r", "w").Replace(kind)
	}
	rest := append(words, s.spilt...)
	if strings.HasPrefix(kind, "p") {
		kind = kind[1:]
		if !s.pattern && len(rest) > 0 && !rest[0].several() {
			rest = rest[1:]
		}
	}
	switch kind {
	case "", "*":
	case "l":
		s.names = true
		for _, w := range rest { // names, not contents
			s.r.through(&s.touched, w, s.sc)
			if list, known := s.r.places(w, s.sc); known {
				s.reads = append(s.reads, list...)
			} else if !w.lit {
				s.reads = append(s.reads, s.r.folder(w, s.sc)...)
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
	case "new": // names of what is made, unless an option has taken them for patterns
		if len(rest) > 0 && !s.pattern {
			s.raise(WriteWorkspace, "it makes "+clip(rest[0].src))
		}
	case "w1":
		for _, w := range rest[:min(1, len(rest))] {
			s.writes(w)
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
		last := i == len(words)-1 && (i > 0 || w.several()) && !s.target
		if kind == "mv" || last {
			s.writes(w)
		}
		if !last { // what is moved is read, under another name
			s.r.reads(&s.touched, w, s.sc)
		}
	}
}

func (s *start) writes(w word) { s.r.writes(&s.touched, w, s.sc) }

// host notes an address that is connected to.
func (s *start) host(w word) {
	s.raise(Network, "it may connect to "+clip(w.src))
	if file, ok := strings.CutPrefix(strings.ToLower(w.text), "file://"); ok {
		s.r.reads(&s.touched, literal(file), s.sc)
	}
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
	case 'W':
		s.raise(WriteWorkspace, "option "+name+" writes")
	case 'D':
		s.raise(Destructive, "option "+name+" removes, overwrites or changes the system")
	case 'N':
		s.raise(Network, "option "+name+" connects")
	case 'E':
		s.raise(EscapeAttempt, "option "+name+" reaches out of the boundary")
	case 'U':
		s.raise(Unparsable, "option "+name+" runs or loads what can't be judged")
	case 'v':
		s.version = true
	case 'm':
		s.mode += name + " "
	case 'i':
		s.inplace = true
		if strings.Contains(w.text, "/") || w.src != "" && !w.lit {
			s.raise(EscapeAttempt, "option "+name+" keeps what was there at another place")
		}
		s.raise(WriteWorkspace, "option "+name+" changes files in place")
	case 'r', 'w', 'T', 'd', 'C', 'F', 'G', 'P', '@', 'h':
		s.placeEffect(o.effect, w)
	default:
		s.codeEffect(o.effect, name, w)
	}
}

// placeEffect is that of options whose argument is a path or a host: it is read
// (r), written (w), written instead of the last operand (T), removed (d), gone
// to (C), an archive (F), a repository (G), read instead of the first operand
// (P), sent (@), connected to (h).
func (s *start) placeEffect(letter byte, w word) {
	switch letter {
	case 'r':
		s.r.reads(&s.touched, w, s.sc)
	case 'T':
		s.target = true
		s.writes(w)
	case 'w':
		s.writes(w)
	case 'd':
		s.r.removes(&s.touched, w, s.sc)
	case 'C':
		s.chdir(w)
	case 'F':
		s.archives = append(s.archives, w)
	case 'G':
		s.gitPlace(w)
	case 'P':
		s.pattern = true
		s.r.reads(&s.touched, w, s.sc)
	case '@':
		s.fromFile(w)
	case 'h':
		s.host(w)
	}
}

// codeEffect is that of options whose argument runs or says what runs: a source
// for a shell (x), a program (e), a file of code (f), code of the program's own
// language (s), what stands for the first operand (p), a module (M), a setting
// of git (g) or of ssh (o), a format of curl (O), words to be split (S), a mark to be replaced (I), the name
// of a variable (V); of a shell an option (q), that it runs a string (c) or its input (k).
func (s *start) codeEffect(letter byte, name string, w word) {
	switch letter {
	case 'x':
		s.source(w, name)
	case 'e':
		s.helper(w, name)
	case 'f':
		s.scriptFile(w)
	case 's':
		if s.pattern && !strings.HasSuffix(s.name, "sed") {
			s.raise(Unparsable, "the code of awk is in several parts")
		}
		s.pattern = true
		s.inline(w)
	case 'p':
		s.pattern = true
	case 'M':
		s.pythonModule(w)
	case 'g':
		s.gitSetting(w)
	case 'o':
		s.sshOption(w)
	case 'O':
		if !w.lit || strings.Contains(w.text, "%output{") || strings.HasPrefix(w.text, "@") {
			s.raise(EscapeAttempt, "option "+name+" may write a file")
		}
	case 'S':
		s.splitString(w)
	case 'V':
		s.named(w)
	case 'c':
		s.string = true
	case 'k':
		s.stdin = true
	case 'q':
		s.shellOption(w)
	case 'I':
		if s.replace = "{}"; w.lit && w.text != "" {
			s.replace = w.text
		}
	default:
		s.raise(Unparsable, "option "+name+" has no meaning here")
	}
}

// chdir takes an option that names the directory the program works in.
func (s *start) chdir(w word) {
	in := s.sc.inner()
	s.r.through(&s.touched, w, s.sc)
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
		why := what + " runs " + clip(w.src) + ", which only shows when it runs"
		s.raise(Unparsable, why)
		s.r.raise(Unparsable, why) // also where the command itself isn't recorded any more
		return
	}
	s.r.script(w.text, Sh, s.within(), append(s.call.wrapped[:len(s.call.wrapped):len(s.call.wrapped)], s.name))
}

// within is the scope of what a program starts: a shell's functions aren't there.
func (s *start) within() *scope {
	in := s.sc.inner()
	in.funcs = nil
	return in
}
