package shell

import "strings"

// awkProgram reads a program of awk as far as it writes, runs or connects.
type awkProgram struct {
	s     *start
	src   string
	at    int
	last  string // the token before, "" at the beginning
	text  string // the value of the last token, if it is a string
	print bool   // a print or printf is open
	deep  int    // parentheses that are open
	level int    // of them, where the print stands
}

// awkCode judges a program; one that may run what isn't written down in it is
// Unparsable.
func (s *start) awkCode(w word) {
	if !w.lit {
		s.raise(Unparsable, "what awk does only shows when it runs")
		return
	}
	p := awkProgram{s: s, src: w.text}
	for p.at < len(p.src) {
		if !p.token() {
			s.raise(Unparsable, "the program of awk can't be read")
			return
		}
	}
}

// token takes one token and judges it.
func (p *awkProgram) token() bool {
	c := p.src[p.at]
	switch {
	case c == ' ' || c == '\t':
		p.at++
	case c == '\\' && strings.HasPrefix(p.src[p.at:], "\\\n"):
		p.at += 2
	case c == '#':
		if i := strings.IndexByte(p.src[p.at:], '\n'); i >= 0 {
			p.at += i
		} else {
			p.at = len(p.src)
		}
	case c == '"':
		return p.quoted()
	case c == '/' && p.operandNext():
		return p.regex()
	case c == '/' && p.hides():
		return false
	case isName(c):
		from := p.at
		for p.at < len(p.src) && (isName(p.src[p.at]) || p.src[p.at] >= '0' && p.src[p.at] <= '9') {
			p.at++
		}
		return p.word(p.src[from:p.at])
	default:
		return p.sign(c)
	}
	return true
}

