package shell

import "strings"

// sed judges a script of sed: some of its commands write, read or run.
type sedScript struct {
	s    *start
	src  string
	at   int
	sets bool // a delimiter between brackets is text; versions differ in it, so both readings count
}

// sedCode judges a script; one that can't be read is Unparsable.
func (s *start) sedCode(w word) {
	if !w.lit {
		s.raise(Unparsable, "what sed does only shows when it runs")
		return
	}
	ways := [...]sedScript{{s: s, src: w.text, sets: true}, {s: s, src: w.text}}
	if !ways[0].read() && !ways[1].read() {
		s.raise(Unparsable, "the script of sed can't be read")
	}
	if strings.Contains(w.text, "[") {
		ways[1].at = 0
		ways[1].read()
	}
}

// read takes the whole script; false is one that this reading fails at.
func (p *sedScript) read() bool {
	for p.at < len(p.src) {
		if !p.command() {
			return false
		}
	}
	return true
}

func (p *sedScript) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *sedScript) skip(chars string) {
	for p.at < len(p.src) && strings.IndexByte(chars, p.src[p.at]) >= 0 {
		p.at++
	}
}

// line takes the rest of the line.
func (p *sedScript) line() string {
	rest := p.src[p.at:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		p.at += i + 1
		return rest[:i]
	}
	p.at = len(p.src)
	return rest
}

// command takes an address and a command.
func (p *sedScript) command() bool {
	p.skip(" \t\n;")
	if p.at == len(p.src) {
		return true
	}
	if !p.address() {
		return false
	}
	p.skip(" \t!")
	c := p.peek()
	p.at++
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return true
	case '#':
		p.line()
		return true
	case ':', 'b', 't', 'T':
		rest := p.src[p.at:]
		rest = strings.TrimLeft(rest, " \t")
		p.at = len(p.src) - len(rest)
		i := strings.IndexAny(rest, "; \t\r\v\f\n}") // a blank ends it too: what follows is the next command
		if i < 0 {
			i = len(rest)
		}
		p.at += i
		return true
	case 'a', 'i', 'c':
		return p.text()
	case 'q', 'Q', 'l', 'L':
		p.skip(" \t0123456789")
		return true
	case 'r', 'R':
		p.s.r.reads(&p.s.touched, literal(strings.TrimSpace(p.line())), p.s.sc)
		return true
	case 'w', 'W':
		p.s.writes(literal(strings.TrimSpace(p.line())))
		return true
	case 'e':
		p.run(strings.TrimSpace(p.line()))
		return true
	case 's':
		return p.substitute()
	case 'y':
		d := p.peek()
		p.at++
		return d != 0 && p.until(d) && p.until(d)
	}
	return false
}

// run judges a command of the script that runs something.
func (p *sedScript) run(src string) {
	if src == "" {
		p.s.raise(Unparsable, "sed runs the lines that it reads")
		return
	}
	p.s.source(literal(src), "sed e")
}

// text takes the text of a, i and c, up to a line that doesn't end in a
// backslash; two of them are one that means itself.
func (p *sedScript) text() bool {
	for {
		l := p.line()
		if (len(l)-len(strings.TrimRight(l, "\\")))%2 == 0 || p.at >= len(p.src) {
			return true
		}
	}
}

// address takes what stands before a command.
func (p *sedScript) address() bool {
	for range 2 {
		switch c := p.peek(); {
		case c >= '0' && c <= '9' || c == '$' || c == '+' || c == '~':
			p.at++
			p.skip("0123456789~+$")
		case c == '/':
			p.at++
			if !p.until('/') {
				return false
			}
			p.skip("IM")
		case c == '\\':
			p.at++
			d := p.peek()
			if p.at++; d == 0 || d == '\n' || !p.until(d) {
				return false
			}
			p.skip("IM")
		}
		p.skip(" \t")
		if p.peek() != ',' {
			return true
		}
		p.at++
		p.skip(" \t")
	}
	return true
}

// until takes a text up to a delimiter that isn't escaped.
func (p *sedScript) until(d byte) bool {
	set := false
	for ; p.at < len(p.src); p.at++ {
		switch c := p.src[p.at]; {
		case c == '\\' && !set:
			p.at++
		case c == d && !set:
			p.at++
			return true
		case c == '[' && !set && p.sets && d != ']':
			set = true
			if rest := p.src[p.at+1:]; strings.HasPrefix(rest, "^]") {
				p.at += 2
			} else if strings.HasPrefix(rest, "]") {
				p.at++
			}
		case c == ']':
			set = false
		}
	}
	return false
}

// substitute takes s/…/…/flags.
func (p *sedScript) substitute() bool {
	d := p.peek()
	p.at++
	if d == 0 || d == '\n' || d == '\\' || !p.until(d) || !p.replacement(d) {
		return false
	}
	for {
		c := p.peek()
		switch {
		case c == 'w':
			p.at++
			p.s.writes(literal(strings.TrimSpace(p.line())))
			return true
		case c == 'e':
			p.s.raise(Unparsable, "sed runs what it has replaced")
			p.at++
		case c == 'g' || c == 'p' || c == 'i' || c == 'I' || c == 'm' || c == 'M' || c >= '0' && c <= '9':
			p.at++
		case c == 0 || strings.IndexByte(" \t\n;}#", c) >= 0:
			return true
		default:
			return false
		}
	}
}

// replacement takes what stands in place of a match; brackets mean nothing.
func (p *sedScript) replacement(d byte) bool {
	for ; p.at < len(p.src); p.at++ {
		switch p.src[p.at] {
		case '\\':
			p.at++
		case d:
			p.at++
			return true
		}
	}
	return false
}

// sed judges sed: its scripts, and the files that it reads or changes.
func (s *start) sed(p *program) {
	operands := s.options(p, s.args)
	if !s.version && !s.pattern && len(operands) > 0 {
		s.sedCode(operands[0])
	}
	s.operands(p.args, operands)
}
