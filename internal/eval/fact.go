package eval

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Fact is a condition on facts: a type, and values that the payload must have.
type Fact struct {
	Type  string         `yaml:"fact"`
	Where map[string]any `yaml:"where"` // field → value, any of JSON; see has
}

func (r *reader) fact(at []any, f Fact) Fact {
	switch {
	case f.Type == "":
		r.Fail(at, "a fact has a type").WithHint("write fact: turn.completed; docs/events.md lists the types")
	case !knownFact(f.Type):
		r.Fail(strictyaml.Under(at, "fact"), "there is no fact %q", f.Type).WithHint("docs/events.md lists the types")
	}
	where, ok := plain(f.Where).(map[string]any)
	if !ok {
		r.Fail(strictyaml.Under(at, "where"), "it has no JSON form")
	}
	return Fact{f.Type, where}
}

func knownFact(name string) bool {
	return slices.ContainsFunc(event.Types(), func(t event.Type) bool { return t.Name == name })
}

// plain is a value as JSON gives it back, so that values compare; nil if it has no JSON form.
func plain(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if json.Unmarshal(b, &out) != nil {
		return nil
	}
	if m, ok := v.(map[string]any); ok && m == nil {
		return map[string]any{}
	}
	return out
}

// holds reports whether a fact meets the condition.
func (f Fact) holds(e event.Envelope) bool {
	if e.Type() != f.Type {
		return false
	}
	if len(f.Where) == 0 {
		return true
	}
	raw, err := event.Encode(e.Data)
	if err != nil {
		return false
	}
	var have any
	return json.Unmarshal(raw, &have) == nil && has(have, f.Where)
}

// has reports whether a value has all that is wanted: of objects the fields that
// are named, of lists each element. What isn't there is zero: facts leave out
// what is empty.
func has(have, want any) bool {
	if list, ok := want.([]any); ok {
		h, _ := have.([]any)
		return slices.EqualFunc(h, list, has)
	}
	w, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want) || have == nil && isZero(want)
	}
	h, ok := have.(map[string]any)
	if !ok && have != nil {
		return false
	}
	for k, v := range w {
		if !has(h[k], v) {
			return false
		}
	}
	return true
}

func isZero(v any) bool { return v == nil || v == "" || v == false || v == float64(0) }

// String is the type of the fact and what its fields are to be.
func (f Fact) String() string {
	if len(f.Where) == 0 {
		return f.Type
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(f.Where)) {
		b, _ := json.Marshal(f.Where[k])
		parts = append(parts, fmt.Sprintf("%s %s", k, b))
	}
	return f.Type + " with " + strings.Join(parts, ", ")
}