func isName(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// operandNext tells whether a slash begins a regular expression: where awk
// can't take it for a division. Elsewhere what follows is read as code, which
// is the stricter reading.
func (p *awkProgram) operandNext() bool {
	switch p.last {
	case "", "(", ",", "{", "}", ";", "\n", "!", "~", "&", "|", "=", "?", ":", "<", ">", "*", "%", "^", "print", "printf", "return", "in":
		return true
	}
	return false
}

// hides tells whether a slash that may be a division would, as the beginning of
// a regular expression, have a quote or a comment in it: the rest would be read
// in two ways.
func (p *awkProgram) hides() bool {
	if last := p.last[max(0, len(p.last)-1):]; last != "" && strings.ContainsAny(last, "0123456789.]\"") || isName(p.last[0]) && !oneOf(p.last, "else", "do", "exit", "getline", "case", "delete") {
		return false // behind a value it is a division
	}
	line, _, _ := strings.Cut(p.src[p.at+1:], "\n")
	i := strings.LastIndexByte(line, '/')
	return i >= 0 && strings.ContainsAny(line[:i], `"#`)
}

func (p *awkProgram) took(token string) { p.last, p.text = token, "" }

// quoted takes a string.
func (p *awkProgram) quoted() bool {
	from := p.at + 1
	for p.at++; p.at < len(p.src); p.at++ {
		switch p.src[p.at] {
		case '\\':
			p.at++
		case '\n':
			return false
		case '"':
			alone := p.starts()
			p.last, p.text = `"`, p.src[from:p.at]
			if !alone || strings.Contains(p.text, "\\") {
				p.text = ""
			}
			if strings.HasPrefix(p.src[from:], "/inet") {
				p.s.raise(Network, "awk connects to "+clip(p.src[from:p.at]))
			}
			if why := p.s.r.secretPlace(p.src[from:p.at]); why != "" {
				p.s.raise(EscapeAttempt, why)
			}
			p.at++
			return true
		}
	}
	return false
}

// starts tells whether a string begins an expression, so that nothing is joined
// to it from before.
func (p *awkProgram) starts() bool {
	switch p.last {
	case "", ";", "{", "}", "\n", "(", "&", "|", "!", "=":
		return true
	}
	return false
}

// regex takes a regular expression.
func (p *awkProgram) regex() bool {
	for p.at++; p.at < len(p.src); p.at++ {
		switch p.src[p.at] {
		case '\\':
			p.at++
		case '\n':
			return false
		case '[': // versions differ in whether a slash may stand there
			if end := setEnd(p.src[p.at:]); end < 0 || strings.IndexByte(p.src[p.at:p.at+end], '/') >= 0 {
				return false
			}
		case '/':
			p.at++
			p.took("/")
			return true
		}
	}
	return false
}

// setEnd is where a set that begins with a bracket ends, at the latest; it is
// below 0 if nowhere.
func setEnd(s string) int {
	i := 1 + len(s[1:]) - len(strings.TrimPrefix(s[1:], "^"))
	for first := true; i < len(s); i++ {
		switch {
		case s[i] == ']' && !first:
			return i
		case strings.HasPrefix(s[i:], "[:"):
			if end := strings.Index(s[i:], ":]"); end > 0 {
				i += end + 1
			}
		}
		first = false
	}
	return -1
}

// word judges a name.
func (p *awkProgram) word(name string) bool {
	p.took(name)
	switch name {
	case "system":
		return p.call()
	case "print", "printf":
		p.print, p.level = true, p.deep
	case "extension", "load":
		return false
	}
	return true
}

// call judges system("…"): the whole argument must be one string.
func (p *awkProgram) call() bool {
	rest := strings.TrimLeft(p.src[p.at:], " \t")
	text, ok := wholeString(strings.TrimPrefix(rest, "("), ")")
	if !ok || !strings.HasPrefix(rest, "(") {
		p.s.raise(Unparsable, "awk runs what only shows when it runs")
		return true
	}
	p.s.source(literal(text), "awk system")
	return true
}

// wholeString is a string without escapes that stands alone before one of some
// ends, or before the end of everything.
func wholeString(s, ends string) (string, bool) {
	s = strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(s, `"`) {
		return "", false
	}
	end := strings.IndexByte(s[1:], '"')
	if end < 0 || strings.Contains(s[1:end+1], "\\") {
		return "", false
	}
	after := strings.TrimLeft(s[end+2:], " \t")
	return s[1 : end+1], after == "" || strings.IndexByte(ends, after[0]) >= 0
}

// sign judges a character that is no name, string or expression.
func (p *awkProgram) sign(c byte) bool {
	rest := p.src[p.at+1:]
	p.at++
	switch c {
	case '(', '[':
		p.deep++
	case ')', ']':
		p.deep--
	case '\n':
		p.print = p.print && oneOf(p.last, ",", "&", "|") // there a line goes on
	case ';', '}', '{':
		p.print = false
	case '@':
		return false
	case '|':
		if strings.HasPrefix(rest, "|") {
			p.at++
			break
		}
		p.pipe(strings.TrimPrefix(rest, "&"))
	case '>':
		if p.print && p.deep == p.level {
			p.redirect(strings.TrimPrefix(rest, ">"))
		}
		p.at += len(rest) - len(strings.TrimPrefix(rest, ">"))
	}
	p.took(string(c))
	return true
}

// pipe judges print | "command" and "command" | getline.
func (p *awkProgram) pipe(rest string) {
	if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "getline") {
		if strings.HasPrefix(p.text, "/inet") {
			return
		}
		if p.text == "" {
			p.s.raise(Unparsable, "awk runs what only shows when it runs")
			return
		}
		p.s.source(literal(p.text), "awk |")
		return
	}
	text, ok := wholeString(rest, ";}\n")
	if !ok {
		p.s.raise(Unparsable, "awk runs what only shows when it runs")
		return
	}
	p.s.source(literal(text), "awk |")
}

// redirect judges print > "file".
func (p *awkProgram) redirect(rest string) {
	text, ok := wholeString(rest, ";}\n")
	if !ok {
		p.s.writes(word{src: clip(strings.TrimLeft(rest, " \t"))})
		return
	}
	p.s.writes(literal(text))
}

// awk judges awk and its kin.
func (s *start) awk(p *program) {
	operands := s.options(p, s.args)
	if s.version {
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
	switch base := s.name[strings.LastIndexByte(s.name, '/')+1:]; {
	case strings.HasSuffix(base, "sed"):
		s.sedCode(w)
	case strings.HasSuffix(base, "awk"):
		s.awkCode(w)
	default:
		s.raise(Unparsable, "code in a language that isn't read")
	}
}
