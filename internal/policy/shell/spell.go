package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/belay-run/belay/internal/workspace/protected"
)

// unknown replaces in a spelling what isn't known. No source has it: control
// characters aren't read.
const unknown = "\x00"

// Bounds of spelling. Beyond them a word is unknown.
const (
	maxSpellings = 64
	maxSpelling  = 3      // variables within variables
	maxSpelled   = 10_000 // in the judgement of one source
)

// hidden says why reading a word that isn't literal isn't harmless: what is
// known of it leads to where keys are kept, or is the beginning of a way there.
// A value that the same source gives a variable, a list that a loop goes through
// and what echo prints are followed. What they can't tell stays unknown, so this
// only ever makes a judgement stricter.
func (r *reader) hidden(w word, sc *scope) string {
	list := []string{w.text + unknown}
	switch {
	case w.lit:
		list = []string{w.text}
	case w.node != nil:
		list = r.spell(w.node, sc, maxSpelling)
	}
	for _, s := range list {
		if w.node != nil {
			s = s[min(w.skip, len(s)):]
		}
		for _, p := range rooted(s, sc) {
			pattern := strings.ReplaceAll(path.Clean(p), unknown, "*")
			if why := Secret(pattern); why != "" {
				return why
			}
			if pattern != path.Clean(p) && fitsSecret(pattern) {
				return clip(w.src) + " may name a place where keys are kept"
			}
			if (sc.dirs.known || strings.HasPrefix(s, "/")) && r.leads(p) {
				return clip(w.src) + " may lead to where keys are kept"
			}
		}
	}
	return ""
}

// rooted are the paths that a spelling may name. If the directory is unknown, it
// is read as if it were the root, which only shows what lies below it.
func rooted(s string, sc *scope) []string {
	if strings.HasPrefix(s, "/") || !sc.dirs.known {
		return []string{"/" + strings.TrimPrefix(s, "/")}
	}
	out := make([]string, len(sc.dirs.list))
	for i, d := range sc.dirs.list {
		out[i] = d + "/" + s
	}
	return out
}

// leads reports whether a path of which a part is unknown may be one of the places
// in the home directory where keys are kept, or lie in it.
func (r *analysis) leads(p string) bool {
	home, clean := r.o.Home+"/", path.Clean(p)
	before, _, open := strings.Cut(clean, unknown)
	if r.o.Home == "" || !open || !strings.ContainsAny(before, "*?[") && !strings.HasPrefix(home, before) && !strings.HasPrefix(before, home) {
		return false // it leads elsewhere
	}
	parts := strings.Split(clean[1:], "/")
	return slices.ContainsFunc(protected.SecretNames(), func(name string) bool {
		return mayBe(parts, strings.Split(r.o.Home[1:]+"/"+name, "/"))
	})
}

// mayBe reports whether the parts of a path may be those of a place, or lie below.
func mayBe(parts, place []string) bool {
	for i, name := range place {
		if i == len(parts) {
			return false
		}
		before, _, open := strings.Cut(parts[i], unknown)
		if open && i == len(parts)-1 { // it may go on with anything
			return strings.HasPrefix(name, before)
		}
		ok, err := path.Match(strings.ReplaceAll(parts[i], unknown, "*"), name)
		if err != nil || !ok || !open && name[0] == '.' && parts[i][0] != '.' {
			return false
		}
	}
	return true
}

// spell is what a word may say, as far as the source tells: one text for each
// of the values that it gives, with unknown for what it doesn't. Nothing is
// judged on the way.
func (r *reader) spell(w *syntax.Word, sc *scope, left int) []string {
	if w == nil {
		return []string{""}
	}
	if left == 0 || r.spelled > maxSpelled {
		return []string{unknown}
	}
	split := syntax.Word{Parts: w.Parts}
	syntax.SplitBraces(&split)
	out := []string{""}
	for i, p := range split.Parts {
		out = each(out, r.spellPart(p, sc, left, i == 0))
	}
	r.spelled += len(out)
	return out
}

