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
				r.hides("a subscript may run commands")
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
		r.hides("a test evaluates what it compares as numbers")
	}
	r.test(x.X, sc)
	r.test(x.Y, sc)
}
