package eval

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// An expectation is an object with one field, whose name is the kind.
type (
	expectFile struct {
		Outcome   *string        `yaml:"outcome"`
		Code      *string        `yaml:"code"`
		Reason    *textFile      `yaml:"reason"`
		Exit      *int           `yaml:"exit"`
		Exits     *[]int         `yaml:"exits"`
		Printed   *textFile      `yaml:"printed"`
		Assistant *textFile      `yaml:"assistant"`
		File      *fileFile      `yaml:"file"`
		Files     *[]string      `yaml:"files"`
		Called    *calledFile    `yaml:"called"`
		Failed    *failedFile    `yaml:"failed"`
		Result    *resultFile    `yaml:"result"`
		Together  *togetherFile  `yaml:"together"`
		Fact      *factCountFile `yaml:"fact"`
		Order     *[]factFile    `yaml:"order"`
		Syntax    *string        `yaml:"syntax"`
		Steps     *boundFile     `yaml:"steps"`
		Calls     *boundFile     `yaml:"calls"`
		Took      *tookFile      `yaml:"took"`
		Store     *string        `yaml:"store"`
	}
	textFile struct {
		Equals   *string `yaml:"equals"`
		Contains string  `yaml:"contains"`
		Lacks    string  `yaml:"lacks"`
		Matches  string  `yaml:"matches"`
	}
	fileFile struct {
		Path      string  `yaml:"path"`
		Equals    *string `yaml:"equals"`
		Contains  string  `yaml:"contains"`
		Lacks     string  `yaml:"lacks"`
		Matches   string  `yaml:"matches"`
		Absent    bool    `yaml:"absent"`
		Unchanged bool    `yaml:"unchanged"`
	}
	calledFile struct {
		Tool  string         `yaml:"tool"`
		Times *int           `yaml:"times"`
		Args  map[string]any `yaml:"args"` // any JSON values
		Good  *bool          `yaml:"good"`
	}
	failedFile struct {
		Tool    string `yaml:"tool"`
		Class   string `yaml:"class"`
		Code    string `yaml:"code"`
		Message string `yaml:"message"`
		Times   *int   `yaml:"times"`
	}
	resultFile struct {
		Tool     string  `yaml:"tool"`
		Nth      int     `yaml:"nth"`
		Equals   *string `yaml:"equals"`
		Contains string  `yaml:"contains"`
		Lacks    string  `yaml:"lacks"`
		Matches  string  `yaml:"matches"`
	}
	togetherFile struct {
		Tool  string `yaml:"tool"`
		Least *int   `yaml:"least"`
		Most  *int   `yaml:"most"`
	}
	factCountFile struct {
		Type  string         `yaml:"type"`
		Where map[string]any `yaml:"where"` // any JSON values
		Count *int           `yaml:"count"`
		Least *int           `yaml:"least"`
		Most  *int           `yaml:"most"`
	}
	boundFile struct {
		Count *int `yaml:"count"`
		Least *int `yaml:"least"`
		Most  *int `yaml:"most"`
	}
	tookFile struct {
		Least string `yaml:"least"`
		Most  string `yaml:"most"`
	}
)

// expect reads one expectation. What can't fail is a mistake.
func (r *reader) expect(at []any, f expectFile, s *Scenario) Expectation {
	found := slices.Concat(r.ofEnd(at, f, s), r.ofText(at, f), r.ofFiles(at, f, s), r.ofCalls(at, f), r.ofFacts(at, f), r.ofFigures(at, f))
	if len(found) != 1 {
		r.fail(at, "an expectation is about one thing, not %d", len(found)).WithHint("write each as an element of its own; %s", reference)
		return nil
	}
	return found[0]
}

// ofEnd is about how a scenario ended.
func (r *reader) ofEnd(at []any, f expectFile, s *Scenario) (found []Expectation) {
	if f.Outcome != nil {
		r.oneOf(under(at, "outcome"), *f.Outcome, outcomes()...)
		found = append(found, Outcome(*f.Outcome))
	}
	if f.Code != nil {
		r.text(under(at, "code"), *f.Code)
		found = append(found, endCode(*f.Code))
	}
	if f.Reason != nil {
		found = append(found, Reason{r.words(under(at, "reason"), *f.Reason)})
	}
	if f.Exit != nil {
		found = append(found, Exit(*f.Exit))
	}
	if f.Exits != nil {
		if want := 1 + len(s.Then); len(*f.Exits) != want {
			r.fail(under(at, "exits"), "there are %d commands, so there are %d exit codes", want, want)
		}
		found = append(found, exits(*f.Exits))
	}
	return found
}

// ofText is about what was printed and said.
func (r *reader) ofText(at []any, f expectFile) (found []Expectation) {
	if f.Printed != nil {
		found = append(found, printed{r.words(under(at, "printed"), *f.Printed)})
	}
	if f.Assistant != nil {
		found = append(found, Assistant{r.words(under(at, "assistant"), *f.Assistant)})
	}
	return found
}

// ofFiles is about the workspace's files.
func (r *reader) ofFiles(at []any, f expectFile, s *Scenario) (found []Expectation) {
	if f.File != nil {
		found = append(found, r.file(under(at, "file"), *f.File, s))
	}
	if f.Files != nil {
		found = append(found, files(sorted(*f.Files)))
	}
	if f.Syntax != nil {
		r.filePath(under(at, "syntax"), *f.Syntax)
		if !canParse(*f.Syntax) {
			r.fail(under(at, "syntax"), "there is no parser for %s", *f.Syntax).WithHint("known are .go and .json")
		}
		found = append(found, syntax(*f.Syntax))
	}
	return found
}

