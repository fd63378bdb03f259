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

// ownFiles is the code that opens files by itself, and why it may: what it opens no
// program of an agent can have made, or it makes the file. The key is the beginning of
// a path.
var ownFiles = map[string]string{
	"internal/lib/files/":                "it is what others open files with",
	"internal/store/":                    "files of the store's folder, and of the system",
	"internal/process/":                  "what the system says of processes",
	"internal/sandbox/":                  "what the system says; files of the person's cache and of a boundary",
	"internal/secret/":                   "the store's key",
	"internal/testkit/":                  "tests",
	"internal/tool/tooltest/":            "tests",
	"internal/tool/file/replace.go":      "it makes a file",
	"internal/tool/file/change.go":       "it asks whether a regular file may be written, without waiting",
	"internal/workspace/git/take.go":     "it makes a file",
	"internal/workspace/git/shadow.go":   "it makes files",
	"internal/workspace/git/aside.go":    "folders",
	"internal/workspace/git/recall.go":   "files of the store's folder",
	"internal/workspace/fswalk/walk.go":  "a folder that is open",
	"internal/model/scripted/":           "a script that a person names",
	"internal/eval/load.go":              "scenarios that a person names",
	"internal/eval/play.go":              "it makes files",
	"internal/cli/demo.go":               "files of the demo",
	"internal/cli/eval.go":               "it makes a file",
	"internal/cli/command/file.go":       "a file that a person names",
	"internal/cli/command/server.go":     "a file of the store's folder",
	"internal/cli/machine/redact.go":     "a file that a person names",
	"internal/cli/serve/console.go":      "files of the program, and one that it makes",
	"internal/cli/sessions/agentnew.go":  "it makes a file",
	"internal/cli/sessions/artifacts.go": "it makes a file",
	"internal/cli/term/editor.go":        "it makes a file",
	"internal/cli/work/measure.go":       "what the system says of the process",
	"event/eventtest/":                   "tests",
	"web/":                               "tools",
}

// opening are calls that wait for a pipe, or read what has no end.
var opening = map[string]bool{"Open": true, "OpenFile": true, "OpenRoot": true, "ReadFile": true, "DirFS": true, "Create": true, "WriteFile": true}

// TestFilesAreOpenedInOnePlace: only what is in the table opens files but with package
// files, which waits for nothing that an agent may have made of them.
// Guarantee: T115.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && p != "." {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			return err
		}
		own := ""
		for prefix := range ownFiles {
			if strings.HasPrefix(filepath.ToSlash(p), prefix) {
				own = prefix
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			system := x != nil && x.Name == "os" && opening[sel.Sel.Name]
			root := x != nil && x.Name == "root" && sel.Sel.Name == "Open"
			method := (x == nil || x.Name != "os" && x.Name != "files" && x.Name != "command") && (sel.Sel.Name == "OpenFile" || sel.Sel.Name == "OpenRoot" || sel.Sel.Name == "FS" && len(call.Args) == 0)
			if system || root || method {
				used[own] = true
				if own == "" {
					t.Errorf("%s calls %s: package files opens what an agent may have made", p, sel.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for prefix := range ownFiles {
		if !used[prefix] {
			t.Errorf("the table names %s, which opens nothing", prefix)
		}
	}
}
