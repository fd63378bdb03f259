package shell

import (
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
)

// script judges sed, awk and their kin: their code, and the files that they read or
// change.
func script(s *start, p *program) {
	operands := s.options(p, s.args)
	if !s.pattern && len(operands) > 0 {
		s.scriptOf(operands[0])
		operands = operands[1:]
	}
	for _, w := range operands {
		if s.inplace {
			s.write(w)
		} else if p.args != "" || !strings.Contains(w.text, "=") {
			s.read(w)
		}
	}
}

// sedPlain is a script of sed that only prints. awkHarm is what one of awk has that may do
// more.
var (
	sedPlain = match.Lazy(`^(?:[ \t\n;]*(?:(?:[0-9]+|\$|/[^/\\\[\n]*/)(?:,(?:[+~]?[0-9]+|\$|/[^/\\\[\n]*/))?)?[ \t]*!?[ \t]*` +
		`(?:[pdqgGhHnNDPx={}]|s/(?:[^/\\\[\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gpiI0-9]*|s\|(?:[^|\\\[\n]|\\.)*\|(?:[^|\\\n]|\\.)*\|[gpiI0-9]*)[ \t]*(?:[;\n{}]|$))*$`)
	awkHarm = match.Lazy(`\b(?:system|extension|getline|ARGV|ARGC)\b|[@>\\]|(?:^|[^|])\|(?:[^|]|$)`)
)

// scriptOf judges code of sed or awk: it hides what it does unless it plainly prints.
func (s *start) scriptOf(w word) {
	plain := w.lit && sedPlain.Match(w.text)
	if !strings.HasSuffix(s.name, "sed") {
		plain = w.lit && !awkHarm.Match(w.text)
	}
	if !plain {
		s.r.hides("the code of " + s.name + " may run, write or read more")
	}
}