// ofCalls is about single calls and how they ran.
func (r *reader) ofCalls(at []any, f expectFile) (found []Expectation) {
	if f.Called != nil {
		found = append(found, r.called(under(at, "called"), *f.Called))
	}
	if f.Failed != nil {
		found = append(found, r.failed(under(at, "failed"), *f.Failed))
	}
	if t := f.Result; t != nil {
		r.text(under(at, "result"), t.Tool)
		found = append(found, CallResult{t.Tool, max(t.Nth, 1), r.words(under(at, "result"), textFile{t.Equals, t.Contains, t.Lacks, t.Matches})})
	}
	if t := f.Together; t != nil {
		r.text(under(at, "together"), t.Tool)
		found = append(found, together{t.Tool, r.bound(under(at, "together"), boundFile{nil, t.Least, t.Most})})
	}
	return found
}

// ofFacts is about the log, and the store that it is in.
func (r *reader) ofFacts(at []any, f expectFile) (found []Expectation) {
	if c := f.Fact; c != nil {
		cond := r.fact(under(at, "fact"), factFile{c.Type, c.Where})
		b := boundFile{c.Count, c.Least, c.Most}
		if b == (boundFile{}) {
			b.Least = new(1)
		}
		found = append(found, factCount{cond, r.bound(under(at, "fact"), b)})
	}
	if f.Order != nil {
		var o order
		for i, c := range *f.Order {
			o = append(o, r.fact(under(at, "order", i), c))
		}
		if len(o) == 0 {
			r.fail(under(at, "order"), "an order of nothing can't fail")
		}
		found = append(found, o)
	}
	if f.Store != nil {
		r.oneOf(under(at, "store"), *f.Store, "whole")
		found = append(found, wholeStore{})
	}
	return found
}

// ofFigures is about what it took.
func (r *reader) ofFigures(at []any, f expectFile) (found []Expectation) {
	if f.Steps != nil {
		found = append(found, Steps{r.bound(under(at, "steps"), *f.Steps)})
	}
	if f.Calls != nil {
		found = append(found, calls{r.bound(under(at, "calls"), *f.Calls)})
	}
	if f.Took != nil {
		t := took{r.duration(under(at, "took"), f.Took.Least), r.duration(under(at, "took"), f.Took.Most)}
		if t == (took{}) {
			r.fail(under(at, "took"), "it can't fail").WithHint("write most: 5s")
		}
		found = append(found, t)
	}
	return found
}

func outcomes() []string {
	names := []string{waiting}
	for _, o := range belay.Outcomes {
		names = append(names, string(o))
	}
	return names
}

func (r *reader) oneOf(at []any, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		r.fail(at, "%q is none of %s", v, strings.Join(allowed, ", "))
	}
}

// text refuses what is empty.
func (r *reader) text(at []any, v string) {
	if v == "" {
		r.fail(at, "something is missing here").WithHint("%s", reference)
	}
}

func (r *reader) words(at []any, f textFile) Text {
	t := Text{Equals: f.Equals, Contains: f.Contains, Lacks: f.Lacks, Matches: r.pattern(under(at, "matches"), f.Matches)}
	if t.Equals == nil && t.Contains == "" && t.Lacks == "" && f.Matches == "" {
		r.fail(at, "it can't fail").WithHint("write one of equals, contains, lacks and matches")
	}
	return t
}

func (r *reader) file(at []any, f fileFile, s *Scenario) Expectation {
	r.filePath(under(at, "path"), f.Path)
	n := 0
	for _, given := range []bool{f.Absent, f.Unchanged, f.Equals != nil || f.Contains != "" || f.Lacks != "" || f.Matches != ""} {
		if given {
			n++
		}
	}
	if n != 1 {
		r.fail(at, "a file is absent, unchanged, or has a content").WithHint("write one of absent: true, unchanged: true, equals, contains, lacks and matches")
		return nil
	}
	switch {
	case f.Absent:
		return absent(f.Path)
	case f.Unchanged:
		was, ok := s.Files[f.Path]
		if !ok {
			r.fail(under(at, "path"), "%s isn't among the files of the setup, so it can't be unchanged", f.Path)
		}
		return File{f.Path, Text{Equals: &was}}
	}
	return File{f.Path, r.words(at, textFile{f.Equals, f.Contains, f.Lacks, f.Matches})}
}

func (r *reader) called(at []any, f calledFile) Expectation {
	r.text(under(at, "tool"), f.Tool)
	args, _ := plain(f.Args).(map[string]any)
	if f.Times != nil && *f.Times < 0 {
		r.fail(under(at, "times"), "%d is no number from 0", *f.Times)
	}
	return Called{Tool: f.Tool, Times: f.Times, Args: args, Good: f.Good}
}

func (r *reader) failed(at []any, f failedFile) Expectation {
	r.text(under(at, "tool"), f.Tool)
	e := FailedCall{Tool: f.Tool, Class: f.Class, Message: f.Message, Times: f.Times}
	if f.Code != "" {
		e.Codes = []string{f.Code}
	}
	return e
}

func (r *reader) bound(at []any, f boundFile) Bound {
	b := Bound{0, -1}
	switch {
	case f.Count != nil:
		b = Bound{*f.Count, *f.Count}
		if f.Least != nil || f.Most != nil {
			r.fail(at, "count says all that least and most could")
		}
	case f.Least == nil && f.Most == nil:
		r.fail(at, "it can't fail").WithHint("write count, least or most")
	}
	if f.Least != nil {
		b.Least = *f.Least
		if b.Least < 1 {
			r.fail(at, "least %d can't fail", b.Least)
		}
	}
	if f.Most != nil {
		b.Most = *f.Most
	}
	if b.Most >= 0 && b.Most < b.Least || f.Most != nil && *f.Most < 0 || b.Least < 0 {
		r.fail(at, "no number is at least %d and at most %d", b.Least, b.Most)
	}
	return b
}
