package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// reader judges one source text.
type reader struct {
	*analysis
	dialect Dialect
	src     string
	facts   facts
}

// script reads a source that a shell runs in a scope, with the words of its
// positional parameters unknown. wrapped names what it was found in.
func (a *analysis) script(src string, d Dialect, sc *scope, wrapped []string) {
	if a.level++; a.level > maxLevels {
		a.raise(Unparsable, "sources within sources, deeper than anybody reads")
		return
	}
	defer func() { a.level-- }()
	if why := readable(src); why != "" {
		a.raise(Unparsable, why)
		return
	}
	f, why := parse(src, d)
	if why != "" {
		a.raise(Unparsable, why)
		return
	}
	r := &reader{analysis: a, dialect: d, src: src, facts: look(f)}
	if r.facts.deep {
		a.raise(Unparsable, "it is nested deeper than anybody reads")
		return
	}
	if a.notPlain == "" {
		a.notPlain, a.redirects = notPlain(f)
	}
	before := len(a.commands)
	r.list(f.Stmts, sc)
	a.wrapped(before, wrapped)
}

// wrapped notes for the commands from one on what they were found in.
func (a *analysis) wrapped(from int, names []string) {
	for i := from; i < len(a.commands) && len(names) > 0; i++ {
		a.commands[i].Wrapped = append(names[:len(names):len(names)], a.commands[i].Wrapped...)
	}
}

// source is how a node is written.
func (r *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(r.src) {
		return ""
	}
	return r.src[from:to]
}

// list judges statements that run one after the other.
func (r *reader) list(stmts []*syntax.Stmt, sc *scope) {
	for _, s := range stmts {
		sc.dirs = r.stmt(s, sc, input{}).either()
	}
}

// branch judges statements that may not run.
func (r *reader) branch(stmts []*syntax.Stmt, sc *scope) {
	in := sc.inner()
	r.list(stmts, in)
	sc.dirs = sc.dirs.or(in.dirs)
	sc.keep(in)
}

// input is what a statement reads from, as far as it matters: a text that is
// known, which a shell would run.
type input struct {
	text  string
	known bool
}

// stmt judges a statement with its redirections.
func (r *reader) stmt(s *syntax.Stmt, sc *scope, in input) outcome {
	if s.Disown || s.Coprocess {
		r.raise(Unparsable, "a list that only another shell knows")
	}
	paths := r.redirects(s.Redirs, sc, &in)
	if s.Cmd == nil {
		r.record(paths, "redirection")
		return stays(sc.dirs)
	}
	if s.Background {
		r.command(s.Cmd, sc.inner(), in, paths)
		return stays(sc.dirs)
	}
	out := r.command(s.Cmd, sc, in, paths)
	if s.Negated {
		out.ok, out.fail = out.fail, out.ok
	}
	return out
}

// command judges what a statement runs. What its redirections touch belongs to
// the command itself where there is one, else to the construct.
func (r *reader) command(c syntax.Command, sc *scope, in input, paths Command) outcome {
	if call, ok := c.(*syntax.CallExpr); ok {
		return r.simple(call, sc, in, paths)
	}
	r.record(paths, "redirection")
	switch c := c.(type) {
	case *syntax.BinaryCmd:
		return r.binary(c, sc)
	case *syntax.Block:
		if len(c.Stmts) == 1 {
			return r.stmt(c.Stmts[0], sc, in)
		}
		r.list(c.Stmts, sc)
	case *syntax.Subshell:
		r.list(c.Stmts, sc.inner())
	case *syntax.FuncDecl:
		r.function(c, sc)
	case *syntax.DeclClause:
		r.declare(c, sc)
	case *syntax.TestClause:
		r.test(c.X, sc)
	case *syntax.ArithmCmd:
		r.arithm(c.X, sc)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			r.arithm(x, sc)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return r.timed(c.Stmt, sc, in)
		}
		r.add(Command{Name: "time", Class: ReadOnly}) // behind a pipe it is the program
	default:
		return r.compound(c, sc)
	}
	return stays(sc.dirs)
}

// timed judges what stands behind time, which is a word of the shell in some
// places and a program in others.
func (r *reader) timed(s *syntax.Stmt, sc *scope, in input) outcome {
	before := len(r.commands)
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Assigns) > 0 {
		r.raise(Unparsable, "behind a pipe time runs an assignment as a command")
	}
	out := r.stmt(s, sc, in)
	if r.wrapped(before, []string{"time"}); len(r.commands) == before {
		r.add(Command{Name: "time", Class: ReadOnly})
	}
	return out
}

