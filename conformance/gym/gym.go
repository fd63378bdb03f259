// Package gym reads the scenarios of KeepUpGym (byoungd/keep-up) as they are:
// JSON in files that are called .yaml. Everything that is that system's and not
// ours is here: the names and rules of its tools, its error codes, how its
// scripted model ends, how it compares.
package gym

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/patch"
)

// The file as it is written. Fields that aren't here don't matter to a run.
type (
	scenario struct {
		ID           string        `json:"id"`
		Title        string        `json:"title"`
		Category     string        `json:"category"`
		Difficulty   string        `json:"difficulty"`
		Prompt       string        `json:"prompt"`
		Setup        setup         `json:"setup"`
		Expectations []expectation `json:"expectations"`
		Script       script        `json:"script"`
		MaxTurns     int           `json:"maxTurns"`
	}
	setup struct {
		Files []struct {
			Path    string `json:"path"`
			Content string `json:"content"`
		} `json:"files"`
	}
	expectation struct {
		Type            string `json:"type"`
		Path            string `json:"path"`
		Content         string `json:"content"`
		Pattern         string `json:"pattern"`
		Name            string `json:"name"`
		Code            string `json:"code"`
		MessageIncludes string `json:"messageIncludes"`
		Count           int    `json:"count"`
		Patch           string `json:"patch"`
	}
	script struct {
		Responses []response `json:"responses"`
	}
	response struct {
		Content      string `json:"content"`
		FinishReason string `json:"finishReason"`
		ToolCalls    []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
)

// defaultTurns is how many turns a scenario has that doesn't say.
const defaultTurns = 8

// Read reads a file of the gym. ok is false when it isn't one: those are JSON
// objects with expectations.
func Read(name string, data []byte) (all []*eval.Scenario, ok bool, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !bytes.Contains(data, []byte(`"expectations"`)) {
		return nil, false, nil
	}
	r := reader{name: name, data: data}
	s, err := r.scenario()
	if err != nil {
		return nil, true, err
	}
	return []*eval.Scenario{s}, true, nil
}

// reader reads one file; the first mistake stops it.
type reader struct {
	name string
	data []byte
	err  *belay.Error
}

const hint = "docs/eval.md lists what is read of the gym's scenarios"

// at is a mistake at a byte of the file.
func (r *reader) at(offset int64, format string, args ...any) *belay.Error {
	before := r.data[:min(max(int(offset), 0), len(r.data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return belay.Errorf(belay.CodeBadScenario, format, args...).At(fmt.Sprintf("%s:%d:%d", r.name, line, column)).WithHint(hint)
}

// fail keeps the first mistake, which is at a field.
func (r *reader) fail(field []any, format string, args ...any) {
	if r.err != nil {
		return
	}
	t := strictyaml.Text{Name: r.name, Noun: "scenario", Code: belay.CodeBadScenario}
	root, err := t.Document(r.data)
	if err != nil {
		r.err = r.at(0, format, args...)
		return
	}
	r.err = t.ErrorAt(root, field, format, args...).WithHint(hint)
}

func (r *reader) decode() (f scenario, err error) {
	dec := json.NewDecoder(bytes.NewReader(r.data))
	err = dec.Decode(&f)
	if err == nil {
		if _, more := dec.Token(); more == nil {
			return f, r.at(dec.InputOffset(), "a second document begins")
		}
		return f, nil
	}
	offset := dec.InputOffset()
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = e.Offset - 1
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = e.Offset
	}
	return f, r.at(offset, "it is no JSON of a scenario: %v", err)
}

func (r *reader) scenario() (*eval.Scenario, error) {
	f, err := r.decode()
	if err != nil {
		return nil, err
	}
	switch {
	case f.ID == "" || f.Title == "" || f.Category == "" || f.Difficulty == "":
		r.fail(nil, "a scenario needs id, title, category and difficulty")
	case f.Prompt == "":
		r.fail([]any{"prompt"}, "a scenario needs a prompt")
	case len(f.Expectations) == 0:
		r.fail([]any{"expectations"}, "a scenario that expects nothing can't fail")
	}
	turns := f.MaxTurns
	if turns <= 0 {
		turns = defaultTurns
	}
	s := &eval.Scenario{File: r.name, Line: 1, ID: f.ID, Title: f.Title, Category: f.Category, Tags: []string{"gym", f.Difficulty},
		Prompt: f.Prompt, Files: map[string]string{}, Tools: Tools(),
		Settings: eval.Settings{Allow: names(), MaxSteps: &turns, Flags: []string{"--tools=full"}}}
	for i, file := range f.Setup.Files {
		p := path.Clean(file.Path)
		if file.Path == "" || path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") {
			r.fail([]any{"setup", "files", i, "path"}, "%q is no file below the workspace", file.Path)
		}
		s.Files[p] = file.Content
	}
	for i, e := range f.Expectations {
		s.Expect = append(s.Expect, r.expect(i, e))
	}
	s.Script = r.script(f)
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// The gym compares in many-line mode.
func (r *reader) pattern(i int, text string) string {
	if _, err := regexp.Compile("(?m)" + text); err != nil || text == "" {
		r.fail([]any{"expectations", i, "pattern"}, "%q is no pattern that can be matched here: %v", text, err)
	}
	return text
}

func (r *reader) expect(i int, e expectation) eval.Expectation {
	file := func() string {
		if e.Path == "" {
			r.fail([]any{"expectations", i}, "%s needs a path", e.Type)
		}
		return path.Clean(e.Path)
	}
	switch e.Type {
	case "file_equals":
		return eval.File{Path: file(), Text: eval.Text{Equals: &e.Content}}
	case "file_contains":
		return eval.File{Path: file(), Text: eval.Text{Contains: r.content(i, e)}}
	case "file_regex":
		return eval.File{Path: file(), Text: eval.Text{Matches: r.pattern(i, e.Pattern)}}
	case "no_syntax_errors":
		if _, ok := loader(e.Path); !ok {
			r.fail([]any{"expectations", i, "path"}, "there is no parser for %s", e.Path)
		}
		return parsed(file())
	case "tool_called":
		return eval.Called{Tool: toolName(e.Name)}
	case "tool_result_error":
		return failure(e)
	case "assistant_contains":
		return eval.Assistant{Text: eval.Text{Contains: r.content(i, e)}}
	case "assistant_regex":
		return eval.Assistant{Text: eval.Text{Matches: r.pattern(i, e.Pattern)}}
	case "patch_parses":
		return parses(e.Patch)
	case "max_turns":
		return eval.Steps{Bound: eval.Bound{Most: &e.Count}}
	}
	r.fail([]any{"expectations", i, "type"}, "there is no expectation %q", e.Type)
	return nil
}

func (r *reader) content(i int, e expectation) string {
	if e.Content == "" {
		r.fail([]any{"expectations", i}, "%s of nothing can't fail", e.Type)
	}
	return e.Content
}

// parses is a patch that must be valid. It is part of the scenario itself.
type parses string

// Check parses the patch.
func (e parses) Check(context.Context, *eval.Seen) []string {
	if _, err := patch.Parse(string(e)); err != nil {
		return []string{"patch: expected to parse, got: " + err.Error()}
	}
	return nil
}

// Codes of the gym's errors.
const (
	codeDenied    = "PERMISSION_DENIED"
	codeMissing   = "RESOURCE_NOT_FOUND"
	codeFailed    = "EXECUTION_FAILED"
	codeTimeout   = "TIMEOUT"
	codeArguments = "INVALID_ARGUMENTS"
	codeConflict  = "CONFLICT"
)

// classes are what our runtime calls the same: it may answer before a tool of
// the gym is asked, with a code of its own.
var classes = map[string]string{
	codeDenied: tool.Denied, codeMissing: tool.NotFound, codeArguments: tool.BadArguments, codeTimeout: tool.Timeout, codeConflict: tool.Conflict,
}

// failure is about the first call of the tool that didn't go well.
func failure(e expectation) eval.Expectation {
	f := eval.FailedCall{Tool: toolName(e.Name), Class: classes[e.Code], Message: e.MessageIncludes, First: true}
	if f.Class == "" {
		f.Code = e.Code
	}
	return f
}

// toolName is the gym's name of a tool in the letters that a model may use here:
// file:read is file_read. The completion is ours.
func toolName(name string) string {
	if strings.HasSuffix(name, completionSuffix) {
		return "complete_task"
	}
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, name)
}

const completionSuffix = ":complete_task"
