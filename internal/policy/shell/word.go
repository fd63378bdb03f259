package shell

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// word is what is known of a word after expansion.
type word struct {
	text  string       // if lit the value, else what begins every value it can have
	src   string       // as written; of a literal one the value
	lit   bool         // the value is known
	glob  bool         // not lit, but only names of existing files: text is the pattern
	split bool         // may become several words, or none
	brace bool         // several only because of braces: text begins each of them
	node  *syntax.Word // of one that isn't lit, where it stands in a source
	skip  int          // how much of what it says has been taken
	named bool         // what it says are names that git gives, or numbers: no dash begins one
}

func literal(s string) word { return word{text: s, src: s, lit: true} }

// opaque is a word of which nothing is known.
func opaque(src string) word { return word{src: src, split: true} }

// option reports whether a word may be taken as an option.
func (w word) option() bool {
	if w.lit {
		return len(w.text) > 1 && w.text[0] == '-'
	}
	return !w.named && (w.split && !w.glob && !w.brace || w.text == "" || w.text[0] == '-' || strings.IndexByte("*?[{", w.text[0]) >= 0 && w.split)
}

// several reports whether a word may become several words, or none.
func (w word) several() bool { return !w.lit && w.split }

// from is what is left of a word after n bytes of its text.
func (w word) from(n int) word {
	if w.lit {
		return literal(w.text[n:])
	}
	w.skip += min(n, len(w.text))
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
		return word{text: text, src: src, split: b.split || b.brace > 0, brace: !b.split, node: w, named: namesCommit(w, sc) || r.numeral(w, sc)}
	case b.glob:
		return word{text: text, src: src, glob: true, split: true, node: w}
	}
	return literal(text)
}

// numeral reports whether a word is a parameter that holds a number.
func (r *reader) numeral(w *syntax.Word, sc *scope) bool {
	parts := w.Parts
	if q, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 {
		parts = q.Parts
	}
	if len(parts) != 1 {
		return false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	return ok && (counter(p) || p.Param != nil && !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && r.facts.numeric[p.Param.Value] && sc.sums[p.Param.Value])
}

// namesCommit reports whether a word is the names of commits that git prints, such
// as $(git merge-base main HEAD), quoted or not, or begins with one and continues
// with what is no option.
func namesCommit(w *syntax.Word, sc *scope) bool {
	parts := w.Parts
	if q, ok := parts[0].(*syntax.DblQuoted); ok {
		parts = slices.Concat(q.Parts, parts[1:])
	}
	if len(parts) == 0 || len(parts) > 2 || sc.defines("git") || sc.loose {
		return false
	}
	if len(parts) == 2 {
		if l, ok := parts[1].(*syntax.Lit); !ok || l.Value[0] != '.' && l.Value[0] != ':' {
			return false
		}
	}
	c, ok := parts[0].(*syntax.CmdSubst)
	if !ok || len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 0 {
		return false
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) < 2 || call.Args[0].Lit() != "git" || !oneOf(call.Args[1].Lit(), "merge-base", "rev-parse") {
		return false
	}
	return !slices.ContainsFunc(call.Args[2:], func(a *syntax.Word) bool {
		s := a.Lit()
		return s == "" || s[0] == '-' && !oneOf(s, "--short", "--verify") || s[0] == '~' || !plain(strings.ReplaceAll(s, "~", ""))
	})
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

// ansi decodes what stands in $'…'; not ok is an escape that shells differ in.
func ansi(s string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if k := strings.IndexByte(`abefnrtv\'"?E`, s[i]); k >= 0 {
			out.WriteByte("\a\b\x1b\f\n\r\t\v\\'\"?\x1b"[k])
			continue
		}
		n, c, ok := numeric(s[i:])
		if !ok {
			return "", false
		}
		i += n - 1
		out.WriteString(c)
	}
	if oddText(out.String()) != "" || !utf8.ValidString(out.String()) {
		return "", false
	}
	return out.String(), true
}

// numeric decodes \xHH, \NNN, \uHHHH and \UHHHHHHHH without the backslash.
func numeric(s string) (n int, text string, ok bool) {
	base, most, skip := 8, 3, 0
	switch s[0] {
	case 'x':
		base, most, skip = 16, 2, 1
	case 'u':
		base, most, skip = 16, 4, 1
	case 'U':
		base, most, skip = 16, 8, 1
	}
	n = skip
	for n < len(s) && n < skip+most && isDigit(s[n], base) {
		n++
	}
	v, err := strconv.ParseUint(s[skip:n], base, 32)
	if err != nil || v == 0 || v >= utf8.RuneSelf {
		return 0, "", false
	}
	return n, string(rune(v)), true
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
