package rehearse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/pattern"
	"github.com/belay-run/belay/internal/policy"
)

// kit is a tool with its schema read.
type kit struct {
	spec  belay.ToolSpec
	input *schema // nil: nobody knows
}

func kitsOf(specs []belay.ToolSpec) []kit {
	out := make([]kit, len(specs))
	for i, s := range specs {
		out[i] = kit{spec: s}
		var in schema
		if json.Unmarshal(s.Input, &in) == nil {
			out[i].input = &in
		}
	}
	return out
}

// schema is what of a JSON Schema says that a value is impossible. What it has
// besides makes it open: nothing follows from it.
type schema struct {
	Type       words              `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Enum       []json.RawMessage  `json:"enum"`
	Required   []string           `json:"required"`
	More       json.RawMessage    `json:"additionalProperties"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`

	Ref     json.RawMessage `json:"$ref"`
	AnyOf   json.RawMessage `json:"anyOf"`
	OneOf   json.RawMessage `json:"oneOf"`
	AllOf   json.RawMessage `json:"allOf"`
	If      json.RawMessage `json:"if"`
	Pattern json.RawMessage `json:"patternProperties"`
}

// words is a word or a list of them.
type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*w = words{one}
		return nil
	}
	var list []string
	err := json.Unmarshal(b, &list)
	*w = list
	return err
}

func (s *schema) open() bool {
	return s == nil || len(s.Ref)+len(s.AnyOf)+len(s.OneOf)+len(s.AllOf)+len(s.If)+len(s.Pattern) > 0
}

// is reports whether a value of one of these types may stand there.
func (s *schema) is(types ...string) bool {
	return len(s.Type) == 0 || slices.ContainsFunc(types, func(t string) bool { return slices.Contains(s.Type, t) })
}

// at follows a path. nil means that nothing is known of what stands there; never
// that nothing can.
func (s *schema) at(path []string) (found *schema, never bool) {
	for _, name := range path {
		if s.open() {
			return nil, false
		}
		next := s.Properties[name]
		_, err := strconv.Atoi(name)
		switch {
		case next != nil:
		case err == nil && s.is("array") && s.Items != nil:
			next = s.Items
		case err == nil && s.is("array"):
			return nil, false
		case !s.is("object") || string(s.More) == "false":
			return nil, true
		default:
			var more schema
			if len(s.More) == 0 || string(s.More) == "true" || json.Unmarshal(s.More, &more) != nil {
				return nil, false
			}
			next = &more
		}
		s = next
	}
	if s.open() {
		return nil, false
	}
	return s, false
}

// never is why no call of the tool can be what a rule asks for; empty when one may.
func (k *kit) never(r *policy.Rule) string {
	t := &k.spec
	runs := t.Command != nil
	switch {
	case r.Command != nil && !runs:
		return "command: it runs no command line"
	case r.Path != nil && t.PathArg == "" && !runs:
		return "path: none of its arguments names a file"
	case r.Path != nil && !runs && r.Path.Access != "" && string(t.Access) != r.Path.Access && (t.Access != "" || r.Path.Access == "write"):
		return "path.access: it never does " + r.Path.Access + " a file"
	case len(r.Host) > 0 && t.HostArg == "" && !runs:
		return "host: none of its arguments names a host"
	case len(r.Effect) > 0 && !slices.Contains(r.Effect, string(cmp.Or(t.Effect, belay.AtMostOnce))):
		return "effect: it declares none of " + strings.Join(r.Effect, ", ")
	case len(r.Capability) > 0 && !slices.ContainsFunc(r.Capability, func(w string) bool { return slices.Contains(t.Capabilities, w) }):
		return "capability: it declares none of " + strings.Join(r.Capability, ", ")
	case len(r.Does) > 0 && !slices.ContainsFunc(r.Does, func(w string) bool { return slices.Contains(doings(t), w) }):
		return "does: it never " + strings.Join(r.Does, ", ")
	}
	for i := range r.Args {
		if why := k.refuses(&r.Args[i]); why != "" {
			return why
		}
	}
	if r.Verdict == policy.Allow { // others speak when there is no answer
		return k.lacks(r.If)
	}
	return ""
}

// doings is what calls of a tool can be.
func doings(t *belay.ToolSpec) []string {
	switch {
	case t.Handled == "complete":
		return []string{"completes"}
	case t.Handled != "":
		return []string{"asks"}
	case t.Command != nil:
		return []string{"runs", "changes"}
	case t.ReadOnly && !t.Destructive:
		return []string{"reads"}
	case t.PathArg != "" && t.Access == belay.Write && !t.Destructive:
		return []string{"edits", "changes"}
	}
	return []string{"changes"}
}

// refuses is why an argument can never be what is asked for.
func (k *kit) refuses(m *policy.ArgMatch) string {
	if k.input == nil {
		return ""
	}
	absent := m.Exists != nil && !*m.Exists
	path := strings.Split(m.Path, ".")
	s, never := k.input.at(path)
	switch {
	case never && !absent:
		return fmt.Sprintf("args: it has no argument %s", m.Path)
	case never, s == nil:
		return ""
	case absent && len(path) == 1 && slices.Contains(k.input.Required, path[0]):
		return fmt.Sprintf("args: %s is always there", m.Path)
	case m.Matches != "" && !s.is("string"), m.Contains != "" && !s.is("string", "array"):
		return fmt.Sprintf("args: %s is no text but %s", m.Path, strings.Join(s.Type, " or "))
	case (m.Less != nil || m.Greater != nil) && !s.is("number", "integer"):
		return fmt.Sprintf("args: %s is no number but %s", m.Path, strings.Join(s.Type, " or "))
	case m.Less != nil && s.Minimum != nil && *m.Less <= *s.Minimum:
		return fmt.Sprintf("args: %s is never less than %v", m.Path, *s.Minimum)
	case m.Greater != nil && s.Maximum != nil && *m.Greater >= *s.Maximum:
		return fmt.Sprintf("args: %s is never greater than %v", m.Path, *s.Maximum)
	}
	return ofEnum(m, s)
}

// ofEnum holds what is asked for against the values that a schema lists.
func ofEnum(m *policy.ArgMatch, s *schema) string {
	if m.Equals != nil {
		if kinds := kindsOf(m.Equals); !s.is(kinds...) {
			return fmt.Sprintf("args: %s is %s, and equals wants %s", m.Path, strings.Join(s.Type, " or "), kinds[0])
		}
	}
	if len(s.Enum) == 0 {
		return ""
	}
	var re *regexp.Regexp
	if m.Matches != "" {
		var err error
		if re, err = regexp.Compile(m.Matches); err != nil {
			return ""
		}
	}
	listed := slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool {
		var text string
		isText := json.Unmarshal(v, &text) == nil
		switch {
		case re != nil:
			return isText && re.MatchString(text)
		case m.Contains != "":
			return !isText || strings.Contains(text, m.Contains)
		case m.Equals != nil:
			want, err := json.Marshal(m.Equals)
			return err != nil || string(want) == string(v)
		}
		return true
	})
	if listed {
		return ""
	}
	return fmt.Sprintf("args: none of the values that %s can have fits", m.Path)
}

// kindsOf are the types of a schema that a value of a rule can have.
func kindsOf(v any) []string {
	switch v.(type) {
	case string:
		return []string{"string"}
	case bool:
		return []string{"boolean"}
	}
	return []string{"number", "integer"}
}

var (
	literals = pattern.New(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	selects  = pattern.New(`\bargs\.([A-Za-z_][A-Za-z0-9_]*)`)
	asksFor  = pattern.New(`has\(\s*args\.`)
)

// lacks is why an expression gives no answer: it reads an argument that the tool
// doesn't have, and doesn't ask whether it is there.
func (k *kit) lacks(expr string) string {
	if expr == "" || k.input == nil || strings.Contains(expr, "||") || strings.Contains(expr, "?") {
		return ""
	}
	text := literals.Get().ReplaceAllString(expr, `""`)
	if asksFor.Get().MatchString(text) {
		return ""
	}
	for _, m := range selects.Get().FindAllStringSubmatch(text, -1) {
		if _, never := k.input.at([]string{m[1]}); never {
			return "if: it has no argument " + m[1]
		}
	}
	return ""
}
