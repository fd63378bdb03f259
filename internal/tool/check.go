package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/event"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxComplaints bounds what one problem lists.
const maxComplaints = 8

// check compares canonical arguments with the schema.
func (e *entry) check(args []byte) *event.Problem {
	if args[0] != '{' {
		return &Failf(BadArguments, CodeBadArguments, "arguments of %s must be a JSON object, not %s", e.spec.Name, typeOf(args[0])).Problem
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return &Failf(BadArguments, CodeBrokenJSON, "arguments of %s are not JSON: %v", e.spec.Name, err).Problem
	}
	said := withNUL(value, nil, bytes.Contains(args, []byte(`\u0000`)))
	if err := e.schema.Validate(value); err != nil {
		said = append(said, e.complaints(err)...)
	}
	if len(said) == 0 {
		return nil
	}
	said = compactLines(said)
	more := ""
	if n := len(said) - maxComplaints; n > 0 {
		said, more = said[:maxComplaints], fmt.Sprintf("; and %d more", n)
	}
	f := Failf(BadArguments, CodeBadArguments, "%s: %s%s", e.spec.Name, strings.Join(said, "; "), more)
	if names := e.arguments(); len(names) > 0 {
		f.WithHint("the arguments of %s are: %s", e.spec.Name, list(names))
	}
	return &f.Problem
}

// complaints are the sentences of a validation error, each naming an argument.
func (e *entry) complaints(err error) []string {
	v, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []string{err.Error()}
	}
	if len(v.Causes) == 0 {
		return e.complaint(v)
	}
	var said []string
	for _, cause := range v.Causes {
		said = append(said, e.complaints(cause)...)
	}
	return said
}

func (e *entry) complaint(v *jsonschema.ValidationError) []string {
	at := v.InstanceLocation
	switch k := v.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var said []string
		for _, name := range k.Properties {
			s := "unknown argument " + argument(append(slices.Clone(at), name))
			if near := nearest(name, e.arguments()); near != "" && len(at) == 0 {
				s += fmt.Sprintf(" (did you mean %q?)", near)
			}
			said = append(said, s)
		}
		return said
	case *kind.Required:
		var said []string
		for _, name := range k.Missing {
			said = append(said, "missing argument "+argument(append(slices.Clone(at), name)))
		}
		return said
	case *kind.Type:
		return []string{fmt.Sprintf("argument %s must be %s, not %s", argument(at), strings.Join(articles(k.Want), " or "), article(k.Got))}
	case *kind.Enum:
		return []string{fmt.Sprintf("argument %s must be one of %s", argument(at), list(values(k.Want)))}
	}
	return []string{fmt.Sprintf("argument %s: %s", argument(at), v.ErrorKind.LocalizedString(message.NewPrinter(language.English)))}
}

// arguments lists the names the schema knows, sorted.
func (e *entry) arguments() []string {
	return slices.Sorted(maps.Keys(e.schema.Properties))
}

// withNUL names the strings that contain the character no file name, no
// command and no text may contain. It looks only if there is one.
func withNUL(v any, at []string, look bool) (said []string) {
	if !look {
		return nil
	}
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "\x00") {
			return []string{"argument " + argument(at) + " contains a NUL character"}
		}
	case []any:
		for i := range v {
			said = append(said, withNUL(v[i], append(slices.Clone(at), strconv.Itoa(i)), look)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if strings.Contains(k, "\x00") {
				said = append(said, "the name of argument "+argument(append(slices.Clone(at), k))+" contains a NUL character")
			}
			said = append(said, withNUL(v[k], append(slices.Clone(at), k), look)...)
		}
	}
	return said
}

// argument names a place in the arguments: "path", "env.HOME", "argv.0".
func argument(at []string) string {
	if len(at) == 0 {
		return "(all)"
	}
	return strconv.Quote(shorten(strings.Join(at, ".")))
}

func articles(types []string) []string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = article(t)
	}
	return out
}

func article(t string) string {
	switch t {
	case "null":
		return t
	case "integer", "array", "object":
		return "an " + t
	}
	return "a " + t
}

func values(vs []any) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		b, err := json.Marshal(v)
		if err != nil {
			b = fmt.Append(nil, v)
		}
		out[i] = string(b)
	}
	return out
}

// typeOf names the type of canonical JSON by its first byte.
func typeOf(c byte) string {
	switch c {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// compactLines sorts and removes repetitions, so that the same mistake always
// reads the same.
func compactLines(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// list is names for a sentence, bounded.
func list(names []string) string {
	const most = 40
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// shorten bounds a name that a model made up.
func shorten(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}
