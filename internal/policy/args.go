package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
)

// argument is an ArgMatch made ready.
type argument struct {
	path   []string
	m      *ArgMatch
	equals any // as arguments are decoded
	re     *regexp.Regexp
}

func argumentOf(m *ArgMatch) (a argument, _ *belay.Error) {
	n := 0
	for _, given := range []bool{m.Equals != nil, m.Contains != "", m.Matches != "", m.Less != nil, m.Greater != nil, m.Exists != nil} {
		if given {
			n++
		}
	}
	if m.Path == "" || n != 1 {
		return a, bad("args: each entry has a path and one of equals, contains, matches, less, greater, exists").WithHint("args: [{path: url, matches: '^https://'}]")
	}
	a = argument{path: strings.Split(m.Path, "."), m: m}
	if m.Equals != nil {
		raw, err := json.Marshal(m.Equals)
		if err != nil || raw[0] == '{' || raw[0] == '[' || decode(raw, &a.equals) != nil {
			return a, bad("args: equals takes a text, a number, true or false")
		}
	}
	var err *belay.Error
	if m.Matches != "" {
		a.re, err = expression(m.Matches)
	}
	return a, err
}

// instructions is how large a regular expression becomes.
func instructions(text string) (int, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// holds reports whether an argument is what the rule asks for. What isn't there or
// has another type holds for nothing.
func (a *argument) holds(args *arguments) bool {
	v, ok := args.at(a.path)
	switch {
	case a.m.Exists != nil:
		return ok == *a.m.Exists
	case !ok:
		return false
	case a.m.Equals != nil:
		n, err := number(v)
		want, werr := number(a.equals)
		return v == a.equals || err == nil && werr == nil && n == want
	case a.m.Less != nil || a.m.Greater != nil:
		n, err := number(v)
		return err == nil && (a.m.Less == nil || n < *a.m.Less) && (a.m.Greater == nil || n > *a.m.Greater)
	}
	switch v := v.(type) {
	case string:
		if a.re != nil {
			return a.re.MatchString(v)
		}
		return strings.Contains(v, a.m.Contains)
	case []any:
		return a.re == nil && slices.Contains(v, any(a.m.Contains))
	}
	return false
}

// number is the value of a number that was decoded.
func number(v any) (float64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, errors.New("it is no number")
	}
	return n.Float64()
}

// arguments are those of a call. They are decoded when they are first asked for.
type arguments struct {
	raw json.RawMessage
	top map[string]any // nil: not decoded yet
}

// at is the value that a path leads to. Numbers stay as they are written.
func (a *arguments) at(path []string) (v any, ok bool) {
	if a.top == nil && (decode(a.raw, &a.top) != nil || a.top == nil) {
		a.top = map[string]any{}
	}
	v = a.top
	for _, name := range path {
		switch in := v.(type) {
		case map[string]any:
			if v, ok = in[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// decode decodes JSON, with numbers as they are written.
func decode(raw []byte, into any) error {
	if !json.Valid(raw) {
		return errors.New("it is no JSON")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// as is a value that was decoded in the form of a type; false where it has none.
func as[T any](v any, ok bool) (out T, _ bool) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, ok && err == nil
}