// compound judges branches and loops.
func (r *reader) compound(c syntax.Command, sc *scope) outcome {
	switch c := c.(type) {
	case *syntax.IfClause:
		r.list(c.Cond, sc)
		r.branch(c.Then, sc)
		for e := c.Else; e != nil; e = e.Else {
			r.branch(e.Cond, sc)
			r.branch(e.Then, sc)
		}
	case *syntax.WhileClause:
		r.adrift(sc)
		r.list(c.Cond, sc)
		r.branch(c.Do, sc)
	case *syntax.ForClause:
		switch l := c.Loop.(type) {
		case *syntax.WordIter:
			for _, w := range l.Items {
				r.word(w, sc)
			}
			var t Command
			r.variable(&t, l.Name.Value, word{src: "…"}, sc, false)
			r.record(t, "for")
		case *syntax.CStyleLoop:
			r.arithm(l.Init, sc)
			r.arithm(l.Cond, sc)
			r.arithm(l.Post, sc)
		default:
			r.raise(Unparsable, "a loop of a kind that isn't known")
		}
		r.adrift(sc)
		r.branch(c.Do, sc)
	case *syntax.CaseClause:
		r.word(c.Word, sc)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				r.word(p, sc)
			}
			r.branch(item.Stmts, sc)
		}
	default:
		r.raise(Unparsable, "a construct that isn't known")
	}
	return stays(sc.dirs)
}

// adrift forgets the directory before what runs several times, or later, when
// the source moves anywhere.
func (r *reader) adrift(sc *scope) {
	if r.facts.moves {
		sc.dirs = anywhere
	}
}

// binary judges a chain of && and ||, or of pipes, however long it is.
func (r *reader) binary(b *syntax.BinaryCmd, sc *scope) outcome {
	links := []*syntax.BinaryCmd{b}
	for {
		x := links[len(links)-1].X
		next, ok := x.Cmd.(*syntax.BinaryCmd)
		if !ok || len(x.Redirs) > 0 || x.Negated || x.Background {
			break
		}
		links = append(links, next)
	}
	last := links[len(links)-1]
	first := sc
	if piped(last) {
		first = sc.inner()
	}
	out := r.stmt(last.X, first, input{})
	if piped(last) {
		out = stays(sc.dirs)
	}
	for i := len(links) - 1; i >= 0; i-- {
		out = r.link(links[i], sc, out)
	}
	return out
}

func piped(b *syntax.BinaryCmd) bool { return b.Op == syntax.Pipe || b.Op == syntax.PipeAll }

// link judges the right side of one operator, after what came before.
func (r *reader) link(b *syntax.BinaryCmd, sc *scope, before outcome) outcome {
	switch b.Op {
	case syntax.Pipe, syntax.PipeAll:
		r.stmt(b.Y, sc.inner(), input{})
		return stays(sc.dirs)
	case syntax.AndStmt:
		in := sc.inner()
		in.dirs = before.ok
		y := r.stmt(b.Y, in, input{})
		sc.keep(in)
		return outcome{y.ok, before.fail.or(y.fail)}
	case syntax.OrStmt:
		in := sc.inner()
		in.dirs = before.fail
		y := r.stmt(b.Y, in, input{})
		sc.keep(in)
		return outcome{before.ok.or(y.ok), y.fail}
	}
	r.raise(Unparsable, "an operator that isn't known")
	return outcome{}
}

// keep takes over from what may have run what only makes things stricter.
func (s *scope) keep(in *scope) {
	s.loose = s.loose || in.loose
}

// substitution judges the commands of $(…).
func (r *reader) substitution(c *syntax.CmdSubst, sc *scope) {
	if c.TempFile || c.ReplyVar {
		r.raise(Unparsable, "a substitution that only some shells know")
	}
	if src := r.source(c); c.Backquotes && (strings.Count(src, "`") != 2 || strings.Contains(src, "\\")) {
		r.raise(Unparsable, "quotes within backquotes, which readers take apart in different ways")
	}
	r.list(c.Stmts, sc.inner())
}

// function judges a body where it is defined: what it does counts even if it is
// never called.
func (r *reader) function(f *syntax.FuncDecl, sc *scope) {
	if f.Name == nil || len(f.Names) > 0 {
		r.raise(Unparsable, "a function that only another shell knows")
		return
	}
	in := sc.inner()
	r.adrift(in)
	if in.funcs == nil {
		in.funcs = map[string]bool{}
	}
	in.funcs[f.Name.Value] = false
	r.stmt(f.Body, in, input{})
	if sc.funcs == nil {
		sc.funcs = map[string]bool{}
	}
	sc.funcs[f.Name.Value] = true
	sc.keep(in)
}
