package policy

import (
	"bytes"
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// argument is an ArgMatch made ready.
type argument struct {
	path   []string
	m      *ArgMatch
	equals *scalar
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
		if err != nil || raw[0] == '{' || raw[0] == '[' {
			return a, bad("args: equals takes a text, a number, true or false")
		}
		equals := scalarOf(string(raw))
		a.equals = &equals
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
	case a.equals != nil:
		return a.equals.is(v)
	case a.m.Less != nil || a.m.Greater != nil:
		n, err := strconv.ParseFloat(string(v), 64)
		return err == nil && (a.m.Less == nil || n < *a.m.Less) && (a.m.Greater == nil || n > *a.m.Greater)
	}
	if text, ok := textOf(v); ok {
		if a.re != nil {
			return a.re.MatchString(text)
		}
		return strings.Contains(text, a.m.Contains)
	}
	var list []json.RawMessage
	if a.re == nil && json.Unmarshal(v, &list) == nil {
		want := scalar{text: a.m.Contains, kind: 't'}
		return slices.ContainsFunc(list, want.is)
	}
	return false
}

// arguments are those of a call, taken apart once.
type arguments struct {
	raw json.RawMessage
	top map[string]json.RawMessage
	out bool // top is made
	all any
	has bool // all is made
	bad bool // there are none that can be read
}

// readable decodes all of them, once.
func (a *arguments) readable() bool {
	if !a.has {
		a.has = true
		a.bad = len(a.raw) == 0 || json.Unmarshal(a.raw, &a.all) != nil
	}
	return !a.bad
}

// at is the value that a path leads to.
func (a *arguments) at(path []string) (json.RawMessage, bool) {
	if !a.out {
		a.out = true
		if json.Unmarshal(a.raw, &a.top) != nil {
			a.top = nil
		}
	}
	v, ok := a.top[path[0]]
	if !ok {
		return nil, false
	}
	return walk(v, path[1:])
}

// walk follows a path into JSON.
func walk(v json.RawMessage, path []string) (json.RawMessage, bool) {
	for _, name := range path {
		v = bytes.TrimSpace(v)
		if len(v) == 0 {
			return nil, false
		}
		switch v[0] {
		case '{':
			var m map[string]json.RawMessage
			if json.Unmarshal(v, &m) != nil {
				return nil, false
			}
			inner, ok := m[name]
			if !ok {
				return nil, false
			}
			v = inner
		case '[':
			var l []json.RawMessage
			i, err := strconv.Atoi(name)
			if err != nil || json.Unmarshal(v, &l) != nil || i < 0 || i >= len(l) {
				return nil, false
			}
			v = l[i]
		default:
			return nil, false
		}
	}
	v = bytes.TrimSpace(v)
	return v, len(v) > 0
}

// textOf is a JSON text as it reads.
func textOf(v json.RawMessage) (text string, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	if plain := v[1 : len(v)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain), true
	}
	return text, json.Unmarshal(v, &text) == nil
}

// scalar is a text, a number, true, false or null, made ready to be compared with.
type scalar struct {
	raw    string // as JSON
	text   string
	number float64
	kind   byte // t: a text, n: a number; 0: anything else
}

func scalarOf(raw string) scalar {
	s := scalar{raw: raw}
	if text, ok := textOf(json.RawMessage(raw)); ok {
		s.text, s.kind = text, 't'
	} else if n, err := strconv.ParseFloat(raw, 64); err == nil {
		s.number, s.kind = n, 'n'
	}
	return s
}

// is reports whether a value is the same: texts by what they say, numbers by their
// value.
func (s *scalar) is(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return false
	}
	switch {
	case v[0] == '"' || s.kind == 't':
		text, ok := textOf(v)
		return ok && s.kind == 't' && text == s.text
	case s.kind == 'n':
		n, err := strconv.ParseFloat(string(v), 64)
		return err == nil && n == s.number
	}
	return string(v) == s.raw
}
