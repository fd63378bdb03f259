package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/eval/syntax"
)

// Expectation is one thing that must have come of a scenario. Check says what
// was expected and what was there instead; nothing when it holds.
type Expectation interface {
	Check(ctx context.Context, s *Seen) []string
}

// An expectation is an object with one field, which says what it is about.
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
	var found []Expectation
	add := func(e Expectation) { found = append(found, e) }
	in := func(field string) []any { return under(at, field) }
	if f.Outcome != nil {
		r.oneOf(in("outcome"), *f.Outcome, outcomes()...)
		add(Outcome(*f.Outcome))
	}
	if f.Code != nil {
		r.text(in("code"), *f.Code)
		add(EndCode(*f.Code))
	}
	if f.Reason != nil {
		add(Reason{r.words(in("reason"), *f.Reason)})
	}
	if f.Exit != nil {
		add(Exit(*f.Exit))
	}
	if f.Exits != nil {
		if want := 1 + len(s.Then); len(*f.Exits) != want {
			r.fail(in("exits"), "there are %d commands, so there are %d exit codes", want, want)
		}
		add(Exits(*f.Exits))
	}
	if f.Printed != nil {
		add(Printed{r.words(in("printed"), *f.Printed)})
	}
	if f.Assistant != nil {
		add(Assistant{r.words(in("assistant"), *f.Assistant)})
	}
	if f.File != nil {
		add(r.file(in("file"), *f.File, s))
	}
	if f.Files != nil {
		add(Files(sorted(*f.Files)))
	}
	if f.Called != nil {
		add(r.called(in("called"), *f.Called))
	}
	if f.Failed != nil {
		add(r.failed(in("failed"), *f.Failed))
	}
	if f.Result != nil {
		t := *f.Result
		r.text(in("result"), t.Tool)
		add(CallResult{t.Tool, max(t.Nth, 1), r.words(in("result"), textFile{t.Equals, t.Contains, t.Lacks, t.Matches})})
	}
	if f.Together != nil {
		t := *f.Together
		r.text(in("together"), t.Tool)
		add(Together{t.Tool, r.bound(in("together"), boundFile{nil, t.Least, t.Most})})
	}
	if f.Fact != nil {
		c := *f.Fact
		cond := r.fact(in("fact"), factFile{c.Type, c.Where})
		b := boundFile{c.Count, c.Least, c.Most}
		if b == (boundFile{}) {
			one := 1
			b.Least = &one
		}
		add(FactCount{cond, r.bound(in("fact"), b)})
	}
	if f.Order != nil {
		var o Order
		for i, c := range *f.Order {
			o = append(o, r.fact(under(at, "order", i), c))
		}
		if len(o) == 0 {
			r.fail(in("order"), "an order of nothing can't fail")
		}
		add(o)
	}
	if f.Syntax != nil {
		r.filePath(in("syntax"), *f.Syntax)
		if !syntax.Knows(*f.Syntax) {
			r.fail(in("syntax"), "there is no parser for %s", *f.Syntax).WithHint("known are %s", strings.Join(syntax.Kinds(), " "))
		}
		add(Syntax(*f.Syntax))
	}
	if f.Steps != nil {
		add(Steps{r.bound(in("steps"), *f.Steps)})
	}
	if f.Calls != nil {
		add(Calls{r.bound(in("calls"), *f.Calls)})
	}
	if f.Took != nil {
		t := Took{r.duration(in("took"), f.Took.Least), r.duration(in("took"), f.Took.Most)}
		if t == (Took{}) {
			r.fail(in("took"), "it can't fail").WithHint("write most: 5s")
		}
		add(t)
	}
	if f.Store != nil {
		r.oneOf(in("store"), *f.Store, "whole")
		add(WholeStore{})
	}
	if len(found) != 1 {
		r.fail(at, "an expectation is about one thing, not %d", len(found)).WithHint("write each as an element of its own; %s", reference)
		return nil
	}
	return found[0]
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
		return Absent(f.Path)
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

func sorted(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }

// Text is what a text must be.
type Text struct {
	Equals   *string
	Contains string
	Lacks    string
	Matches  *regexp.Regexp
}

