package expr

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// schema is what of a JSON Schema says which values there can be. What isn't read says
// nothing: such a value may be anything.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"-"`
	Others     *bool              `json:"-"` // whether fields may be there that aren't named; nil: it isn't said
	other      *schema            // of those
}

// UnmarshalJSON reads it. A schema can be true or false, too.
func (s *schema) UnmarshalJSON(raw []byte) error {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all["$ref"] != nil || all["anyOf"] != nil || all["oneOf"] != nil || all["allOf"] != nil {
		return nil
	}
	type plain schema
	json.Unmarshal(raw, (*plain)(s)) //nolint:errcheck // what of it isn't as usual says nothing
	yes, no := true, false
	if items := all["items"]; items != nil {
		s.Items = &schema{}
		json.Unmarshal(items, s.Items) //nolint:errcheck // see above
	}
	switch more := all["additionalProperties"]; {
	case all["patternProperties"] != nil:
		s.Others = &yes
	case string(more) == "false":
		s.Others = &no
	case more != nil:
		s.Others, s.other = &yes, &schema{}
		json.Unmarshal(more, s.other) //nolint:errcheck // see above
	}
	return nil
}

// is reports whether values are of a type and of no other.
func (s *schema) is(name string) bool { return s != nil && s.Type == name }

// object reports whether the fields of values are known.
func (s *schema) object() bool {
	return s != nil && len(s.Properties) > 0 && (s.Type == nil || s.Type == "object")
}

// misses names what a way of fields asks for that there can't be; empty: nothing.
func (s *schema) misses(way []string) string {
	for i, field := range way[1:] {
		if !s.object() {
			return ""
		}
		next := s.Properties[field]
		if next == nil && s.Others != nil && *s.Others {
			return ""
		}
		if next == nil {
			return fmt.Sprintf("%s has no field %s; it has %s", strings.Join(way[:i+1], "."), field, strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
		}
		s = next
	}
	return ""
}

// objects gives CEL the types of values by their schemas.
type objects struct {
	types.Provider
	known []*schema
}

const objectName = "object"

// typeOf is the type of values.
func (o *objects) typeOf(s *schema) *types.Type {
	switch {
	case s.is("string"):
		return types.StringType
	case s.is("boolean"):
		return types.BoolType
	case s.is("number"), s.is("integer"): // as JSON is read
		return types.DoubleType
	case s.is("array") && s.Items != nil:
		return types.NewListType(o.typeOf(s.Items))
	case s.is("array"):
		return types.NewListType(types.DynType)
	case s.object() && (s.Others == nil || !*s.Others):
		o.known = append(o.known, s)
		return types.NewObjectType(fmt.Sprint(objectName, len(o.known)-1))
	}
	return types.DynType
}

func (o *objects) find(name string) *schema {
	for i, s := range o.known {
		if fmt.Sprint(objectName, i) == name {
			return s
		}
	}
	return nil
}

// FindStructType implements types.Provider.
func (o *objects) FindStructType(name string) (*types.Type, bool) {
	if o.find(name) == nil {
		return o.Provider.FindStructType(name)
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

// FindStructFieldNames implements types.Provider.
func (o *objects) FindStructFieldNames(name string) ([]string, bool) {
	s := o.find(name)
	if s == nil {
		return o.Provider.FindStructFieldNames(name)
	}
	return slices.Sorted(maps.Keys(s.Properties)), true
}

// FindStructFieldType implements types.Provider.
func (o *objects) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s := o.find(name)
	if s == nil {
		return o.Provider.FindStructFieldType(name, field)
	}
	if s.Properties[field] == nil {
		return nil, false
	}
	return &types.FieldType{Type: o.typeOf(s.Properties[field])}, true
}

// Check says what is wrong with the types of an expression, where JSON Schemas say which
// values its variables have, and which ones it must have. A schema that isn't known allows
// any. Numbers are as JSON has them: of the type double.
func Check(text string, variables map[string]json.RawMessage, want json.RawMessage) error {
	e, err := Compile(text, slices.Sorted(maps.Keys(variables))...)
	if err != nil {
		return err
	}
	registry, err := types.NewRegistry()
	if err != nil {
		return err
	}
	all := &objects{Provider: registry}
	known := map[string]*schema{}
	options := []cel.EnvOption{cel.CustomTypeProvider(all), cel.CrossTypeNumericComparisons(true)}
	for name, raw := range variables {
		known[name] = read(raw)
		options = append(options, cel.Variable(name, all.typeOf(known[name])))
	}
	for _, way := range e.Paths() {
		if s := known[way[0]]; s != nil {
			if said := s.misses(way); said != "" {
				return errors.New(said)
			}
		}
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return err
	}
	tree, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		said, _, _ := strings.Cut(issues.Errors()[0].Message, "\n")
		return errors.New(all.plain(said))
	}
	if said := all.unfit(tree.OutputType(), read(want)); said != "" {
		return fmt.Errorf("the value is %s", said)
	}
	return nil
}

// read reads a schema; one that isn't there, or can't be read, allows any value.
func read(raw json.RawMessage) *schema {
	s := &schema{}
	if len(raw) > 0 {
		json.Unmarshal(raw, s) //nolint:errcheck // it then says nothing
	}
	return s
}

// plain takes the names of types out of a message that mean nothing to people.
func (o *objects) plain(text string) string {
	for i := len(o.known) - 1; i >= 0; i-- {
		text = strings.ReplaceAll(text, fmt.Sprint(objectName, i), objectName)
	}
	return text
}

// kinds are JSON's names of types that CEL's values become.
var kinds = map[types.Kind]string{types.BoolKind: "boolean", types.StringKind: "string", types.BytesKind: "string", types.TimestampKind: "string", types.DurationKind: "string",
	types.IntKind: "integer", types.UintKind: "integer", types.DoubleKind: "number", types.ListKind: "array", types.MapKind: "object", types.StructKind: "object", types.NullTypeKind: "null"}

// unfit says how values of a type don't fit a schema; empty: they can.
func (o *objects) unfit(got *types.Type, want *schema) string {
	kind := kinds[got.Kind()]
	allowed, _ := want.Type.([]any)
	if one, ok := want.Type.(string); ok {
		allowed = []any{one}
	}
	fits := func(a any) bool {
		return a == kind || kind == "integer" && a == "number" || kind == "number" && a == "integer"
	}
	switch {
	case kind == "":
		return ""
	case len(allowed) > 0 && !slices.ContainsFunc(allowed, fits):
		return fmt.Sprintf("%s, and %v is wanted", article(kind), strings.Join(words(allowed), " or "))
	case kind == "array" && want.Items != nil && len(got.Parameters()) == 1:
		if said := o.unfit(got.Parameters()[0], want.Items); said != "" {
			return "a list whose entry is " + said
		}
	case got.Kind() == types.StructKind && want.object():
		have := o.find(got.TypeName())
		for _, field := range slices.Sorted(maps.Keys(want.Properties)) {
			if have.Properties[field] == nil {
				continue
			}
			if said := o.unfit(o.typeOf(have.Properties[field]), want.Properties[field]); said != "" {
				return "an object whose field " + field + " is " + said
			}
		}
	}
	return ""
}

func words(all []any) (out []string) {
	for _, a := range all {
		out = append(out, article(fmt.Sprint(a)))
	}
	return out
}

func article(kind string) string {
	return cmp.Or(map[string]string{"array": "a list", "object": "an object", "integer": "a whole number", "null": "null"}[kind], "a "+kind)
}
