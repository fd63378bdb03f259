package shell

import "strings"

// awkCode judges a program of awk: it may run commands, write files and connect.
// One that runs anything, or that can't be read, is Unparsable.
func (s *start) awkCode(w word) {
	if !w.lit {
		s.raise(Unparsable, "what awk does only shows when it runs")
		return
	}
	p := awkProgram{s: s, rest: w.text}
	for p.rest != "" {
		if !p.token() {
			s.raise(Unparsable, "the program of awk runs commands, or can't be read")
			return
		}
	}
}

// awkProgram is a program of awk, as far as it has been read.
type awkProgram struct {
	s     *start
	rest  string
	last  string // the token before, "" at the beginning
	print bool   // a print or printf is open
}

// token takes one token; false is one that runs something or can't be read.
func (p *awkProgram) token() bool {
	c, token := p.rest[0], p.rest[:1]
	switch {
	case c == ' ' || c == '\t':
		p.rest = p.rest[1:]
		return true
	case c == '#':
		p.rest = strings.TrimLeftFunc(p.rest, func(r rune) bool { return r != '\n' })
		return true
	case c == '\\':
		p.rest = strings.TrimPrefix(p.rest, "\\\n")
		return p.rest == "" || p.rest[0] != '\\'
	case c == '"':
		if token = quotedBy(p.rest, '"'); token == "" {
			return false
		}
		p.text(token[1 : len(token)-1])
	case c == '/' && (p.expects() || p.hides()):
		if token = quotedBy(p.rest, '/'); token == "" || !p.expects() {
			return false
		}
	case isName(c):
		token = p.rest[:len(p.rest)-len(strings.TrimLeftFunc(p.rest, func(r rune) bool { return r < 0x80 && (isName(byte(r)) || r >= '0' && r <= '9') }))]
		if oneOf(token, "system", "extension", "load") {
			return false
		}
		p.print = p.print || token == "print" || token == "printf"
	case c == '|':
		if !strings.HasPrefix(p.rest, "||") {
			return false
		}
		token = "||"
	case c == '@':
		return false
	case c == '>' && p.print:
		p.redirect()
		return true
	case c == ';' || c == '{' || c == '}' || c == '\n' && !oneOf(p.last, ",", "&", "||"): // behind these a line continues
		p.print = false
	}
	p.rest, p.last = p.rest[len(token):], token
	return true
}

func isName(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// expects reports whether a slash begins a regular expression: where awk can't
// take it for a division. Elsewhere what follows is read as code, which is the
// stricter reading.
func (p *awkProgram) expects() bool {
	return p.last == "" || strings.Contains("(,{};\n!~&||=?:<>*%^", p.last) || oneOf(p.last, "print", "printf", "return", "in")
}

// hides reports whether a slash that may be a division would, as the beginning of
// a regular expression, have a quote or a comment in it: the rest would be read
// in two ways.
func (p *awkProgram) hides() bool {
	if strings.ContainsAny(p.last[len(p.last)-1:], "0123456789.]\"") || isName(p.last[0]) && !oneOf(p.last, "else", "do", "exit", "getline", "case", "delete") {
		return false // behind a value it is a division
	}
	line, _, _ := strings.Cut(p.rest[1:], "\n")
	i := strings.LastIndexByte(line, '/')
	return i >= 0 && strings.ContainsAny(line[:i], `"#`)
}

// quotedBy is the string or regular expression that a text begins with; it is
// empty if there is none, or if versions differ in where it ends.
func quotedBy(s string, sign byte) string {
	set := 0
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			return ""
		case c == '\\':
			i++
		case c == sign && set > 0:
			return ""
		case c == sign:
			return s[:i+1]
		case c == '[' && sign == '/' && set == 0:
			if set = i; strings.HasPrefix(s[i+1:], "^") {
				i++
			}
			if strings.HasPrefix(s[i+1:], "]") {
				i++
			}
		case c == ']':
			set = 0
		}
	}
	return ""
}

// text judges a string, which may be the name of a file or of a connection.
func (p *awkProgram) text(s string) {
	if strings.HasPrefix(s, "/inet") {
		p.s.raise(Network, "awk connects to "+clip(s))
	}
	if why := p.s.r.secretPlace(s); why != "" {
		p.s.raise(EscapeAttempt, why)
	}
}

// redirect judges print > "file": the name must be one string.
func (p *awkProgram) redirect() {
	p.rest = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(p.rest, ">"), ">"), " \t")
	p.last = ">"
	file := ""
	if strings.HasPrefix(p.rest, `"`) {
		file = quotedBy(p.rest, '"')
	}
	after := strings.TrimLeft(p.rest[len(file):], " \t")
	if file == "" || strings.Contains(file, "\\") || after != "" && strings.IndexByte(";}\n", after[0]) < 0 {
		p.s.writes(word{src: clip(p.rest)})
		return
	}
	p.rest, p.last = after, file
	p.text(file[1 : len(file)-1])
	p.s.writes(literal(file[1 : len(file)-1]))
}

// awk judges awk and its kin.
func (s *start) awk(p *program) {
	operands := s.options(p, s.args)
	if s.version && !s.several {
		return
	}
	if !s.pattern && len(operands) > 0 {
		s.awkCode(operands[0])
		operands = operands[1:]
	}
	for _, w := range operands {
		if !strings.Contains(w.text, "=") {
			s.r.reads(&s.touched, w, s.sc)
		}
	}
}

// inline judges code that an option brings.
func (s *start) inline(w word) {
	if strings.HasSuffix(s.name, "sed") {
		s.sedCode(w)
	} else {
		s.awkCode(w)
	}
}