// each joins every text with every end.
func each(texts, ends []string) []string {
	if len(ends) == 1 {
		for i := range texts {
			texts[i] += ends[0]
		}
		return texts
	}
	if len(texts)*len(ends) > maxSpellings {
		return []string{unknown}
	}
	out := make([]string, 0, len(texts)*len(ends))
	for _, t := range texts {
		for _, e := range ends {
			out = append(out, t+e)
		}
	}
	return out
}

func (r *reader) spellPart(p syntax.WordPart, sc *scope, left int, first bool) []string {
	switch p := p.(type) {
	case *syntax.Lit:
		b := builder{r: r, sc: sc}
		s := p.Value
		if first && strings.HasPrefix(s, "~") {
			s = b.tilde(s)
		}
		if b.open {
			return []string{unknown}
		}
		return []string{b.text.String() + unescaped(s)}
	case *syntax.SglQuoted:
		if s, ok := ansi(p.Value); p.Dollar && ok {
			return []string{s}
		} else if p.Dollar {
			return []string{unknown}
		}
		return []string{p.Value}
	case *syntax.DblQuoted:
		out := []string{""}
		for _, q := range p.Parts {
			out = each(out, r.spellPart(q, sc, left, false))
		}
		return out
	case *syntax.BraceExp:
		var out []string
		for _, w := range p.Elems {
			out = append(out, r.spell(w, sc, left)...)
		}
		if p.Sequence || len(out) > maxSpellings {
			return []string{unknown}
		}
		return out
	case *syntax.ParamExp:
		return r.spellParam(p, sc, left)
	case *syntax.CmdSubst:
		return r.spellPrinted(p, sc, left)
	}
	return []string{unknown}
}

// unescaped is a literal without the backslashes before its characters.
func unescaped(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// spellParam is what a parameter may stand for: what the source assigns to it,
// wherever that is, and what stands in for it.
func (r *reader) spellParam(p *syntax.ParamExp, sc *scope, left int) []string {
	if s, ok := r.value(p, sc); ok {
		return []string{s}
	}
	if p.Param == nil || p.Excl || p.Length {
		return []string{unknown}
	}
	var out []string
	values := r.facts.values[p.Param.Value]
	if len(values) > maxSpellings {
		return []string{unknown}
	}
	for _, w := range values {
		out = append(out, r.spell(w, sc, left-1)...)
	}
	if p.Exp != nil {
		out = append(out, r.spell(p.Exp.Word, sc, left-1)...)
	}
	if len(out) == 0 || len(out) > maxSpellings {
		return []string{unknown}
	}
	return out
}

// spellPrinted is what echo and printf of known words print; of other commands
// nothing is known.
func (r *reader) spellPrinted(c *syntax.CmdSubst, sc *scope, left int) []string {
	if len(c.Stmts) != 1 {
		return []string{unknown}
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 || len(c.Stmts[0].Redirs) > 0 || !oneOf(call.Args[0].Lit(), "echo", "printf") {
		return []string{unknown}
	}
	printf := call.Args[0].Lit() == "printf"
	out, format := []string{""}, call.Args[1]
	for i, w := range call.Args[1:] {
		if printf && w == format && strings.Contains(r.source(w), "%") {
			continue // what it says of the others matters little
		}
		if i > 0 && !printf {
			out = each(out, []string{" "})
		}
		out = each(out, r.spell(w, sc, left-1))
	}
	return out
}

// secretWords says which of the words of a source names a place where keys are
// kept, or nothing.
func (a *analysis) secretWords() string {
	for _, text := range a.texts {
		for f := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t\n,;:=\"'`", c) }) {
			if f[0] != '/' && f[0] != '.' && !strings.Contains(f, "/.") && !strings.Contains(f, "id_") {
				continue // nearly every word
			}
			if why := Secret(path.Clean("/" + f)); why != "" {
				return why
			}
		}
	}
	return ""
}
