package gym

import (
	"context"
	"fmt"
	"path"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/belay-run/belay/internal/eval"
)

// loader returns esbuild's parser for a file of this name.
func loader(name string) (api.Loader, bool) {
	switch path.Ext(name) {
	case ".ts", ".mts", ".cts":
		return api.LoaderTS, true
	case ".tsx":
		return api.LoaderTSX, true
	case ".js", ".mjs", ".cjs":
		return api.LoaderJS, true
	case ".jsx":
		return api.LoaderJSX, true
	case ".json":
		return api.LoaderJSON, true
	case ".css":
		return api.LoaderCSS, true
	}
	return 0, false
}

// parsed is a file that must be without syntax errors.
type parsed string

// Check parses the file.
func (e parsed) Check(_ context.Context, s *eval.Seen) (failures []string) {
	content, there, err := s.File(string(e))
	if err != nil || !there {
		return []string{fmt.Sprintf("syntax of %s: expected a file, got: %v", e, err)}
	}
	as, _ := loader(string(e))
	r := api.Transform(content, api.TransformOptions{Loader: as, LogLevel: api.LogLevelSilent, Sourcefile: string(e)})
	for _, m := range r.Errors {
		line, column := 0, 0
		if m.Location != nil {
			line, column = m.Location.Line, m.Location.Column+1
		}
		failures = append(failures, fmt.Sprintf("syntax of %s: expected no errors, got %d:%d: %s", e, line, column, m.Text))
	}
	return failures
}
