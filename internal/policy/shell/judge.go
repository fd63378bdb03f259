package shell

import (
	"path"
	"slices"
	"strings"
)

// judge holds words against a row: options, then subcommand or operands.
func (s *start) judge(p *program, words []word) {
	operands := s.options(p, words)
	if s.version && slices.ContainsFunc(s.args, func(w word) bool { return w.several() && w.option() }) {
		s.r.hides("a word may be another option of " + s.name)
	}
	if s.version && (len(s.args) == 1 || !p.table().any) { // else it may be what another option takes
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
	if p.class == WriteWorkspace && len(s.Writes) == 0 {
		s.worksHere()
	}
}

// inWorkspace reports whether every path that a word may name lies in the workspace.
func (s *start) inWorkspace(w word) bool {
	names, known := s.sc.places(w)
	return known && s.r.o.Workspace != "" && !slices.ContainsFunc(names, func(p string) bool { return !within(p, s.r.o.Workspace) })
}

// worksHere judges a program that writes where it runs.
func (s *start) worksHere() {
	if !s.inWorkspace(literal(".")) {
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
		wrapper{s}.judge(q, operands[1:])
		return
	}
	if q == nil && p.why != "" && len(operands) == len(s.args) {
		s.raise(p.class, p.why)
		return
	}
	if q == nil {
		s.raise(join(p.class, Destructive), "nothing is known about "+base+" "+clip(operands[0].text))
		return
	}
	s.group = name
	if !specialSub(s, name, q, operands[1:]) {
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
		if !s.pattern && len(rest) > 0 && !rest[0].several() {
			rest = rest[1:]
		}
	}
	switch kind {
	case "", "*":
	case "l":
		s.names = true
		for _, w := range rest { // names, not contents
			s.sc.through(&s.Command, w)
			if list, known := s.sc.places(w); known {
				s.Reads = append(s.Reads, list...)
			} else if !w.lit {
				s.Reads = append(s.Reads, s.sc.folder(w)...)
			}
		}
	case "r":
		for _, w := range rest {
			s.read(w)
		}
	case "w", "w1":
		if kind == "w1" {
			rest = rest[:min(1, len(rest))]
		}
		for _, w := range rest {
			s.write(w)
		}
	case "d":
		for _, w := range rest {
			s.remove(w)
		}
	case "cp", "mv", "rw":
		s.pair(kind, rest)
	case "ln":
		if len(rest) == 1 {
			s.write(literal("."))
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
			s.write(w)
		}
		if !last { // what is moved is read, under another name
			s.read(w)
		}
	}
}

func (s *start) read(w word) { s.r.reads(&s.Command, w, s.sc) }

func (s *start) write(w word) { s.r.writes(&s.Command, w, s.sc) }

func (s *start) remove(w word) { s.r.removes(&s.Command, w, s.sc) }

// host notes an address that is connected to.
func (s *start) host(w word) {
	s.raise(Network, "it may connect to "+clip(w.src))
	if file, ok := strings.CutPrefix(strings.ToLower(w.text), "file://"); ok {
		s.read(literal(file))
	}
	if h := hostOf(w.text); w.lit && h != "" {
		s.Hosts = append(s.Hosts, h)
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

// source judges the argument of an option, or an operand, that a shell runs.
func (s *start) source(w word, what string) {
	if !w.lit {
		why := what + " runs " + clip(w.src) + ", which only shows when it runs"
		s.raise(Unparsable, why)
		s.r.raise(Unparsable, why) // also where the command itself isn't recorded any more
		return
	}
	s.r.script(w.text, Sh, s.within(), s.wrappedIn())
}

// within is the scope of what a program starts: a shell's functions aren't there.
func (s *start) within() *scope {
	in := s.sc.inner()
	in.funcs = nil
	return in
}