func (t Text) check(what, got string) (failures []string) {
	if t.Equals != nil && got != *t.Equals {
		failures = append(failures, fmt.Sprintf("%s is not as expected:\n%s", what, diff(*t.Equals, got)))
	}
	if t.Contains != "" && !strings.Contains(got, t.Contains) {
		failures = append(failures, fmt.Sprintf("%s: expected to contain %q, got:\n%s", what, t.Contains, indent(short(got))))
	}
	if t.Lacks != "" && strings.Contains(got, t.Lacks) {
		failures = append(failures, fmt.Sprintf("%s: expected not to contain %q, got:\n%s", what, t.Lacks, indent(short(got))))
	}
	if t.Matches != nil && !t.Matches.MatchString(got) {
		failures = append(failures, fmt.Sprintf("%s: expected to match %s, got:\n%s", what, t.Matches, indent(short(got))))
	}
	return failures
}

// diff shows two texts line by line; what ends without a newline says so.
func diff(want, got string) string {
	d := udiff.Unified("expected", "got", want, got)
	if d == "" || len(d) > 4*maxShown {
		return indent(fmt.Sprintf("expected %s\ngot      %s", short(strconv.Quote(want)), short(strconv.Quote(got))))
	}
	return indent(d)
}

const maxShown = 2000

func short(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + fmt.Sprintf("\n[%d bytes more]", len(s)-maxShown)
}

// Bound is how many of something there must be. Most -1 is any.
type Bound struct{ Least, Most int }

func (b Bound) check(what string, n int) []string {
	if n >= b.Least && (b.Most < 0 || n <= b.Most) {
		return nil
	}
	return []string{fmt.Sprintf("%s: expected %s, got %d", what, b, n)}
}

func (b Bound) String() string {
	switch {
	case b.Most < 0:
		return fmt.Sprintf("at least %d", b.Least)
	case b.Least == b.Most:
		return strconv.Itoa(b.Least)
	case b.Least == 0:
		return fmt.Sprintf("at most %d", b.Most)
	}
	return fmt.Sprintf("%d to %d", b.Least, b.Most)
}

// Took bounds the time of a scenario; 0 is no bound.
type Took struct{ Least, Most time.Duration }

// Check compares the time.
func (e Took) Check(_ context.Context, s *Seen) (failures []string) {
	if s.Took < e.Least {
		failures = append(failures, fmt.Sprintf("time: expected at least %s, got %s", e.Least, s.Took.Round(time.Millisecond)))
	}
	if e.Most > 0 && s.Took > e.Most {
		failures = append(failures, fmt.Sprintf("time: expected at most %s, got %s", e.Most, s.Took.Round(time.Millisecond)))
	}
	return failures
}

// Syntax is a file that must be without syntax errors.
type Syntax string

// Check parses the file.
func (e Syntax) Check(_ context.Context, s *Seen) []string {
	content, failure := s.need(string(e))
	if failure != nil {
		return failure
	}
	if mistakes := syntax.Check(string(e), content); len(mistakes) > 0 {
		return []string{"syntax of " + string(e) + ": expected no errors, got:\n" + indent(strings.Join(mistakes, "\n"))}
	}
	return nil
}

// need is a file that must exist.
func (s *Seen) need(name string) (content string, failure []string) {
	content, there, err := s.File(name)
	switch {
	case err != nil:
		return "", []string{"file " + name + ": " + err.Error()}
	case !there:
		names, _ := s.Files()
		return "", []string{fmt.Sprintf("file %s: expected to exist; the files are %s", name, list(names))}
	}
	return content, nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if len(names) > 30 {
		return strings.Join(names[:30], ", ") + fmt.Sprintf(" and %d more", len(names)-30)
	}
	return strings.Join(names, ", ")
}

// args are a call's arguments as values.
func (c Call) args() any {
	var v any
	if json.Unmarshal(c.Args, &v) != nil {
		return nil
	}
	return v
}

// ended tells how a call ended, in short.
func (c Call) ended() string {
	switch {
	case c.Problem != nil:
		return c.Problem.Code + " (" + c.Problem.Class + "): " + c.Problem.Message
	case c.Result != nil:
		return "went well"
	}
	return "hasn't ended"
}

// Kinds lists what an expectation can be about, as a file writes it.
func Kinds() (names []string) {
	for f := range reflect.TypeFor[expectFile]().Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}
