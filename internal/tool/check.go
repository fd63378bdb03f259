package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/event"
)

// maxComplaints bounds what one problem lists.
const maxComplaints = 8

// check compares canonical arguments with the schema.
func (e *entry) check(args []byte) *event.Problem {
	if args[0] != '{' {
		return &Failf(BadArguments, CodeBadArguments, "arguments of %s must be a JSON object, not %s", e.spec.Name, typeOf(args[0])).Problem
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return &Failf(BadArguments, CodeBrokenJSON, "arguments of %s are not JSON: %v", e.spec.Name, err).Problem
	}
	said := withNUL(value, nil, bytes.Contains(args, []byte(`\u0000`)))
	said = append(said, e.schema.Complaints(value)...)
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

// arguments lists the names the schema knows, sorted.
func (e *entry) arguments() []string {
	return slices.Sorted(maps.Keys(e.schema.root.Properties))
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
