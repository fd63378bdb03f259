package event_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/event"
)

// made are the structs of this package that the program's own code makes, each
// with a file that does.
func made(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if s, ok := lit.Type.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "event" {
						found[s.Sel.Name] = path
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestStableTypesAreThoseThatAreRecorded: no program text makes a draft, and of
// every other type some does.
// Guarantee: O18.
func TestStableTypesAreThoseThatAreRecorded(t *testing.T) {
	found := made(t)
	for _, k := range event.Types() {
		file, ok := found[event.GoType(k).Name()]
		if ok != k.Stable {
			t.Errorf("%s: stable %t, and made in %q: a draft isn't recorded, and what isn't recorded is a draft", k.Name, k.Stable, file)
		}
	}
}
