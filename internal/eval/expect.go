package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
)

// Expectation is one expected result of a scenario. Check returns what was
// expected and what was there instead; empty when it holds.
type Expectation interface {
	Check(ctx context.Context, s *Seen) []string
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

// String is the bound in words.
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

// took bounds the time of a scenario; 0 is no bound.
type took struct{ Least, Most time.Duration }

// Check compares the time.
func (e took) Check(_ context.Context, s *Seen) (failures []string) {
	if s.Took < e.Least {
		failures = append(failures, fmt.Sprintf("time: expected at least %s, got %s", e.Least, s.Took.Round(time.Millisecond)))
	}
	if e.Most > 0 && s.Took > e.Most {
		failures = append(failures, fmt.Sprintf("time: expected at most %s, got %s", e.Most, s.Took.Round(time.Millisecond)))
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
