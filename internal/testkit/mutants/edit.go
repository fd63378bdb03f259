package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// edit is a change of one function or variable. It names as little as it can, so
// that renaming and moving leave it alone: the end of a package's path and the
// symbol, "thread.refusal", and a text that stands once in what is called so.
type edit struct {
	at, text string
	how      how
	broken   string // what stands for text, when how is replaced
}

type how int

const (
	replaced how = iota
	isFalse
	skipped
)

// never makes the innermost condition around text false.
func never(at, text string) []edit { return []edit{{at: at, text: text, how: isFalse}} }

// drop passes over the innermost statement around text.
func drop(at, text string) []edit { return []edit{{at: at, text: text, how: skipped}} }

// swap puts broken where text stands, in a statement, a condition or the value
// of a variable.
func swap(at, text, broken string) []edit { return []edit{{at: at, text: text, broken: broken}} }

// tree finds what edits name; root is where the module is.
type tree struct {
	root  string
	dirs  []string           // of packages, relative to root
	files map[string][]*file // by directory
}

type file struct {
	path string // relative to root
	src  string
	ast  *ast.File
	base int // what a position has to be reduced by
}

func newTree(root string) (*tree, error) {
	t := &tree{root: root, files: map[string][]*file{}}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); p != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if found, _ := filepath.Glob(filepath.Join(p, "*.go")); len(found) > 0 {
			rel, err := filepath.Rel(root, p)
			t.dirs = append(t.dirs, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	return t, err
}

// find returns the one directory of a package whose path ends so; "." is the root.
func (t *tree) find(end string) (string, error) {
	var found []string
	for _, d := range t.dirs {
		if d == end || strings.HasSuffix(d, "/"+end) {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d packages end with %s, not one: %q", len(found), end, found)
	}
	return found[0], nil
}

// parsed returns the files of a package, those of tests or the others.
func (t *tree) parsed(dir string, tests bool) ([]*file, error) {
	key := fmt.Sprint(dir, tests)
	if all, ok := t.files[key]; ok {
		return all, nil
	}
	paths, err := filepath.Glob(filepath.Join(t.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []*file
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") != tests {
			continue
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, p, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, &file{path: path.Join(dir, filepath.Base(p)), src: string(src), ast: f, base: set.File(f.Pos()).Base()})
	}
	t.files[key] = all
	return all, nil
}

// insertion is what an edit puts around a region of a file: the program as it
// is stays in the middle, so edits can lie in one another.
type insertion struct {
	file          *file
	from, to      int
	before, after string
}

// apply finds the edit's place and says what makes the program break there while
// the mutant's id is on.
func (t *tree) apply(e edit, id string) (insertion, error) {
	dot := strings.LastIndex(e.at, ".")
	dir, err := t.find(e.at[:max(dot, 0)])
	if err != nil {
		return insertion{}, err
	}
	files, err := t.parsed(dir, false)
	if err != nil {
		return insertion{}, err
	}
	var found []insertion
	symbols := 0
	for _, f := range files {
		for _, span := range f.symbols(e.at[dot+1:]) {
			symbols++
			for at := span[0]; ; {
				i := strings.Index(f.src[at:span[1]], e.text)
				if i < 0 || e.text == "" {
					break
				}
				found = append(found, insertion{file: f, from: at + i, to: at + i + len(e.text)})
				at += i + 1
			}
		}
	}
	switch {
	case symbols == 0:
		return insertion{}, fmt.Errorf("%s: nothing is called that", e.at)
	case len(found) != 1:
		return insertion{}, fmt.Errorf("%s: the text to break occurs %d times, not once: %q", e.at, len(found), e.text)
	case e.how == replaced && e.text == e.broken:
		return insertion{}, fmt.Errorf("%s: the edit changes nothing: %q", e.at, e.text)
	}
	if err := found[0].around(e, id); err != nil {
		return insertion{}, fmt.Errorf("%s: %w: %q", e.at, err, e.text)
	}
	return found[0], nil
}

// symbols are where functions, methods and variables of a name stand.
func (f *file) symbols(name string) (spans [][2]int) {
	add := func(n ast.Node) { spans = append(spans, [2]int{int(n.Pos()) - f.base, int(n.End()) - f.base}) }
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == name {
				add(d)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && slices.ContainsFunc(v.Names, func(n *ast.Ident) bool { return n.Name == name }) {
					add(v)
				}
			}
		}
	}
	return spans
}

