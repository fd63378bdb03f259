package shell

import (
	"slices"
	"strings"
)

// program is what is known of one program, or of one of its subcommands.
type program struct {
	name string // names that share the row, separated by commas; a subcommand follows its program and a blank
	// opts is the option table, separated by blanks: a name as written, then
	// for an option with an argument "=" (in the same or the next word) or "?"
	// (only in the same word), then a letter of effect. A flag has ":" before
	// its letter; "-[abc]" are the flags -a, -b and -c. "*" means that options
	// beyond the table change nothing that the class doesn't cover.
	opts  string
	args  string // what operands are, see operands
	class Class  // what the program is without options; "" is ReadOnly
	why   string // a reason for the class
	style string // how options are written: see the constants
	sub   bool   // the first operand is a subcommand with a row of its own
	some  bool   // some of its subcommands have rows, or start programs
	read  lazy[table]
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
	effect byte // see (*start).effect and what it calls; 0 is none
}

// options goes through the words of a program: each option has its effect, what
// is left are operands.
func (s *start) options(p *program, words []word) (operands []word) {
	t := p.table()
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case s.stop, p.style == plain0:
			return append(operands, words[i:]...)
		case w.lit && w.text == "--":
			s.ended = true
			return append(operands, words[i+1:]...)
		case p.style == assign && !w.option() && s.assigned(t, w):
		case p.style == bundle && i == 0 && w.lit && w.text != "" && w.text[0] != '-':
			i += s.letters(p, t, w, words[i+1:], 0)
		case !w.option():
			if operands = append(operands, w); p.style == posix || p.sub {
				return append(operands, words[i+1:]...)
			}
		case s.valued(p, w):
		case !w.lit && !strings.HasPrefix(w.text, "--"):
			if t.sharp {
				s.raise(Destructive, clip(w.src)+" may be an option, and nobody can tell which")
			}
			if operands = append(operands, w); p.style == posix || p.sub {
				return append(operands, words[i+1:]...)
			}
		case strings.HasPrefix(w.text, "--") || p.style == single || t.has(w):
			i += s.long(t, w, words[i+1:])
		default:
			i += s.letters(p, t, w, words[i+1:], 1)
		}
	}
	return operands
}

// has tells whether a table names a word as a whole, such as -version.
func (t *table) has(w word) bool {
	_, ok := t.options[w.text]
	return ok && len(w.text) > 2
}

// valued takes a short option whose argument, in the same word, isn't literal,
// such as -f"$FILE"; false is a word that may be something else besides.
func (s *start) valued(p *program, w word) bool {
	if w.lit || len(w.text) < 2 || w.text[0] != '-' || w.text[1] == '-' || p.style == single {
		return false
	}
	t, name := p.table(), w.text[:2]
	o, ok := t.options[name]
	if !ok || o.arg != '=' {
		return false
	}
	sorted := t.names()
	next, _ := slices.BinarySearch(sorted, name+"\x00")
	if next < len(sorted) && strings.HasPrefix(sorted[next], name) {
		return false // it may be a longer one with a single dash
	}
	s.effect(o, name, w.from(2))
	return !w.split
}

// long takes a long option; it returns how many of the next words belong to it.
func (s *start) long(t *table, w word, next []word) int {
	name, _, joined := strings.Cut(w.text, "=")
	o, ok := t.options[name]
	if !ok && joined && w.lit { // a table may name one value of an option
		if v, known := t.options[w.text]; known {
			s.effect(v, name, word{})
			return 0
		}
	}
	if !ok && w.lit && strings.HasPrefix(name, "--") && len(name) > 2 {
		return s.abbreviated(t, w, next)
	}
	if !ok {
		s.strange(t, w)
		return 0
	}
	if !w.lit && !joined {
		s.raise(Destructive, clip(w.src)+" is an option that nobody can tell")
		return 0
	}
	switch {
	case joined:
		if o.arg == 0 {
			s.strange(t, w)
			return 0
		}
		s.effect(o, name, w.from(len(name)+1))
	case o.arg == '=' && len(next) > 0:
		s.loose(t, next[0])
		s.effect(o, name, next[0])
		return 1
	default:
		s.effect(o, name, word{})
	}
	return 0
}

// loose judges the argument of an option that may become several words: those
// behind the first may be options too.
func (s *start) loose(t *table, w word) {
	if !w.lit && w.split && t.sharp {
		s.raise(Destructive, clip(w.src)+" may become several words, and among them options")
	}
}

// abbreviated takes a long option that is the beginning of others: it does what
// any of them does.
func (s *start) abbreviated(t *table, w word, next []word) int {
	name, _, joined := strings.Cut(w.text, "=")
	used := 0
	sorted := t.names()
	from, _ := slices.BinarySearch(sorted, name)
	to := from
	for ; to < len(sorted) && strings.HasPrefix(sorted[to], name); to++ {
		full := sorted[to]
		o := t.options[full]
		s.raise(WriteWorkspace, "option "+clip(name)+" is an abbreviation")
		switch {
		case joined:
			s.effect(o, full, w.from(len(name)+1))
		case o.arg == '=' && len(next) > 0:
			s.effect(o, full, next[0])
			used = 1
		default:
			s.effect(o, full, word{})
		}
	}
	if to == from {
		s.strange(t, w)
	}
	return used
}

// letters takes short options that share a word, from byte at on.
func (s *start) letters(p *program, t *table, w word, next []word, at int) int {
	used := 0
	if o, ok := t.options["-#"]; ok && wholeNumber(w.text[1:]) { // -20
		s.effect(o, "-#", w.from(1))
		return 0
	}
	for i := at; i < len(w.text); i++ {
		name := "-" + w.text[i:i+1]
		o, ok := t.options[name]
		switch {
		case !ok:
			s.strange(t, w)
			return used
		case o.arg == 0:
			s.effect(o, name, word{})
		case at == 0: // tar cf FILE: arguments follow in order
			if used < len(next) {
				s.effect(o, name, next[used])
				used++
			}
		case i+1 < len(w.text) || o.arg == '?' || !w.lit:
			s.effect(o, name, w.from(i+1))
			return used
		case len(next) > 0:
			s.loose(t, next[0])
			s.effect(o, name, next[0])
			return 1
		default:
			return used
		}
	}
	return used
}

// assigned takes an operand such as of=FILE.
func (s *start) assigned(t *table, w word) bool {
	name, _, ok := strings.Cut(w.text, "=")
	if !ok {
		return false
	}
	o, known := t.options[name]
	if !known {
		s.strange(t, w)
		return true
	}
	s.effect(o, name, w.from(len(name)+1))
	return true
}

// strange is an option that no table has.
func (s *start) strange(t *table, w word) {
	switch {
	case !t.any:
		s.raise(Destructive, "option "+clip(w.src)+" isn't known")
	case s.class == ReadOnly:
		s.raise(WriteWorkspace, "option "+clip(w.src)+" isn't known")
	}
}
