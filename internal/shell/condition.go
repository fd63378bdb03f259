package shell

import "mvdan.cc/sh/v3/syntax"

// test judges [[ … ]].
func (r *reader) test(x syntax.TestExpr, sc *scope) {
	switch x := x.(type) {
	case *syntax.Word:
		r.word(x, sc)
	case *syntax.ParenTest:
		r.test(x.X, sc)
	case *syntax.UnaryTest:
		w, ok := x.X.(*syntax.Word)
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			if v := r.word(w, sc); !ok || !variableName(v) {
				r.raise(Unparsable, "a subscript may run commands")
			}
			return
		}
		r.test(x.X, sc)
	case *syntax.BinaryTest:
		r.binaryTest(x, sc)
	default:
		r.raise(Unparsable, "a test of a kind that isn't known")
	}
}

func (r *reader) binaryTest(x *syntax.BinaryTest, sc *scope) {
	switch x.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
			if w, ok := side.(*syntax.Word); ok {
				r.operand(w, sc)
			} else {
				r.raise(Unparsable, "arithmetic of a kind that isn't known")
			}
		}
		return
	case syntax.OrTest:
		r.otherwise(x.Y, sc)
	case syntax.TsBefore, syntax.TsAfter: // a POSIX shell redirects there
		if w, ok := x.Y.(*syntax.Word); ok {
			t := touched{}
			v := r.word(w, sc)
			if x.Op == syntax.TsAfter {
				r.writes(&t, v, sc)
			}
			if t.touched() {
				r.add(t.command("[["))
			}
			r.test(x.X, sc)
			return
		}
	}
	r.test(x.X, sc)
	r.test(x.Y, sc)
}

// otherwise judges what stands behind || in [[ … ]]: a POSIX shell doesn't know
// [[, so it fails there and takes what follows for a command.
func (r *reader) otherwise(y syntax.TestExpr, sc *scope) {
	for {
		b, ok := y.(*syntax.BinaryTest)
		if !ok {
			break
		}
		y = b.X
	}
	if w, ok := y.(*syntax.Word); ok {
		if v := r.word(w, sc); v.text == "" || v.text[0] != '-' {
			r.raise(Unparsable, "another shell runs what stands after || in [[ ]]")
		}
	}
}
