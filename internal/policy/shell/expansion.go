package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param takes a parameter expansion. Those that run, assign or point elsewhere
// make the whole Unparsable; of the rest only HOME and PWD have a known value.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	b.r.expansion(p, b.sc)
	if s, ok := b.r.value(p, b.sc); ok && (quoted || !strings.ContainsAny(s, " \t\n*?[\\")) {
		b.put(s)
		return
	}
	list := p.Param != nil && (p.Param.Value == "@" || p.Index != nil && subscript(p.Index) == "@") || p.Names != 0
	b.unknown(!quoted && !p.Length || quoted && list)
}

// value is what a plain parameter stands for, where that is known.
func (r *reader) value(p *syntax.ParamExp, sc *scope) (string, bool) {
	if p.Param == nil || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 {
		return "", false
	}
	switch p.Param.Value {
	case "HOME":
		return r.o.Home, r.o.Home != ""
	case "PWD":
		if dirs := sc.dirs; dirs.known && len(dirs.list) == 1 {
			return dirs.list[0], true
		}
	}
	return "", false
}

// expansion judges what expanding a parameter does.
func (r *reader) expansion(p *syntax.ParamExp, sc *scope) {
	switch {
	case p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Width || p.IsSet ||
		p.Split != syntax.OptUnset || p.GlobSubst != syntax.OptUnset || p.RcExpand != syntax.OptUnset:
		r.raise(Unparsable, "an expansion that only another shell knows")
	case p.Excl && p.Names == 0 && (p.Index == nil || subscript(p.Index) == ""):
		r.hides("${!name} takes its name from a value")
	}
	if p.Index != nil && subscript(p.Index) == "" {
		r.arithm(p.Index, sc)
	}
	if p.Slice != nil {
		r.arithm(p.Slice.Offset, sc)
		r.arithm(p.Slice.Length, sc)
	}
	if p.Repl != nil {
		r.word(p.Repl.Orig, sc)
		r.word(p.Repl.With, sc)
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		r.hides("${name=value} changes a variable within a word")
	case syntax.OtherParamOps:
		if op := p.Exp.Word.Lit(); op == "" || !strings.Contains("QUuLaAkK", op) {
			r.hides("${name@" + op + "} expands a value once more")
		}
	case syntax.MatchEmpty, syntax.ArrayExclude, syntax.ArrayIntersect:
		r.raise(Unparsable, "an expansion that only another shell knows")
	}
	r.word(p.Exp.Word, sc)
}

// subscript is "@" or "*" for a subscript that means all elements.
func subscript(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		if s := w.Lit(); s == "@" || s == "*" {
			return s
		}
	}
	return ""
}

// arithm judges an arithmetic expression. A shell evaluates the value of a name
// in it as an expression too, and an expression may hold a subscript that runs
// commands; so nothing but numbers shows all that it does.
func (r *reader) arithm(x syntax.ArithmExpr, sc *scope) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		w, ok := n.(*syntax.Word)
		if ok && !wholeNumber(w.Lit()) {
			r.hides("arithmetic evaluates what its names hold")
			r.word(w, sc)
		}
		return !ok
	})
}

// wholeNumber reports whether a text is digits.
func wholeNumber(s string) bool {
	return s != "" && len(s) < 18 && strings.Trim(s, "0123456789") == ""
}

// clip shortens a text for a reason.
func clip(s string) string {
	n := 0
	for i := range s {
		if n++; n > 40 {
			return s[:i] + "…"
		}
	}
	return s
}
