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
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Expectation is one expected result of a scenario. Check returns what was
// expected and what was there instead; empty when it holds.
type Expectation interface {
	Check(ctx context.Context, s *Seen) []string
}

// An expectation is written as an object with one field, whose name is the kind.
type expectFile struct {
	Outcome   *Outcome    `yaml:"outcome"`
	Code      *endCode    `yaml:"code"`
	Reason    *Reason     `yaml:"reason"`
	Exit      *Exit       `yaml:"exit"`
	Exits     *exits      `yaml:"exits"`
	Printed   *printed    `yaml:"printed"`
	Assistant *Assistant  `yaml:"assistant"`
	File      *File       `yaml:"file"`
	Files     *fileNames  `yaml:"files"`
	Called    *Called     `yaml:"called"`
	Failed    *FailedCall `yaml:"failed"`
	Result    *CallResult `yaml:"result"`
	Together  *together   `yaml:"together"`
	Fact      *factCount  `yaml:"fact"`
	Order     *order      `yaml:"order"`
	Syntax    *syntax     `yaml:"syntax"`
	Steps     *Steps      `yaml:"steps"`
	Calls     *calls      `yaml:"calls"`
	Took      *took       `yaml:"took"`
	Store     *wholeStore `yaml:"store"`
}

// written is an expectation as it is written. read checks it: what can't fail is a
// mistake.
type written interface {
	Expectation
	read(r *reader, at []any, s *Scenario)
}

// expect reads one expectation.
func (r *reader) expect(at []any, f expectFile, s *Scenario) (found Expectation) {
	n := 0
	for field, v := range reflect.ValueOf(f).Fields() {
		if v.IsNil() {
			continue
		}
		e := v.Interface().(written)
		e.read(r, strictyaml.Under(at, field.Tag.Get("yaml")), s)
		found, n = e, n+1
	}
	if n != 1 {
		r.Fail(at, "an expectation is about one thing, not %d", n).WithHint("write each as an element of its own; %s", reference)
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
		r.Fail(at, "%q is none of %s", v, strings.Join(allowed, ", "))
	}
}

// text refuses what is empty.
func (r *reader) text(at []any, v string) {
	if v == "" {
		r.Fail(at, "something is missing here")
	}
}

// count is how many of some things were given.
func count(given ...bool) (n int) {
	for _, g := range given {
		if g {
			n++
		}
	}
	return n
}

// Text is what a text must be.
type Text struct {
	Equals   *string `yaml:"equals"`
	Contains string  `yaml:"contains"`
	Lacks    string  `yaml:"lacks"`
	Matches  string  `yaml:"matches"` // a regular expression, over many lines
}

func (t *Text) read(r *reader, at []any, _ *Scenario) {
	r.Pattern(strictyaml.Under(at, "matches"), t.Matches)
	if *t == (Text{}) {
		r.Fail(at, "it can't fail").WithHint("write one of equals, contains, lacks and matches")
	}
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
	if m := "(?m)" + t.Matches; t.Matches != "" && !regexp.MustCompile(m).MatchString(got) {
		failures = append(failures, fmt.Sprintf("%s: expected to match %s, got:\n%s", what, m, indent(short(got))))
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

// Bound is how many of something there must be.
type Bound struct {
	Count *int `yaml:"count"` // exactly
	Least *int `yaml:"least"`
	Most  *int `yaml:"most"`
}

// limits are the least and the most; most is -1 for any.
func (b *Bound) limits() (least, most int) {
	most = -1
	if b.Least != nil {
		least = *b.Least
	}
	if b.Most != nil {
		most = *b.Most
	}
	if b.Count != nil {
		least, most = *b.Count, *b.Count
	}
	return least, most
}

func (b *Bound) read(r *reader, at []any, _ *Scenario) {
	least, most := b.limits()
	switch {
	case *b == Bound{}:
		r.Fail(at, "it can't fail").WithHint("write count, least or most")
	case b.Count != nil && (b.Least != nil || b.Most != nil):
		r.Fail(at, "count says all that least and most could")
	case b.Least != nil && least < 1:
		r.Fail(at, "least %d can't fail", least)
	case b.Most != nil && most < 0 || most >= 0 && most < least || least < 0:
		r.Fail(at, "no number is at least %d and at most %d", least, most)
	}
}

func (b *Bound) check(what string, n int) []string {
	if least, most := b.limits(); n >= least && (most < 0 || n <= most) {
		return nil
	}
	return []string{fmt.Sprintf("%s: expected %s, got %d", what, b, n)}
}

// String is the bound in words.
func (b *Bound) String() string {
	switch least, most := b.limits(); {
	case most < 0:
		return fmt.Sprintf("at least %d", least)
	case least == most:
		return strconv.Itoa(least)
	case least == 0:
		return fmt.Sprintf("at most %d", most)
	default:
		return fmt.Sprintf("%d to %d", least, most)
	}
}

// took bounds the time of a scenario.
type took struct {
	Least string `yaml:"least"`
	Most  string `yaml:"most"`

	least, most time.Duration // 0 is no bound
}

func (e *took) read(r *reader, at []any, _ *Scenario) {
	if e.least, e.most = r.duration(at, e.Least), r.duration(at, e.Most); e.least+e.most == 0 {
		r.Fail(at, "it can't fail").WithHint("write most: 5s")
	}
}

// Check compares the time.
func (e took) Check(_ context.Context, s *Seen) (failures []string) {
	if s.Took < e.least {
		failures = append(failures, fmt.Sprintf("time: expected at least %s, got %s", e.least, s.Took.Round(time.Millisecond)))
	}
	if e.most > 0 && s.Took > e.most {
		failures = append(failures, fmt.Sprintf("time: expected at most %s, got %s", e.most, s.Took.Round(time.Millisecond)))
	}
	return failures
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

// ended returns how a call ended, in short.
func (c Call) ended() string {
	switch {
	case c.Problem != nil:
		return c.Problem.Code + " (" + c.Problem.Class + "): " + c.Problem.Message
	case c.Result != nil:
		return "went well"
	}
	return "hasn't ended"
}
