package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/tool"
)

// Codes of problems with the arguments of a call.
const (
	CodeLeadingDash = "LEADING_DASH"
	CodeNotText     = "NOT_TEXT"
)

// Template is a command line with places for arguments. There is no shell: each
// element becomes arguments of the program as it is, whatever is in it.
type Template []element

// element is one entry of argv, or several that come and go together.
type element struct {
	words   []Text
	when    string // an argument that must be given, and not be false
	guarded bool   // it comes after --
}

// Text is a text with places for arguments.
type Text []part

// part is a piece of text, or an argument in its place. The argument * is all of
// them, as JSON.
type part struct {
	text string
	arg  string
}

// all means every argument.
const all = "*"

// placeholder is an argument in its place, a brace that is doubled, or one that is
// a mistake.
var placeholder = match.Lazy(`\{\{|\}\}|\{([^{} ]+)\}|[{}]`)

// parseText reads "a {b} c"; {{ and }} are the characters themselves.
func parseText(s string) (Text, error) {
	var out Text
	text, from := "", 0
	flush := func() {
		if text != "" {
			out = append(out, part{text: text})
			text = ""
		}
	}
	for _, m := range placeholder.Get().FindAllStringSubmatchIndex(s, -1) {
		text += s[from:m[0]]
		from = m[1]
		switch found := s[m[0]:m[1]]; {
		case m[2] >= 0:
			flush()
			out = append(out, part{arg: s[m[2]:m[3]]})
		case found == "}":
			return nil, errors.New("a } without a { before it; }} is the character")
		case found == "{":
			return nil, errors.New("a { that begins no {argument}; {{ is the character")
		default:
			text += found[:1]
		}
	}
	text += s[from:]
	flush()
	return out, nil
}

// args are the names of the arguments in a text.
func (t Text) args() (names []string) {
	for _, p := range t {
		if p.arg != "" {
			names = append(names, p.arg)
		}
	}
	return names
}

// literal is the text if no argument is in it.
func (t Text) literal() (string, bool) {
	switch {
	case len(t) == 0:
		return "", true
	case len(t) == 1 && t[0].arg == "":
		return t[0].text, true
	}
	return "", false
}

// Values are the arguments of a call.
type Values struct {
	raw   []byte
	given map[string]value
}

// value is an argument: its text, or that of each item of a list.
type value struct {
	items []string // nil: it is an object, or a list of some
	list  bool
	truth bool
}

// ReadValues reads arguments that were checked against the schema.
func ReadValues(raw []byte) (Values, error) {
	v := Values{raw: raw, given: map[string]value{}}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var in map[string]any
	if err := dec.Decode(&in); err != nil {
		return v, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "the arguments are no object: %v", err)
	}
	for name, x := range in {
		list, isList := x.([]any)
		if !isList {
			list = []any{x}
		}
		one := value{items: []string{}, list: isList, truth: x != false && x != nil}
		for _, item := range list {
			s, ok := textOf(item)
			if !ok { // an object: only {*} can hold it
				one.items = nil
				break
			}
			one.items = append(one.items, s)
		}
		v.given[name] = one
	}
	return v, nil
}

func textOf(x any) (string, bool) {
	switch x := x.(type) {
	case string:
		return x, true
	case json.Number:
		return x.String(), true
	case bool:
		return fmt.Sprint(x), true
	}
	return "", false
}

// has reports whether an argument was given.
func (v Values) has(name string) bool {
	_, ok := v.given[name]
	return ok || name == all
}

// Expand is the command line of a call. An element whose argument isn't given is
// left out; one with a list comes once for each item.
func (t Template) Expand(v Values, dash []string) ([]string, error) {
	var out []string
	for _, e := range t {
		words, err := e.expand(v, dash)
		if err != nil {
			return nil, err
		}
		out = append(out, words...)
	}
	return out, nil
}

func (e element) expand(v Values, dash []string) ([]string, error) {
	if e.when != "" && !v.given[e.when].truth {
		return nil, nil
	}
	times, list := 1, ""
	for _, name := range e.args() {
		if !v.has(name) {
			return nil, nil
		}
		if v.given[name].list {
			times, list = len(v.given[name].items), name
		}
	}
	var out []string
	for i := range times {
		for _, w := range e.words {
			s, err := w.fill(v, list, i)
			if err != nil {
				return nil, err
			}
			if err := e.option(w, s, dash); err != nil {
				return nil, err
			}
			out = append(out, s)
		}
	}
	return out, nil
}

func (e element) args() (names []string) {
	for _, w := range e.words {
		names = append(names, w.args()...)
	}
	return names
}

// option refuses a value that would be read as an option of the program: it
// stands where an argument begins, and begins with a hyphen. After -- nothing is
// an option any more.
func (e element) option(w Text, s string, dash []string) error {
	if e.guarded || len(w) == 0 || w[0].arg == "" || !strings.HasPrefix(s, "-") || slices.Contains(dash, w[0].arg) {
		return nil
	}
	return tool.Failf(tool.BadArguments, CodeLeadingDash, "argument %q begins with a hyphen: the program would take %.60q for an option", w[0].arg, s).
		WithHint("for a file write ./ before the name")
}

// fill is a text with its arguments; i is the item of the list, if one is in it.
func (t Text) fill(v Values, list string, i int) (string, error) {
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.arg == "":
			b.WriteString(p.text)
		case p.arg == all:
			b.Write(v.raw)
		case p.arg == list:
			b.WriteString(v.given[list].items[i])
		default:
			if v.has(p.arg) && v.given[p.arg].items == nil {
				return "", tool.Failf(tool.BadArguments, CodeNotText, "argument %q is neither text nor a number", p.arg)
			}
			b.WriteString(strings.Join(v.given[p.arg].items, "\n"))
		}
	}
	return b.String(), nil
}

// Fill is the text of a call; an argument that isn't given is empty, a list has
// its items on lines of their own.
func (t Text) Fill(v Values) (string, error) { return t.fill(v, "", 0) }

// Given reports whether every argument of the text was given.
func (t Text) Given(v Values) bool {
	return !slices.ContainsFunc(t.args(), func(n string) bool { return !v.has(n) })
}

// String is a template as a person reads it; what is in angle brackets comes
// only with its argument.
func (t Template) String() string {
	var words []string
	for _, e := range t {
		var ws []string
		for _, w := range e.words {
			ws = append(ws, w.String())
		}
		s := strings.Join(ws, " ")
		if e.when != "" {
			s = "<" + e.when + ": " + s + ">"
		} else if len(e.args()) > 0 && len(e.words) > 1 {
			s = "<" + s + ">"
		}
		words = append(words, s)
	}
	return strings.Join(words, " ")
}

// String is a text with its places.
func (t Text) String() string {
	var b strings.Builder
	for _, p := range t {
		if p.arg != "" {
			b.WriteString("{" + p.arg + "}")
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}
