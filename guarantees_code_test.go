package belay_test

import (
	"go/ast"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ref is a name that a function of a test file mentions: of a package's
// directory, or without one of whatever has a method of that name.
type ref struct{ dir, name string }

// mentions are the names in a function of a test file.
func mentions(f *ast.File, dir string, fn *ast.FuncDecl) map[ref]bool {
	packages := map[string]string{}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if rest, ok := strings.CutPrefix(p, module); ok {
			name := path.Base(p)
			if i.Name != nil {
				name = i.Name.Name
			}
			packages[name] = path.Join(".", rest)
		}
	}
	found := map[ref]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			at := ref{name: n.Sel.Name}
			if x, ok := n.X.(*ast.Ident); ok {
				at.dir = packages[x.Name]
			}
			found[at] = true
		case *ast.Ident:
			found[ref{dir, n.Name}] = true
		}
		return true
	})
	return found
}

// named is a function's name, a method's with its type.
func named(fn *ast.FuncDecl) string {
	name := fn.Name.Name
	if fn.Recv != nil && len(fn.Recv.List) > 0 {
		ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				name = id.Name + "." + fn.Name.Name
				return false
			}
			return name == fn.Name.Name
		})
	}
	return name
}

// standsOnDead is a function that is on the list of what the program can't reach,
// if the test calls such functions and no others of the program's, itself or by
// other functions of its package's test files. Methods are told by their names
// alone: one that anything reachable has counts as reachable.
func (in tree) standsOnDead(dir, test string) string {
	p, err := in.read(dir)
	if err != nil {
		return ""
	}
	all, dirs := map[ref]bool{}, []string{dir}
	for open := []string{test}; len(open) > 0; open = open[1:] {
		for r := range p.uses[open[0]] {
			if all[r] {
				continue
			}
			all[r] = true
			if r.dir == dir && p.uses[r.name] != nil {
				open = append(open, r.name)
			}
			if r.dir != "" && !slices.Contains(dirs, r.dir) {
				dirs = append(dirs, r.dir)
			}
		}
	}
	dead := ""
	for _, d := range dirs {
		p, err := in.read(d)
		if err != nil {
			continue
		}
		for _, fn := range p.code {
			called := all[ref{d, fn}]
			if _, method, ok := strings.Cut(fn, "."); ok {
				called = all[ref{name: method}]
			}
			symbol := strings.TrimPrefix(d+"."+fn, "..")
			listed := slices.ContainsFunc(in.dead, func(p string) bool { ok, err := path.Match(p, symbol); return ok && err == nil })
			switch {
			case called && !listed:
				return ""
			case called:
				dead = symbol
			}
		}
	}
	return dead
}

// listedDead are the patterns of tools/dead.txt.
func listedDead(t *testing.T) (out []string) {
	t.Helper()
	raw, err := os.ReadFile("tools/dead.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			if out = append(out, f[0]); len(f) == 1 {
				t.Errorf("tools/dead.txt: %s stays without a reason", f[0])
			}
		}
	}
	return out
}

// A verified promise can't stand on code that the program doesn't reach: such
// code is deleted or on the list, and a test of nothing else is no test of it.
func TestAGuaranteeOnDeadCodeIsNoticed(t *testing.T) {
	root := t.TempDir()
	writeTree(t, root, map[string]string{
		"price/price.go": "package price\n\nfunc Bound() int { return sum() }\nfunc Cost() int { return sum() }\nfunc sum() int { return 1 }\ntype T struct{}\nfunc (*T) Most() int { return 1 }\n",
		"price/price_test.go": "package price\n\nfunc TestBound(t *testing.T) { bounded() }\nfunc bounded() { Bound() }\nfunc TestCost(t *testing.T) { Cost() }\n" +
			"func TestCostIsWithinItsBound(t *testing.T) { Cost(); bounded() }\nfunc TestMost(t *testing.T) { new(T).Most() }\n",
		"other/other_test.go": "package other_test\n\nimport p \"" + module + "/price\"\n\nfunc TestElsewhere(t *testing.T) { p.Bound() }\nfunc TestNothing(t *testing.T) { println() }\n",
	})
	for test, want := range map[string]string{
		"price.TestBound":                "price.Bound",
		"price.TestCost":                 "",
		"price.TestCostIsWithinItsBound": "",
		"price.TestMost":                 "price.T.Most",
		"other.TestElsewhere":            "price.Bound",
		"other.TestNothing":              "",
	} {
		dir, name, _ := strings.Cut(test, ".")
		in := tree{root: root, packages: map[string]*testPackage{}, dead: []string{"price.Bound", "price.T.*"}}
		if got := in.standsOnDead(dir, name); got != want {
			t.Errorf("%s: got %q, want %q", test, got, want)
		}
		in.dead = nil
		if got := in.standsOnDead(dir, name); got != "" {
			t.Errorf("%s: with nothing dead: %q", test, got)
		}
	}
	writeTree(t, root, map[string]string{"price/mark_test.go": "package price\n\n// Guarantee: M2.\nfunc TestMark(t *testing.T) { Bound() }\n"})
	in := tree{root: root, packages: map[string]*testPackage{}, dead: []string{"price.Bound"}}
	if _, problems := in.check("**M2** No call costs more than was said.\n"); len(problems) != 1 || !strings.Contains(problems[0], "stands on price.Bound alone") {
		t.Errorf("got %q", problems)
	}
}
