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
	case p.Excl && p.Names == 0 && !keys(p):
		r.raise(Unparsable, "${!name} takes its name from a value")
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
		r.raise(Unparsable, "${name=value} changes a variable within a word")
	case syntax.OtherParamOps:
		if op := p.Exp.Word.Lit(); op == "" || !strings.Contains("QUuLaAkK", op) {
			r.raise(Unparsable, "${name@"+op+"} expands a value once more")
		}
	case syntax.MatchEmpty, syntax.ArrayExclude, syntax.ArrayIntersect:
		r.raise(Unparsable, "an expansion that only another shell knows")
	}
	r.word(p.Exp.Word, sc)
}

// keys reports whether ${!name[@]} lists the keys of an array.
func keys(p *syntax.ParamExp) bool { return p.Index != nil && subscript(p.Index) != "" }

// subscript is "@" or "*" for a subscript that means all elements.
func subscript(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		if s := w.Lit(); s == "@" || s == "*" {
			return s
		}
	}
	return ""
}

// counted are parameters whose value is always a number.
var counted = [...]string{"#", "?", "$", "!", "RANDOM", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS", "UID", "EUID", "PPID", "SHLVL", "OPTIND"}

// counter reports whether a parameter is a number, or empty, in every shell.
func counter(p *syntax.ParamExp) bool {
	return p.Param != nil && oneOf(p.Param.Value, "#", "?", "$", "!") && !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil
}

// arithm judges an arithmetic expression. A shell evaluates the value of a name
// in it as an expression too, and an expression may hold a subscript that runs
// commands; so only names that are certain to hold numbers pass.
func (r *reader) arithm(x syntax.ArithmExpr, sc *scope) {
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		if w, ok := x.X.(*syntax.Word); ok && x.Op == syntax.Assgn && variableName(literal(w.Lit())) {
			r.arithm(x.Y, sc)
			sc.counts(w.Lit())
			return
		}
		r.arithm(x.X, sc)
		r.arithm(x.Y, sc)
	case *syntax.UnaryArithm:
		r.arithm(x.X, sc)
	case *syntax.ParenArithm:
		r.arithm(x.X, sc)
	case *syntax.Word:
		r.operand(x, sc)
	default:
		r.raise(Unparsable, "arithmetic of a kind that isn't known")
	}
}

// operand judges a word within arithmetic.
func (r *reader) operand(w *syntax.Word, sc *scope) {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if !r.number(p.Value, sc) {
				r.raise(Unparsable, "arithmetic evaluates the value of "+clip(p.Value))
			}
		case *syntax.ParamExp:
			r.expansion(p, sc)
			if p.Param == nil || !p.Length && (p.Excl || p.Exp != nil || p.Repl != nil || p.Slice != nil || p.Index != nil || !r.number(p.Param.Value, sc)) {
				r.raise(Unparsable, "arithmetic evaluates the value of a variable")
			}
		case *syntax.ArithmExp:
			r.arithm(p.X, sc)
		case *syntax.CmdSubst:
			r.substitution(p, sc)
			if !counts(p) {
				r.raise(Unparsable, "arithmetic evaluates what a command prints")
			}
		case *syntax.DblQuoted:
			r.operand(&syntax.Word{Parts: p.Parts}, sc)
		default:
			r.raise(Unparsable, "arithmetic of a kind that isn't known")
		}
	}
}

// number reports whether a text is a number, or a name that can only hold one.
func (r *reader) number(s string, sc *scope) bool {
	if s == "" {
		return false
	}
	if s[0] >= '0' && s[0] <= '9' {
		return !strings.ContainsAny(s, "[]$`")
	}
	return oneOf(s, counted[:]...) || r.facts.numeric[s] && sc.sums[s]
}

// counts reports whether a substitution prints a number whatever happens: wc
// without names, or a clock or counter of the system.
func counts(c *syntax.CmdSubst) bool {
	if len(c.Stmts) != 1 {
		return false
	}
	cmd := c.Stmts[0].Cmd
	if b, ok := cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe {
		cmd = b.Y.Cmd
	}
	call, ok := cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch call.Args[0].Lit() {
	case "nproc":
		return len(call.Args) == 1
	case "wc":
		return len(call.Args) == 2 && strings.HasPrefix(call.Args[1].Lit(), "-")
	case "date":
		return len(call.Args) == 2 && call.Args[1].Lit() == "+%s"
	}
	return false
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
