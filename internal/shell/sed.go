package shell

import "strings"

// sedScript is a script of sed, as far as it has been read.
type sedScript struct {
	s    *start
	rest string
	sets bool // a delimiter between brackets is text; versions differ in it, so both readings count
}

// sedCode judges a script of sed: some of its commands write, read or run. One
// that can't be read is Unparsable.
func (s *start) sedCode(w word) {
	if !w.lit {
		s.raise(Unparsable, "what sed does only shows when it runs")
		return
	}
	with, without := sedScript{s, w.text, true}, sedScript{s, w.text, false}
	ok := with.read()
	if strings.Contains(w.text, "[") {
		ok = without.read() || ok
	}
	if !ok {
		s.raise(Unparsable, "the script of sed can't be read")
	}
}

// read takes the whole script; false is one that this reading fails at.
func (p *sedScript) read() bool {
	for {
		if p.skip(" \t\n;"); p.rest == "" {
			return true
		}
		if !p.address() {
			return false
		}
		p.skip(" \t!")
		if p.rest == "" || !p.command(p.take()) {
			return false
		}
	}
}

func (p *sedScript) skip(chars string) { p.rest = strings.TrimLeft(p.rest, chars) }

// take takes a character; there is none at the end.
func (p *sedScript) take() (c byte) {
	if p.rest != "" {
		c, p.rest = p.rest[0], p.rest[1:]
	}
	return c
}

// line takes the rest of the line.
func (p *sedScript) line() (l string) {
	l, p.rest, _ = strings.Cut(p.rest, "\n")
	return l
}

// file takes the name of a file, which is the rest of the line.
func (p *sedScript) file() word { return literal(strings.TrimSpace(p.line())) }

// command takes what stands behind the letter of a command.
func (p *sedScript) command(c byte) bool {
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case '#':
		p.line()
	case ':', 'b', 't', 'T':
		p.skip(" \t")
		p.rest = strings.TrimLeftFunc(p.rest, func(r rune) bool { return !strings.ContainsRune("; \t\r\v\f\n}", r) }) // a blank ends it too: what follows is the next command
	case 'a', 'i', 'c': // the text continues behind a line that ends in a backslash; two of them are one that means itself
		for l := p.line(); (len(l)-len(strings.TrimRight(l, "\\")))%2 != 0 && p.rest != ""; {
			l = p.line()
		}
	case 'q', 'Q', 'l', 'L':
		p.skip(" \t0123456789")
	case 'r', 'R':
		p.s.r.reads(&p.s.touched, p.file(), p.s.sc)
	case 'w', 'W':
		p.s.writes(p.file())
	case 'e':
		p.s.raise(Unparsable, "the script of sed runs commands")
	case 's', 'y':
		d := p.take()
		if d == 0 || d == '\n' || d == '\\' || !p.until(d, c == 's' && p.sets) || !p.until(d, false) {
			return false
		}
		return c == 'y' || p.flags()
	default:
		return false
	}
	return true
}

// flags takes what stands behind s/…/…/.
func (p *sedScript) flags() bool {
	p.skip("gpiImM0123456789")
	if strings.HasPrefix(p.rest, "w") {
		p.take()
		p.s.writes(p.file())
		return true
	} else if strings.HasPrefix(p.rest, "e") {
		p.s.raise(Unparsable, "sed runs what it has replaced")
	}
	return p.rest == "" || strings.IndexByte(" \t\n;}#", p.rest[0]) >= 0
}

// address takes what stands before a command.
func (p *sedScript) address() bool {
	for range 2 {
		p.skip("0123456789~+$")
		if d := strings.TrimLeft(p.rest, "\\"); strings.HasPrefix(p.rest, "\\") && len(p.rest)-len(d) == 1 || strings.HasPrefix(p.rest, "/") {
			if p.rest = d; d == "" || d[0] == '\n' || !p.until(p.take(), p.sets) {
				return false
			}
			p.skip("IM")
		}
		if p.skip(" \t"); !strings.HasPrefix(p.rest, ",") {
			return true
		}
		p.take()
		p.skip(" \t")
	}
	return true
}

// until takes a text up to a delimiter that isn't escaped nor, if sets are told
// apart, between brackets.
func (p *sedScript) until(d byte, sets bool) bool {
	set := false
	for p.rest != "" {
		switch c := p.take(); {
		case c == '\\' && !set:
			p.take()
		case c == d && !set:
			return true
		case c == '[' && !set && sets && d != ']':
			set = true
			p.rest = strings.TrimPrefix(strings.TrimPrefix(p.rest, "^"), "]")
		case c == ']':
			set = false
		}
	}
	return false
}

// sed judges sed: its scripts, and the files that it reads or changes.
func (s *start) sed(p *program) {
	operands := s.options(p, s.args)
	if (!s.version || s.several) && !s.pattern && len(operands) > 0 {
		s.sedCode(operands[0])
	}
	s.operands(p.args, operands)
}