// around widens the place of the text to the region that the edit needs, and
// sets what stands around it.
func (in *insertion) around(e edit, id string) error {
	var chain []ast.Node // from the file to the innermost node around the text
	ast.Inspect(in.file.ast, func(n ast.Node) bool {
		if n == nil || int(n.Pos())-in.file.base > in.from || int(n.End())-in.file.base < in.to {
			return false
		}
		chain = append(chain, n)
		return true
	})
	from, to := in.from, in.to
	take := func(n ast.Node) string {
		in.from, in.to = int(n.Pos())-in.file.base, int(n.End())-in.file.base
		return in.file.src[in.from:from] + e.broken + in.file.src[to:in.to]
	}
	for i := len(chain) - 1; i > 0; i-- {
		n, parent := chain[i], chain[i-1]
		switch {
		case e.how != skipped && isCondition(chain[:i+1]):
			broken := take(n)
			in.before, in.after = fmt.Sprintf("(%s != %q && (", brokenVar, id), "))"
			if e.how == replaced {
				in.before = fmt.Sprintf("(%s == %q && (%s) || %s != %q && (", brokenVar, id, broken, brokenVar, id)
			}
			return nil
		case e.how == isFalse:
		case e.how == replaced && isValue(n, parent):
			last := chain[len(chain)-1]
			if _, isPair := last.(*ast.KeyValueExpr); !isPair && int(last.Pos())-in.file.base == from && int(last.End())-in.file.base == to {
				n = last // both values are worked out, so the smaller it is the better
			}
			in.before, in.after = fmt.Sprintf("%s(%q, %s, ", brokenFunc, id, take(n)), ")"
			return nil
		case isStatement(n, parent):
			broken := take(n)
			in.before, in.after = fmt.Sprintf("if %s != %q { ", brokenVar, id), " }"
			if e.how == replaced {
				in.before = fmt.Sprintf("if %s == %q { %s } else { ", brokenVar, id, broken)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no condition, statement or value around it")
}

// isCondition reports whether the last node of the chain is true or false by
// where it stands or by its operator.
func isCondition(chain []ast.Node) bool {
	n, parent := chain[len(chain)-1], chain[len(chain)-2]
	if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR || b.Op.Precedence() == token.EQL.Precedence()) {
		return true
	}
	switch p := parent.(type) {
	case *ast.IfStmt:
		return n == p.Cond
	case *ast.ForStmt:
		return n == p.Cond
	case *ast.BinaryExpr:
		return p.Op == token.LAND || p.Op == token.LOR
	case *ast.UnaryExpr:
		return p.Op == token.NOT
	case *ast.CaseClause:
		x, ok := n.(ast.Expr)
		s, plain := chain[len(chain)-4].(*ast.SwitchStmt)
		return ok && slices.Contains(p.List, x) && plain && s.Tag == nil
	}
	return false
}

// isValue reports whether a node is what a declaration gives a variable.
func isValue(n, parent ast.Node) bool {
	x, ok := n.(ast.Expr)
	if !ok {
		return false
	}
	switch p := parent.(type) {
	case *ast.AssignStmt:
		return p.Tok == token.DEFINE && len(p.Lhs) == len(p.Rhs) && slices.Contains(p.Rhs, x)
	case *ast.ValueSpec:
		return slices.Contains(p.Values, x)
	}
	return false
}

// isStatement reports whether a node is a statement of a list that declares nothing.
func isStatement(n, parent ast.Node) bool {
	s, ok := n.(ast.Stmt)
	if a, isAssign := n.(*ast.AssignStmt); !ok || isAssign && a.Tok == token.DEFINE {
		return false
	}
	switch p := parent.(type) {
	case *ast.BlockStmt:
		_, isCase := s.(*ast.CaseClause)
		_, isComm := s.(*ast.CommClause)
		return !isCase && !isComm
	case *ast.CaseClause:
		return slices.Contains(p.Body, s)
	case *ast.CommClause:
		return slices.Contains(p.Body, s)
	}
	return false
}

// woven is a file's text with all insertions made.
func woven(src string, all []insertion) string {
	type piece struct {
		at, order int
		text      string
	}
	// the outer region begins first and ends last
	slices.SortStableFunc(all, func(a, b insertion) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var pieces []piece
	for i, in := range all {
		pieces = append(pieces, piece{in.from, i + 1, in.before}, piece{in.to, -i - 1, in.after})
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Or(a.at-b.at, a.order-b.order) })
	var out strings.Builder
	at := 0
	for _, p := range pieces {
		out.WriteString(src[at:p.at] + p.text)
		at = p.at
	}
	return out.String() + src[at:]
}
