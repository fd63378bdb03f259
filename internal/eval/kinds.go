package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Outcome is how the last turn must have ended.
type Outcome string

func (e *Outcome) read(r *reader, at []any, _ *Scenario) { r.oneOf(at, string(*e), outcomes()...) }

// Check compares the outcome.
func (e Outcome) Check(_ context.Context, s *Seen) []string {
	outcome, code, reason := s.End()
	if outcome == string(e) {
		return nil
	}
	if code != "" {
		outcome += fmt.Sprintf(" (%s: %s)", code, reason)
	}
	return []string{fmt.Sprintf("outcome: expected %s, got %s", e, outcome)}
}

// endCode is the code with which the last turn must have failed.
type endCode string

func (e *endCode) read(r *reader, at []any, _ *Scenario) { r.text(at, string(*e)) }

// Check compares the code.
func (e endCode) Check(_ context.Context, s *Seen) []string {
	outcome, code, reason := s.End()
	if code == string(e) {
		return nil
	}
	return []string{fmt.Sprintf("code of the end: expected %s, got %q (%s %s)", e, code, outcome, reason)}
}

// Reason is why the last turn must have failed.
type Reason struct {
	Text `yaml:",inline"`
}

// Check compares the reason.
func (e Reason) Check(_ context.Context, s *Seen) []string {
	_, _, reason := s.End()
	return e.check("reason of the end", reason)
}

// Exit is the last command's exit code.
type Exit int

func (*Exit) read(*reader, []any, *Scenario) {}

// Check compares the code.
func (e Exit) Check(_ context.Context, s *Seen) []string {
	if got := s.Exits[len(s.Exits)-1]; got != int(e) {
		return []string{fmt.Sprintf("exit code: expected %d, got %d", e, got)}
	}
	return nil
}

// exits are the exit codes of all commands.
type exits []int

func (e *exits) read(r *reader, at []any, s *Scenario) {
	if want := 1 + len(s.Then); len(*e) != want {
		r.Fail(at, "there are %d commands, so there are %d exit codes", want, want)
	}
}

// Check compares the codes.
func (e exits) Check(_ context.Context, s *Seen) []string {
	if !slices.Equal(s.Exits, e) {
		return []string{fmt.Sprintf("exit codes: expected %v, got %v", []int(e), s.Exits)}
	}
	return nil
}

// printed is what the last command printed.
type printed struct {
	Text `yaml:",inline"`
}

// Check compares the text.
func (e printed) Check(_ context.Context, s *Seen) []string {
	return e.check("what was printed", s.Printed)
}

// Assistant is what the model said, all answers with a newline between them.
type Assistant struct {
	Text `yaml:",inline"`
}

// Check compares the text.
func (e Assistant) Check(_ context.Context, s *Seen) []string {
	return e.check("what the model said", s.Said)
}

// File is a file's content. Without a text it is absent, or as it was before.
type File struct {
	Path      string `yaml:"path"`
	Text      `yaml:",inline"`
	Absent    bool `yaml:"absent"`
	Unchanged bool `yaml:"unchanged"`
}

func (e *File) read(r *reader, at []any, s *Scenario) {
	r.filePath(strictyaml.Under(at, "path"), e.Path)
	if count(e.Absent, e.Unchanged, e.Text != Text{}) != 1 {
		r.Fail(at, "a file is absent, unchanged, or has a content").WithHint("write one of absent: true, unchanged: true, equals, contains, lacks and matches")
		return
	}
	switch was, ok := s.Files[e.Path]; {
	case e.Unchanged && !ok:
		r.Fail(strictyaml.Under(at, "path"), "%s isn't among the files of the setup, so it can't be unchanged", e.Path)
	case e.Unchanged:
		e.Equals = &was
	case !e.Absent:
		e.Text.read(r, at, s)
	}
}

// Check compares the content, or looks for the file.
func (e File) Check(_ context.Context, s *Seen) []string {
	if e.Absent {
		content, there, err := s.File(e.Path)
		if err != nil || there {
			return []string{fmt.Sprintf("file %s: expected to be absent, got:\n%s", e.Path, indent(short(content)))}
		}
		return nil
	}
	content, failure := s.need(e.Path)
	if failure != nil {
		return failure
	}
	return e.check("file "+e.Path, content)
}

// fileNames are all files of the workspace, sorted.
type fileNames []string

func (e *fileNames) read(*reader, []any, *Scenario) { slices.Sort(*e) }

// Check compares the names.
func (e fileNames) Check(_ context.Context, s *Seen) []string {
	got, err := s.Files()
	if err != nil {
		return []string{"the workspace can't be read: " + err.Error()}
	}
	if slices.Equal(got, e) {
		return nil
	}
	return []string{"the files are not as expected:\n" + diff(strings.Join(e, "\n")+"\n", strings.Join(got, "\n")+"\n")}
}

