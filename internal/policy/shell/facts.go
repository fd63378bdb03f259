package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// facts is what must be known of a whole source before its commands are judged.
type facts struct {
	moves     bool // something in it may change the working directory
	takesBack bool // it may undo the definition of a function
	deep      bool // the tree is deeper than anybody reads
}

// look gathers the facts of a parsed source.
func look(f *syntax.File) facts {
	var out facts
	depth, open := 0, []bool(nil) // open: whether the nodes above count as levels
	syntax.Walk(f, func(n syntax.Node) bool {
		if out.deep && n != nil {
			return false
		}
		switch n := n.(type) {
		case nil:
			if open[len(open)-1] {
				depth--
			}
			open = open[:len(open)-1]
			return true
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				name, ok := spelled(n.Args[0])
				out.moves = out.moves || !ok || oneOf(name, "cd", "pushd", "popd", "eval", "source", ".", "builtin", "command", "exec", "trap")
				out.takesBack = out.takesBack || !ok || oneOf(name, "unset", "eval", "source", ".", "builtin", "command")
			}
		}
		open = append(open, !chain(n))
		if !chain(n) {
			depth++
		}
		out.deep = depth > maxDepth
		return true
	})
	return out
}

// chain reports whether a node is a link of a list such as a | b | c, whose tree
// is deep without being nested.
func chain(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.BinaryCmd, *syntax.Stmt:
		return true
	}
	return false
}

// spelled is the value of a word that needs no expansion, but for quotes.
func spelled(w *syntax.Word) (string, bool) {
	var out strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if !plain(p.Value) {
				return "", false
			}
			out.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			out.WriteString(p.Value)
		case *syntax.DblQuoted:
			if len(p.Parts) == 1 {
				if l, ok := p.Parts[0].(*syntax.Lit); ok && plain(l.Value) {
					out.WriteString(l.Value)
					continue
				}
			}
			return "", false
		default:
			return "", false
		}
	}
	return out.String(), true
}
