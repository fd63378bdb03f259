package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/belay-run/belay/internal/lib/match"
)

// word is what is known of a word after expansion.
type word struct {
	text  string // if lit the value, else what begins every value it can have
	src   string // as written; of a literal one the value
	lit   bool   // the value is known
	glob  bool   // not lit, but only names of existing files: text is the pattern
	split bool   // may become several words, or none
	brace bool   // several only because of braces: text begins each of them
}

func literal(s string) word { return word{text: s, src: s, lit: true} }

// opaque is a word of which nothing is known.
func opaque(src string) word { return word{src: src, split: true} }

// option reports whether a word may be taken as an option.
func (w word) option() bool {
	if w.lit {
		return len(w.text) > 1 && w.text[0] == '-'
	}
	return w.split && !w.glob && !w.brace || w.text == "" || w.text[0] == '-' || strings.IndexByte("*?[{", w.text[0]) >= 0 && w.split
}

// several reports whether a word may become several words, or none.
func (w word) several() bool { return !w.lit && w.split }

// from is what is left of a word after n bytes of its text.
func (w word) from(n int) word {
	if w.lit {
		return literal(w.text[n:])
	}
	w.text = w.text[min(n, len(w.text)):]
	w.src = w.src[min(n, len(w.src)):]
	return w
}

// texts are the values of words that are all literal.
func texts(words []word) ([]string, bool) {
	out := make([]string, len(words))
	for i, w := range words {
		if !w.lit {
			return nil, false
		}
		out[i] = w.text
	}
	return out, true
}

// builder puts a word together part by part.
type builder struct {
	r     *reader
	sc    *scope
	text  strings.Builder
	open  bool // something unknown has come
	glob  bool
	split bool
	brace int // open braces that stand unquoted, with a comma or dots behind them
}

// word evaluates a word: substitutions in it are read, expansions are looked at,
// and what is left is as much of its value as can be known.
func (r *reader) word(w *syntax.Word, sc *scope) word {
	if w == nil {
		return literal("")
	}
	b := builder{r: r, sc: sc}
	for i, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && i == 0 && len(w.Parts) > 1 && l.Value == "~" {
			b.unknown(false) // what follows is part of a user's name, or has no meaning
		}
		b.part(p, i == 0)
	}
	src, text := r.source(w), b.text.String()
	if b.brace == 0 && braces(w) {
		b.brace, text = 1, ""
	}
	r.spells(text)
	switch {
	case b.open || b.brace > 0:
		return word{text: text, src: src, split: b.split || b.brace > 0, brace: !b.split}
	case b.glob:
		return word{text: text, src: src, glob: true, split: true}
	}
	return literal(text)
}

// spells notes a text of the source that may be a path.
func (a *analysis) spells(text string) {
	if strings.ContainsAny(text, "./") {
		a.texts = append(a.texts, text)
	}
}

// plain reports whether an unquoted literal stands for itself.
func plain(s string) bool {
	return s == "[" || s == "]" || s == "{}" || !strings.ContainsAny(s, "\\*?[]{}~<>(")
}

func (b *builder) part(p syntax.WordPart, first bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.lit(p.Value, first)
	case *syntax.SglQuoted:
		b.single(p)
	case *syntax.DblQuoted:
		if p.Dollar { // what a catalogue makes of it is unknown
			b.unknown(false)
		}
		for _, q := range p.Parts {
			b.quoted(q)
		}
	case *syntax.ParamExp:
		b.param(p, false)
	case *syntax.CmdSubst:
		b.r.substitution(p, b.sc)
		b.unknown(true)
	case *syntax.ArithmExp:
		b.r.arithm(p.X, b.sc)
		b.unknown(false)
	case *syntax.ProcSubst:
		b.r.list(p.Stmts, b.sc.inner())
		b.put("/dev/fd/63")
	default:
		b.r.raise(Unparsable, "an expansion of a kind that isn't known")
		b.unknown(true)
	}
}

// quoted is a part between double quotes.
func (b *builder) quoted(p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.doubleQuoted(p.Value)
	case *syntax.ParamExp:
		b.param(p, true)
	case *syntax.CmdSubst:
		b.r.substitution(p, b.sc)
		b.unknown(false)
	default:
		b.part(p, false)
	}
}

func (b *builder) put(s string) {
	if !b.open {
		b.text.WriteString(s)
	}
}

func (b *builder) unknown(split bool) {
	b.open = true
	b.split = b.split || split
}

// lit takes unquoted text: backslashes, patterns, a tilde, braces.
func (b *builder) lit(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		s = b.tilde(s)
	} else if strings.Contains(s, "=~") || strings.Contains(s, ":~") {
		b.unknown(false) // some shells expand it there
	}
	if strings.Contains(s, "<(") || strings.Contains(s, ">(") { // within ${…}, where the parser takes it for text
		b.r.raise(Unparsable, "a process substitution within an expansion")
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.put(s[i : i+1])
			}
		case '*', '?', '[':
			b.glob = b.glob || c != '[' || strings.IndexByte(s[i:], ']') > 0
			b.put(s[i : i+1])
		case '{':
			if strings.ContainsAny(s[i:], ",.") || len(s) == i+1 {
				b.brace++
				b.open = true
			}
			b.put("{")
		default:
			b.put(s[i : i+1])
		}
	}
}

// tilde puts the home directory for a leading tilde and returns the rest.
func (b *builder) tilde(s string) string {
	name, rest, slash := strings.Cut(s[1:], "/")
	if name != "" || b.r.o.Home == "" {
		b.unknown(false)
		return s
	}
	b.put(b.r.o.Home)
	if slash {
		return "/" + rest
	}
	return ""
}

// doubleQuoted takes text between double quotes, where a backslash keeps
// itself before most characters.
func (b *builder) doubleQuoted(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.put(s[i : i+1])
	}
}

// single takes text between single quotes.
func (b *builder) single(q *syntax.SglQuoted) {
	if !q.Dollar {
		b.put(q.Value)
		return
	}
	s, ok := ansi(q.Value)
	if !ok || s == "" {
		b.unknown(false)
		return
	}
	b.put(s)
}

// ansi decodes what stands in $'…'; not ok is an escape that isn't a usual one.
func ansi(s string) (string, bool) { return ansiEscapes.Replace(s), ansiPlain.Match(s) }

var (
	ansiPlain   = match.Lazy(`^(?:[^\\]|\\[nt\\'"])*$`)
	ansiEscapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\'`, "'", `\"`, `"`)
)