// Called is a call that the model must have made, of a tool that exists.
type Called struct {
	Tool  string         `yaml:"tool"`
	Times *int           `yaml:"times"` // nil is at least once
	Args  map[string]any `yaml:"args"`  // that it had among its arguments: any JSON values
	Good  *bool          `yaml:"good"`  // whether it went well; nil is either
}

func (e *Called) read(r *reader, at []any, _ *Scenario) {
	r.text(strictyaml.Under(at, "tool"), e.Tool)
	e.Args, _ = plain(e.Args).(map[string]any)
	if e.Times != nil && *e.Times < 0 {
		r.Fail(strictyaml.Under(at, "times"), "%d is no number from 0", *e.Times)
	}
}

// Check counts the calls.
func (e Called) Check(_ context.Context, s *Seen) []string {
	n := 0
	for _, c := range s.Calls {
		if c.Tool == e.Tool && !c.Refused && has(c.args(), e.Args) && (e.Good == nil || *e.Good == (c.Result != nil)) {
			n++
		}
	}
	what := "a call of " + e.Tool
	if len(e.Args) > 0 {
		b, _ := json.Marshal(e.Args)
		what += " with " + string(b)
	}
	if e.Good != nil {
		what += map[bool]string{true: " that went well", false: " that didn't go well"}[*e.Good]
	}
	return s.counted(what, e.Times, n)
}

