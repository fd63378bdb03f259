package shell

import (
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
)

// program is what is known of one program, or of one of its subcommands.
type program struct {
	name string // names that share the row, separated by commas; a subcommand follows its program and a blank
	// opts is the option table, separated by blanks: a name as written, then
	// for an option with an argument "=" (in the same or the next word) or "?"
	// (only in the same word), then a letter of effect. A flag has ":" before
	// its letter; "-[abc]" are the flags -a, -b and -c. "*" means that options
	// beyond the table change nothing that the class doesn't cover; "@" that a
	// word @FILE stands for the words in the file; "." that no option has a dot,
	// nor an argument in the same word. A row without "*" that is
	// read-only has every option that runs, writes, loads or connects.
	opts  string
	args  string // what operands are, see operands
	class Class  // what the program is without options; "" is ReadOnly
	why   string // a reason for the class
	style string // how options are written: see the constants
	sub   bool   // the first operand is a subcommand with a row of its own
	// starts is of a program whose first operand begins a command: which words
	// stand before it, and how it runs, see wrap. Options end at that operand.
	starts string
	code   bool // it runs code that it is given: a file of the workspace is a script, anything else Unparsable
	read   match.Made[table]
}

// How a program takes its options. The zero style is that of GNU: options may
// follow operands, letters may share a word, "--" ends them.
const (
	posix  = "posix"  // options end at the first operand
	single = "single" // long options have one dash, letters never share a word
	bundle = "bundle" // the first word holds option letters also without a dash
	plain0 = "words"  // every word is an operand
	assign = "assign" // operands are name=value, looked up as options
)

// option is one row of an option table.
type option struct {
	arg    byte // 0 for a flag, '=' or '?'
	effect byte // see (*optionReader).effect and what it calls; 0 is none
}

// options goes through the words of a program: each option has its effect, what
// is left are operands.
func (s *start) options(p *program, words []word) (operands []word) {
	return (&optionReader{start: s, p: p, t: p.table()}).take(words)
}

// optionReader takes the options of one program, or subcommand, from its words.
type optionReader struct {
	*start
	p *program
	t *table
}

func (s *optionReader) take(words []word) (operands []word) {
	p, t := s.p, s.t
	for i := 0; i < len(words); i++ {
		w := words[i]
		if t.files && strings.HasPrefix(w.text, "@") {
			w = opaque(w.src) // the file holds words
		}
		switch {
		case s.stop, p.style == plain0:
			return append(operands, words[i:]...)
		case w.lit && w.text == "--" && (p.style == single || p.style == assign): // not all of them know it
		case w.lit && w.text == "--":
			return append(operands, words[i+1:]...)
		case p.style == assign && !w.option() && s.assigned(w):
		case p.style == bundle && i == 0 && w.lit && w.text != "" && w.text[0] != '-':
			i += s.letters(w, words[i+1:], 0)
		case w.lit && w.option() && (strings.HasPrefix(w.text, "--") || p.style == single || t.has(w)):
			i += s.long(w, words[i+1:])
		case w.lit && w.option():
			i += s.letters(w, words[i+1:], 1)
		default:
			s.any(w)
			if operands = append(operands, w); p.style == posix || p.sub || p.starts != "" {
				return append(operands, words[i+1:]...)
			}
		}
	}
	return operands
}

// any takes a word that isn't literal: one of unknown number, or that may begin
// with a dash, may be every option that the program has.
func (s *optionReader) any(w word) {
	switch {
	case w.lit || !w.option(), s.t.dotless && w.glob && strings.Contains(w.text, "."):
	case s.t.sharp, s.t.any && s.p.class == "":
		s.r.hides(clip(w.src) + " may be any option of " + s.name)
	}
}

// has reports whether a table names a word as a whole, such as -version.
func (t *table) has(w word) bool {
	_, ok := t.options[w.text]
	return ok && len(w.text) > 2
}

// long takes a long option; it returns how many of the next words belong to it.
func (s *optionReader) long(w word, next []word) (used int) {
	name, _, joined := strings.Cut(w.text, "=")
	if v, ok := s.t.options[w.text]; ok && joined { // a table may name one value of an option
		s.effect(v, name, word{})
		return 0
	}
	o, ok := s.t.options[name]
	switch {
	case !ok || joined && o.arg == 0:
		s.strange(w)
	case o.effect == 'X':
		s.commands = append(s.commands, append([]word{w}, next...))
		return min(findEnd(next)+1, len(next))
	case joined:
		s.effect(o, name, w.from(strings.IndexByte(w.text, '=')+1))
	case o.arg == '=' && len(next) > 0:
		s.argument(o, name, next[0])
		return 1
	default:
		s.effect(o, name, word{})
	}
	return 0
}

// argument takes the word behind an option: of one that may become several, those
// behind the first are anything.
func (s *optionReader) argument(o option, name string, w word) {
	if w.several() {
		s.r.hides(clip(w.src) + " may be more than one word of " + s.name)
	}
	s.effect(o, name, w)
}

// letters takes short options that share a word, from byte at on.
func (s *optionReader) letters(w word, next []word, at int) (used int) {
	if o, ok := s.t.options["-#"]; ok && wholeNumber(w.text[1:]) { // -20
		s.effect(o, "-#", w.from(1))
		return 0
	}
	for i := at; i < len(w.text); i++ {
		name := "-" + w.text[i:i+1]
		o, ok := s.t.options[name]
		switch {
		case !ok:
			s.strange(w)
			return used
		case o.arg == 0:
			s.effect(o, name, word{})
		case at > 0 && (i+1 < len(w.text) || o.arg == '?'):
			s.effect(o, name, w.from(i+1))
			return used
		case used < len(next): // of tar cf FILE arguments follow in order
			s.argument(o, name, next[used])
			if used++; at > 0 {
				return used
			}
		}
	}
	return used
}

// assigned takes an operand such as of=FILE.
func (s *optionReader) assigned(w word) bool {
	name, _, ok := strings.Cut(w.text, "=")
	if !ok {
		return false
	}
	if o, known := s.t.options[name]; known {
		s.effect(o, name, w.from(len(name)+1))
	} else {
		s.strange(w)
	}
	return true
}

// strange is an option that no table has.
func (s *optionReader) strange(w word) {
	s.odd = true
	why := "option " + clip(w.src) + " of " + s.name + " isn't known"
	switch {
	case s.p.class == "" || s.p.class == ReadOnly:
		s.r.hides(why)
	case !s.t.any:
		s.raise(Destructive, why)
	}
}
