package eval

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/model/scripted"
)

// The file as it is written.
type (
	scenarioFile struct {
		ID        string         `yaml:"id"`
		Title     string         `yaml:"title"`
		Category  string         `yaml:"category"`
		Tags      []string       `yaml:"tags"`
		Prompt    string         `yaml:"prompt"`
		Setup     setupFile      `yaml:"setup"`
		Script    map[string]any `yaml:"script"` // read by package scripted
		Settings  Settings       `yaml:"settings"`
		Answers   []Answer       `yaml:"answers"`
		Meanwhile []Meanwhile    `yaml:"meanwhile"`
		Then      []Then         `yaml:"then"`
		Expect    []expectFile   `yaml:"expect"`
		Limit     string         `yaml:"limit"`
	}
	setupFile struct {
		Files    map[string]string `yaml:"files"`
		Commands [][]string        `yaml:"commands"`
	}
)

// Parse reads the scenarios of a file, YAML or JSON; several are documents of
// their own. Name is the file's name in errors: a mistake is a belay.Error with
// CodeBadScenario, or CodeBadScript in a script, whose Where is
// name:line:column.
func Parse(name string, data []byte) ([]*Scenario, error) {
	t := textOf(name)
	docs, err := t.Documents(data)
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, doc := range docs {
		r := reader{Reader: strictyaml.Reader{Text: t, Root: doc}}
		s, err := r.scenario()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// ParseAt reads the scenarios of a list within a file, where a path of fields leads to.
// They needn't name a category: that is theirs. The error joins the mistakes of all of them.
func ParseAt(name string, data []byte, category string, path ...any) (all []*Scenario, err error) {
	t := textOf(name)
	doc, err := t.Document(data)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := 0; ; i++ {
		part := strictyaml.At(doc, append(slices.Clone(path), i)...)
		if part == nil {
			return all, err
		}
		r := reader{Reader: strictyaml.Reader{Text: t, Root: part}, category: category}
		s, wrong := r.scenario()
		switch {
		case wrong != nil:
			err = errors.Join(err, wrong)
			continue
		case seen[s.ID]:
			err = errors.Join(err, s.mistake("the id %q is taken by another one", s.ID).WithHint("give one of them another id"))
		}
		seen[s.ID] = true
		all = append(all, s)
	}
}

// reader reads one scenario; the first mistake stops it.
type reader struct {
	strictyaml.Reader
	category string // of one that names none
}

// scenarioID is what a scenario may be called: it is used in names of files and tests.
var scenarioID = match.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (r *reader) scenario() (*Scenario, error) {
	if _, ok := r.Root.(*ast.MappingNode); !ok {
		return nil, r.Fail(nil, "a scenario is an object")
	}
	var f scenarioFile
	if err := r.Decode(r.Root, &f); err != nil {
		return nil, err
	}
	f.Category = cmp.Or(f.Category, r.category)
	s := &Scenario{File: r.Name, Line: strictyaml.Line(r.Root), ID: f.ID, Title: f.Title, Category: f.Category, Tags: f.Tags,
		Prompt: strings.TrimSpace(f.Prompt), Files: f.Setup.Files, Commands: f.Setup.Commands, Settings: f.Settings, Then: f.Then}
	switch {
	case !scenarioID.Match(f.ID):
		r.Fail([]any{"id"}, "a scenario needs an id of letters, digits, dots, - and _").WithHint("write id: NAME")
	case f.Category == "":
		r.Fail([]any{"category"}, "a scenario needs a category").WithHint("write category: NAME; results are counted by it")
	case s.Prompt == "":
		r.Fail([]any{"prompt"}, "a scenario needs a prompt").WithHint("write prompt: TEXT")
	case len(f.Expect) == 0:
		r.Fail([]any{"expect"}, "a scenario that expects nothing can't fail").WithHint("write expect: with the expected results; %s", reference)
	}
	r.setup(f.Setup)
	r.settings([]any{"settings"}, f.Settings)
	s.Schema = r.json([]any{"settings", "outputSchema"}, f.Settings.OutputSchema)
	s.Limit = r.duration([]any{"limit"}, f.Limit)
	if len(f.Answers) > 0 && s.Settings.Approvals == "" {
		s.Settings.Approvals = string(belay.ApprovalsWait)
	}
	r.meanwhile(s, f.Answers, f.Meanwhile)
	for i := range s.Then {
		r.then([]any{"then", i}, &s.Then[i])
	}
	for i, e := range f.Expect {
		s.Expect = append(s.Expect, r.expect([]any{"expect", i}, e, s))
	}
	if err := r.script(s, f); err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return s, nil
}

// script checks the model's side where it stands, so that mistakes have their
// place, and keeps it as a file of its own.
func (r *reader) script(s *Scenario, f scenarioFile) error {
	part := strictyaml.At(r.Root, "script")
	if part == nil {
		r.Fail([]any{"script"}, "a scenario needs a script").WithHint("write script: with steps; docs/scripted.md describes them")
		return nil
	}
	if r.Err != nil {
		return r.Err
	}
	if _, err := scripted.Read(r.Name, part); err != nil {
		return err
	}
	s.Script = r.json([]any{"script"}, f.Script)
	return nil
}

// json is a part of the file for a program.
func (r *reader) json(at []any, v map[string]any) []byte {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		r.Fail(at, "it has no JSON form: %v", err)
	}
	return b
}

func (r *reader) setup(f setupFile) {
	for _, p := range slices.Sorted(maps.Keys(f.Files)) {
		r.filePath([]any{"setup", "files", p}, p)
	}
	for i, argv := range f.Commands {
		if len(argv) == 0 || argv[0] == "" {
			r.Fail([]any{"setup", "commands", i}, "a command is a list that begins with a program").WithHint("write [git, init]; for a shell [sh, -c, TEXT]")
		}
	}
}

// inside reports whether a path, as it is written, names a file below the workspace.
func inside(p string) bool {
	return p != "" && p != "." && p == path.Clean(p) && !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !strings.ContainsRune(p, 0)
}

func (r *reader) settings(at []any, s Settings) {
	for i, flag := range s.Flags {
		if !strings.HasPrefix(flag, "--") {
			r.Fail(strictyaml.Under(at, "flags", i), "%q is no flag", flag).WithHint("write it with its value: --title=TEXT")
		}
	}
}

func (r *reader) then(at []any, t *Then) {
	t.Prompt = strings.TrimSpace(t.Prompt)
	r.settings(at, t.Settings)
	if count(t.Prompt != "", t.Resume, len(t.Belay) > 0) != 1 {
		r.Fail(at, "what follows is one of prompt, resume and belay").WithHint("write resume: true, prompt: TEXT or belay: [verify]")
	}
	if t.Settings.OutputSchema != nil {
		r.Fail(strictyaml.Under(at, "settings"), "an output schema is set for the first run")
	}
}

func (r *reader) duration(at []any, text string) time.Duration {
	return r.Duration(at, text, 1, time.Hour)
}
