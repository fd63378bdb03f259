package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// facts is what must be known of a whole source before its commands are judged.
type facts struct {
	moves     bool                      // something in it may change the working directory
	numeric   map[string]bool           // variables that only ever hold numbers
	values    map[string][]*syntax.Word // what it assigns to variables
	takesBack bool                      // it may undo the definition of a function
	deep      bool                      // the tree is deeper than anybody reads
}

// look gathers the facts of a parsed source.
func look(f *syntax.File) facts {
	var out facts
	values := map[string]bool{}
	blind, depth, open := false, 0, []bool(nil) // open: whether the nodes above count as levels
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
			moves, assigns := effects(n)
			out.moves = out.moves || moves
			blind = blind || assigns
			if len(n.Args) > 0 {
				name, ok := spelled(n.Args[0])
				out.takesBack = out.takesBack || !ok || oneOf(name, "unset", "eval", "source", ".", "builtin", "command")
			}
		case *syntax.Assign:
			note(values, n.Name, !n.Naked && n.Index == nil && n.Array == nil && digits(n.Value))
			out.gives(n.Name, n.Value)
			if n.Array != nil {
				for _, e := range n.Array.Elems {
					out.gives(n.Name, e.Value)
				}
			}
		case *syntax.WordIter:
			for _, w := range n.Items {
				note(values, n.Name, digits(w))
				out.gives(n.Name, w)
			}
			if len(n.Items) == 0 {
				note(values, n.Name, false)
			}
		case *syntax.BinaryArithm:
			assigned(values, n)
		}
		open = append(open, !chain(n))
		if !chain(n) {
			depth++
		}
		out.deep = depth > maxDepth
		return true
	})
	if !blind {
		out.numeric = values
	}
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

// effects tells what a simple command may do to the shell that runs it: change
// its directory, or assign variables that aren't named.
func effects(c *syntax.CallExpr) (moves, assigns bool) {
	if len(c.Args) == 0 {
		return false, false
	}
	name, ok := spelled(c.Args[0])
	if !ok {
		return true, true
	}
	switch name {
	case "cd", "pushd", "popd":
		return true, false
	case "eval", "source", ".", "builtin", "command", "exec", "trap":
		return true, true
	case "read", "mapfile", "readarray", "getopts", "printf", "wait", "unset", "let":
		return false, true
	}
	return false, false
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

// gives notes a value that a variable may get.
func (f *facts) gives(name *syntax.Lit, value *syntax.Word) {
	if name == nil || value == nil {
		return
	}
	if f.values == nil {
		f.values = map[string][]*syntax.Word{}
	}
	f.values[name.Value] = append(f.values[name.Value], value)
}

// note remembers whether a variable has held numbers only so far.
func note(values map[string]bool, name *syntax.Lit, number bool) {
	if name == nil {
		return
	}
	before, seen := values[name.Value]
	values[name.Value] = number && (before || !seen)
}

// digits reports whether a word is a whole number, or an arithmetic expansion,
// whose value is one.
func digits(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.ArithmExp:
		return true
	case *syntax.ParamExp:
		return p.Length || counter(p)
	case *syntax.CmdSubst:
		return counts(p)
	case *syntax.Lit:
		return wholeNumber(p.Value) || sequence(p.Value)
	}
	return false
}

func wholeNumber(s string) bool {
	return s != "" && len(s) < 18 && strings.Trim(s, "0123456789") == ""
}

// sequence reports whether a word is {1..9}.
func sequence(s string) bool {
	dots := strings.Count(s, ".")
	return len(s) > 5 && s[0] == '{' && s[len(s)-1] == '}' && strings.Trim(s[1:len(s)-1], "0123456789.") == "" && (dots == 2 || dots == 4)
}

// assigned notes a variable that arithmetic assigns to; its value is a number.
func assigned(values map[string]bool, b *syntax.BinaryArithm) {
	if b.Op != syntax.Assgn {
		return
	}
	if w, ok := b.X.(*syntax.Word); ok && w.Lit() != "" {
		note(values, &syntax.Lit{Value: w.Lit()}, true)
	}
}