// counted compares how many calls there were; nil is at least one.
func (s *Seen) counted(what string, want *int, n int) []string {
	if want == nil && n > 0 || want != nil && n == *want {
		return nil
	}
	expected := "at least once"
	if want != nil {
		expected = times(*want)
	}
	return []string{fmt.Sprintf("%s: expected %s, got %s; the calls:\n%s", what, expected, times(n), s.callList())}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// callList is all calls, for a failure.
func (s *Seen) callList() string {
	var lines []string
	for i, c := range s.Calls {
		if i == 20 {
			lines = append(lines, fmt.Sprintf("and %d more", len(s.Calls)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", c.Tool, short(string(c.Args)), c.ended()))
	}
	if len(lines) == 0 {
		return "  none"
	}
	return indent(strings.Join(lines, "\n"))
}

// FailedCall is a call that must have failed, been denied or be lost. What is
// empty may be anything.
type FailedCall struct {
	Tool    string `yaml:"tool"`
	Class   string `yaml:"class"` // of the problem
	Code    string `yaml:"code"`
	Message string `yaml:"message"` // that it contains
	Times   *int   `yaml:"times"`   // nil is at least once
	First   bool   `yaml:"-"`       // it must be the first of the tool's calls that didn't go well
}

func (e *FailedCall) read(r *reader, at []any, _ *Scenario) {
	r.text(strictyaml.Under(at, "tool"), e.Tool)
}

func (e FailedCall) holds(p *event.Problem) bool {
	return p != nil && (e.Class == "" || e.Class == p.Class) && (e.Code == "" || e.Code == p.Code) && strings.Contains(p.Message, e.Message)
}

// Check looks for the call.
func (e FailedCall) Check(_ context.Context, s *Seen) []string {
	n := 0
	for _, c := range s.Calls {
		if c.Tool != e.Tool || c.Problem == nil {
			continue
		}
		if e.holds(c.Problem) {
			n++
		}
		if e.First {
			break
		}
	}
	what := "a failed call of " + e.Tool
	if e.Code != "" {
		what += ", code " + e.Code
	}
	if e.Class != "" {
		what += ", class " + e.Class
	}
	if e.Message != "" {
		what += fmt.Sprintf(", with %q in its message", e.Message)
	}
	return s.counted(what, e.Times, n)
}

// CallResult is what the model must have read of a call that went well.
type CallResult struct {
	Tool string `yaml:"tool"`
	Nth  int    `yaml:"nth"` // of the tool's calls that went well, from 1
	Text `yaml:",inline"`
}

func (e *CallResult) read(r *reader, at []any, s *Scenario) {
	r.text(at, e.Tool)
	e.Nth = max(e.Nth, 1)
	e.Text.read(r, at, s)
}

// Check compares the text.
func (e CallResult) Check(_ context.Context, s *Seen) []string {
	n := 0
	for _, c := range s.Calls {
		if c.Tool != e.Tool || c.Result == nil {
			continue
		}
		if n++; n == e.Nth {
			return e.check(fmt.Sprintf("result %d of %s", e.Nth, e.Tool), *c.Result)
		}
	}
	return []string{fmt.Sprintf("result %d of %s: only %d calls went well; the calls:\n%s", e.Nth, e.Tool, n, s.callList())}
}

// together is how many calls of a tool must have been out at the same time, at most.
type together struct {
	Tool  string `yaml:"tool"`
	Least *int   `yaml:"least"`
	Most  *int   `yaml:"most"`
}

func (e *together) bound() *Bound { return &Bound{Least: e.Least, Most: e.Most} }

func (e *together) read(r *reader, at []any, s *Scenario) {
	r.text(at, e.Tool)
	e.bound().read(r, at, s)
}

// Check follows the log.
func (e together) Check(_ context.Context, s *Seen) []string {
	out, most := map[string]bool{}, 0
	for _, f := range s.Facts {
		switch d := f.Data.(type) {
		case event.ToolStarted:
			if d.Name == e.Tool {
				out[string(f.IDs.Call)] = true
			}
		case event.ToolResult, event.ToolFailed:
			delete(out, string(f.IDs.Call))
		}
		most = max(most, len(out))
	}
	return e.bound().check("calls of "+e.Tool+" at the same time", most)
}

// factCount is how many facts must meet a condition.
type factCount struct {
	Type  string         `yaml:"type"`
	Where map[string]any `yaml:"where"` // any JSON values
	Bound `yaml:",inline"`
}

func (e *factCount) read(r *reader, at []any, s *Scenario) {
	e.Where = r.fact(at, Fact{e.Type, e.Where}).Where
	if e.Bound == (Bound{}) {
		e.Least = new(1)
	}
	e.Bound.read(r, at, s)
}

// Check counts the facts.
func (e factCount) Check(_ context.Context, s *Seen) []string {
	f := Fact{e.Type, e.Where}
	failures := e.check("facts "+f.String(), s.Count(f))
	if len(failures) > 0 {
		failures[0] += s.ofType(e.Type)
	}
	return failures
}

// ofType shows the facts of a type.
func (s *Seen) ofType(name string) string {
	var lines []string
	for _, f := range s.Facts {
		if f.Type() == name && len(lines) < 10 {
			raw, _ := event.Encode(f.Data)
			lines = append(lines, short(string(raw)))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "; all " + name + ":\n" + indent(strings.Join(lines, "\n"))
}

// order is facts that must have come one after the other; others may be between.
type order []Fact

func (e *order) read(r *reader, at []any, _ *Scenario) {
	for i, f := range *e {
		(*e)[i] = r.fact(strictyaml.Under(at, i), f)
	}
	if len(*e) == 0 {
		r.Fail(at, "an order of nothing can't fail")
	}
}

// Check follows the log.
func (e order) Check(_ context.Context, s *Seen) []string {
	next := 0
	for _, f := range s.Facts {
		if next < len(e) && e[next].holds(f) {
			next++
		}
	}
	if next == len(e) {
		return nil
	}
	after := "at all"
	if next > 0 {
		after = "after " + e[next-1].String()
	}
	var types []string
	for _, f := range s.Facts {
		types = append(types, f.Type())
	}
	return []string{fmt.Sprintf("order: there is no %s %s; the facts:\n%s", e[next], after, indent(strings.Join(types, "\n")))}
}

// Steps is how many steps the model took: requests, each with all its attempts.
type Steps struct {
	Bound `yaml:",inline"`
}

// Check counts the steps.
func (e Steps) Check(_ context.Context, s *Seen) []string {
	n := s.Count(Fact{Type: event.TypeOf(event.ModelRequested{}), Where: map[string]any{"attempt": float64(1)}})
	return e.check("steps", n)
}

// calls is how many calls the model made.
type calls struct {
	Bound `yaml:",inline"`
}

// Check counts the calls.
func (e calls) Check(_ context.Context, s *Seen) []string { return e.check("calls", len(s.Calls)) }

// wholeStore is a store that belay verify finds whole.
type wholeStore string

func (e *wholeStore) read(r *reader, at []any, _ *Scenario) { r.oneOf(at, string(*e), "whole") }

// Check runs belay verify.
func (wholeStore) Check(ctx context.Context, s *Seen) []string {
	out, whole := s.verify(ctx)
	if !whole {
		return []string{"store: expected to be whole, got:\n" + indent(out)}
	}
	return nil
}

// hints are what helps to understand a failure besides what was compared: why
// the program refused a command, or how the turn ended.
func (p *play) hints(s *Seen) []string {
	if exit := p.exits[len(p.exits)-1]; exit == belay.ExitUsage || exit == belay.ExitStore || len(s.Facts) == 0 {
		return []string{fmt.Sprintf("by the way: the last command exited with %d and printed:\n%s", exit, indent(short(p.last)))}
	}
	outcome, code, reason := s.End()
	judged := slices.ContainsFunc(p.s.Expect, func(e Expectation) bool { _, ok := e.(*Outcome); return ok })
	if code == "" || judged {
		return nil
	}
	return []string{fmt.Sprintf("by the way: the turn ended as %s (%s: %s)", outcome, code, reason)}
}
