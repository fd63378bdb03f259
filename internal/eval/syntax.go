package eval

import (
	"context"
	"encoding/json"
	"errors"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"strings"
)

// syntax is a file that must be without syntax errors.
type syntax string

func (e *syntax) read(r *reader, at []any, _ *Scenario) {
	r.filePath(at, string(*e))
	if !canParse(string(*e)) {
		r.Fail(at, "there is no parser for %s", *e).WithHint("known are .go and .json")
	}
}

// Check parses the file.
func (e syntax) Check(_ context.Context, s *Seen) []string {
	content, failure := s.need(string(e))
	if failure != nil {
		return failure
	}
	if mistakes := syntaxErrors(string(e), content); len(mistakes) > 0 {
		return []string{"syntax of " + string(e) + ": expected no errors, got:\n" + indent(strings.Join(mistakes, "\n"))}
	}
	return nil
}

// canParse reports whether there is a parser for a file of this name.
func canParse(name string) bool { return path.Ext(name) == ".go" || path.Ext(name) == ".json" }

// syntaxErrors lists the syntax errors of a file.
func syntaxErrors(name, content string) (mistakes []string) {
	if path.Ext(name) == ".json" {
		if err := json.Unmarshal([]byte(content), new(json.RawMessage)); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", content, parser.AllErrors|parser.SkipObjectResolution)
	list, _ := errors.AsType[scanner.ErrorList](err)
	for _, e := range list {
		mistakes = append(mistakes, e.Error())
	}
	return mistakes
}
