package shell

import (
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
)

// Code of sed and awk is harmless if nothing in it can run, write or name another
// file to read. What may is Unparsable, whatever it would do.

// sed judges sed: its scripts, and the files that it reads or changes.
func sed(s *start, p *program) {
	operands := s.options(p, s.args)
	if (!s.version || s.several) && !s.pattern && len(operands) > 0 {
		sedCode(s, operands[0])
	}
	s.operands(p.args, operands)
}

// sedCode judges a script of sed. Versions differ in whether a delimiter between
// brackets is text, so both readings count: one may fail, none may do harm.
func sedCode(s *start, w word) {
	with, without := sedRest(w.text, true), sedRest(w.text, false)
	harm := func(rest string) bool { return rest != "" && strings.IndexByte("rRwWe", rest[0]) >= 0 }
	if !w.lit || harm(with) || harm(without) || with != "" && without != "" {
		s.raise(Unparsable, "the script of sed runs, writes or reads something, or can't be read")
	}
}

// sedCommand is a command without an address that only prints; a blank ends a
// label, and the text of a, i and c continues behind a backslash.
var sedCommand = match.Lazy(`^(?:[{}=dDgGhHnNpPxzF]|#[^\n]*|[:btT][ \t]*[^; \t\r\v\f\n}]*|[aic](?:[^\\\n]|\\.|\\\n)*|[qQlL][ \t0-9]*)`)

// sedRest is what is left of a script from where it does more than print, or can't
// be read. sets says that a delimiter between brackets is text.
func sedRest(p string, sets bool) string {
	ok := true
	for p = strings.TrimLeft(p, " \t\n;"); p != "" && ok; p = strings.TrimLeft(p, " \t\n;") {
		if p, ok = sedAddress(p, sets); !ok || p == "" {
			return p + "?"
		}
		n := len(sedCommand.Get().FindString(p))
		if n > 0 || p[0] != 's' && p[0] != 'y' {
			p, ok = p[n:], n > 0
			continue
		}
		command, rest := p[0], p[1:]
		if rest == "" || strings.IndexByte("\n\\", rest[0]) >= 0 {
			return p
		}
		delimiter := rest[0]
		if rest, ok = sedUntil(rest[1:], delimiter, command == 's' && sets); ok {
			rest, ok = sedUntil(rest, delimiter, false)
		}
		if p = rest; command == 's' {
			p = strings.TrimLeft(p, "gpiImM0123456789")
			ok = ok && (p == "" || strings.IndexByte(" \t\n;}#", p[0]) >= 0)
		}
	}
	if !ok && p == "" {
		return "?"
	}
	return p
}

// sedAddress takes what stands before a command.
func sedAddress(p string, sets bool) (rest string, ok bool) {
	for range 2 {
		p = strings.TrimLeft(p, "0123456789~+$")
		if d := strings.TrimPrefix(p, "\\"); strings.HasPrefix(p, "/") || d != p {
			if d == "" || d[0] == '\n' || d[0] == '\\' {
				return "", false
			}
			if p, ok = sedUntil(d[1:], d[0], sets); !ok {
				return "", false
			}
			p = strings.TrimLeft(p, "IM")
		}
		if p = strings.TrimLeft(p, " \t"); !strings.HasPrefix(p, ",") {
			break
		}
		p = strings.TrimLeft(p[1:], " \t")
	}
	return strings.TrimLeft(p, " \t!"), true
}

// sedUntil is what stands behind a delimiter that isn't escaped nor, if sets are
// told apart, between brackets.
func sedUntil(p string, d byte, sets bool) (rest string, ok bool) {
	set := false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\n':
			return "", false
		case c == '\\' && !set:
			i++
		case c == d && !set:
			return p[i+1:], true
		case c == '[' && !set && sets && d != ']':
			set = true
			if strings.HasPrefix(p[i+1:], "^") {
				i++
			}
			if strings.HasPrefix(p[i+1:], "]") {
				i++
			}
		case c == ']':
			set = false
		}
	}
	return "", false
}

// awk judges awk and its kin.
func awk(s *start, p *program) {
	operands := s.options(p, s.args)
	if s.version && !s.several {
		return
	}
	if !s.pattern && len(operands) > 0 {
		awkCode(s, operands[0])
		operands = operands[1:]
	}
	for _, w := range operands {
		if !strings.Contains(w.text, "=") {
			s.read(w)
		}
	}
}

// What is harmful in a program of awk, and what only looks like it. A pipe or a
// redirection stands behind a print, in its statement, or has a getline.
var (
	awkHarm      = match.Lazy(`\b(?:system|extension|getline|ARGV|ARGC)\b|@\s*[A-Za-z_]|\\\n`)
	awkPrint     = match.Lazy(`(?s)print.*[>|]`)
	awkStatement = match.Lazy(`print(?:[^;}\n]|[,&|?:]\s*\n)*[>|]`)
	awkQuiet     = match.Lazy(`\|\||>+ *"/dev/(?:stderr|stdout|null)" *(?:[;}\n]|$)`)
	awkString    = match.Lazy(`"(?:[^"\\\n]|\\.)*"`)
)

// awkCode judges a program of awk. Where no expression nor comment can hold a
// quote it is certain what is a string, and where a statement ends.
func awkCode(s *start, w word) {
	code, prints := awkQuiet.Get().ReplaceAllString(w.text, "&"), awkPrint
	if bare := awkString.Get().ReplaceAllString(code, " "); !strings.ContainsAny(bare, `/#"`) {
		code, prints = bare, awkStatement
	}
	if !w.lit || awkHarm.Get().MatchString(code) || prints.Get().MatchString(code) {
		s.raise(Unparsable, "the program of awk runs, writes or reads something, or can't be read")
	}
}
