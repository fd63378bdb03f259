// Package syntax reports whether a file can be parsed, by a real parser of its
// language. It runs nothing and resolves no imports.
package syntax

import (
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

var loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX,
	".js": api.LoaderJS, ".mjs": api.LoaderJS, ".cjs": api.LoaderJS, ".jsx": api.LoaderJSX,
	".json": api.LoaderJSON, ".css": api.LoaderCSS,
}

// Kinds lists the file name endings that have a parser.
func Kinds() []string {
	return []string{".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".css", ".go"}
}

// Knows reports whether there is a parser for a file of this name.
func Knows(name string) bool {
	ext := path.Ext(name)
	_, ok := loaders[ext]
	return ok || ext == ".go"
}

// Check lists the syntax errors of a file as line:column: message.
func Check(name, content string) (mistakes []string) {
	if path.Ext(name) == ".go" {
		return checkGo(name, content)
	}
	r := api.Transform(content, api.TransformOptions{Loader: loaders[path.Ext(name)], LogLevel: api.LogLevelSilent, Sourcefile: name})
	for _, m := range r.Errors {
		where := ""
		if m.Location != nil {
			where = fmt.Sprintf("%d:%d: ", m.Location.Line, m.Location.Column+1)
		}
		mistakes = append(mistakes, where+m.Text)
	}
	return mistakes
}

func checkGo(name, content string) (mistakes []string) {
	_, err := parser.ParseFile(token.NewFileSet(), name, content, parser.AllErrors|parser.SkipObjectResolution)
	list, ok := err.(scanner.ErrorList)
	if err != nil && !ok {
		return []string{err.Error()}
	}
	for _, e := range list {
		mistakes = append(mistakes, fmt.Sprintf("%d:%d: %s", e.Pos.Line, e.Pos.Column, strings.TrimSpace(e.Msg)))
	}
	return mistakes
}
