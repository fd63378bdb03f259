package belay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportedNamesAreDocumented wants a comment at each exported name, before it or
// in its line; one of a group of constants may have it over the group.
func TestExportedNamesAreDocumented(t *testing.T) {
	n := 0
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "tools" || name == "conformance" || strings.HasPrefix(name, ".") && name != ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		check := func(id *ast.Ident, comments ...*ast.CommentGroup) {
			n++
			for _, c := range comments {
				if c != nil {
					return
				}
			}
			if id.IsExported() {
				t.Errorf("%s: %s has no comment", set.Position(id.Pos()), id.Name)
			}
		}
		for _, decl := range f.Decls {
			switch x := decl.(type) {
			case *ast.FuncDecl:
				if x.Recv == nil || receiverIsExported(x.Recv.List[0].Type) {
					check(x.Name, x.Doc)
				}
			case *ast.GenDecl:
				for _, s := range x.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						check(s.Name, s.Doc, s.Comment, x.Doc)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							check(id, s.Doc, s.Comment, x.Doc)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 5000 {
		t.Errorf("only %d names were looked at", n)
	}
}

func receiverIsExported(t ast.Expr) bool {
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}
