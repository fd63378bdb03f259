package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/lib/match"
)

// Schema is a JSON Schema (draft 2020-12 or draft-07) that stands alone: it
// refers to nothing outside itself.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	grows    *work // nil: what it takes grows no faster than values
}

// schemas are those that were read last, by their bytes. A workspace's tools have some
// 250 KB of them, and those of the next one are mostly the same.
var schemas = lru.Of[string, *Schema](lru.New(maxSchemas))

const maxSchemas = 512 << 10 // of the bytes that they were read from

// ReadSchema reads a schema and checks that it is one. It loads nothing from
// anywhere. The same bytes give the same schema.
func ReadSchema(raw []byte) (*Schema, error) {
	if s, ok := schemas.Get(string(raw)); ok {
		return s, nil
	}
	s, err := readSchema(raw)
	if err == nil && len(raw) <= maxSchemas/8 {
		schemas.Put(string(raw), s, len(raw))
	}
	return s, err
}

func readSchema(raw []byte) (*Schema, error) {
	if doc := bytes.TrimSpace(raw); len(doc) == 0 || doc[0] != '{' {
		return nil, errors.New("the schema is not an object")
	}
	s := &Schema{root: new(jsonschema.Schema)}
	if err := json.Unmarshal(raw, s.root); err != nil {
		return nil, err
	}
	if err := knownTypes(s.root); err != nil {
		return nil, err
	}
	var err error
	s.resolved, err = s.root.Resolve(&jsonschema.ResolveOptions{Loader: func(uri *url.URL) (*jsonschema.Schema, error) {
		return nil, errors.New("the schema refers to " + uri.String() + ", and a schema must stand alone")
	}})
	if err == nil {
		s.grows, err = finite(s.root)
	}
	return s, err
}

var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// knownTypes refuses types that there aren't: the library would let them match nothing.
func knownTypes(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	for _, t := range append(slices.Clone(s.Types), s.Type) {
		if t != "" && !slices.Contains(schemaTypes, t) {
			return errors.New("there is no type " + t)
		}
	}
	below := []*jsonschema.Schema{s.Items, s.AdditionalProperties, s.Not, s.If, s.Then, s.Else, s.Contains, s.PropertyNames}
	below = slices.Concat(below, s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems, slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.Defs)), slices.Collect(maps.Values(s.Definitions)))
	for _, b := range below {
		if err := knownTypes(b); err != nil {
			return err
		}
	}
	return nil
}

// Complaints is what is wrong with a value as encoding/json decodes it: a
// sentence for each mistake, naming the place, or none.
func (s *Schema) Complaints(value any) []string {
	left := float64(maxHeld)
	if s.grows != nil && !s.grows.bears(value, map[*jsonschema.Schema]float64{s.root: 1}, &left) {
		return []string{"holding it against the schema is too much work: it is too deep, or too large"}
	}
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	if said := explain(s.root, value, nil); len(said) > 0 {
		return said
	}
	return []string{strings.ReplaceAll(err.Error(), "validating root: ", "")}
}

// Misfit is what is wrong with a value of JSON by a schema; empty: nothing.
func Misfit(schema, value []byte) (string, error) {
	s, err := ReadSchema(schema)
	if err != nil {
		return "", err
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return "it isn't JSON", nil //nolint:nilerr // that is what is wrong with it
	}
	return strings.ReplaceAll(strings.Join(s.Complaints(v), "; "), "argument", "field"), nil
}

// Fill puts defaults where an object has no value of a field.
func (s *Schema) Fill(value map[string]any) error { return s.resolved.ApplyDefaults(&value) }

// One is an object with a text as the value of its only field; nil: it has several, or
// the text is none of its values.
func (s *Schema) One(text string) map[string]any {
	if len(s.root.Properties) != 1 {
		return nil
	}
	for name, p := range s.root.Properties {
		var value any = text
		if p != nil && p.Type != "string" && json.Unmarshal([]byte(text), &value) != nil {
			return nil
		}
		return map[string]any{name: value}
	}
	return nil
}

// explain finds the usual mistakes and says them better than a validator can.
// It decides nothing: what it doesn't know it leaves to the validator's words.
func explain(s *jsonschema.Schema, value any, at []string) (said []string) {
	if s == nil {
		return nil
	}
	want := s.Types
	if s.Type != "" {
		want = []string{s.Type}
	}
	if got := typeNamed(value); len(want) > 0 && !slices.ContainsFunc(want, func(w string) bool { return fits(value, w) }) {
		return []string{fmt.Sprintf("argument %s must be %s, not %s", argument(at), strings.Join(articles(want), " or "), article(got))}
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, value) }) {
		return []string{fmt.Sprintf("argument %s must be one of %s", argument(at), list(values(s.Enum)))}
	}
	switch v := value.(type) {
	case []any:
		for i := range v {
			said = append(said, explain(s.Items, v[i], append(slices.Clone(at), strconv.Itoa(i)))...)
		}
	case map[string]any:
		said = explainObject(s, v, at)
	}
	return said
}

func explainObject(s *jsonschema.Schema, v map[string]any, at []string) (said []string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			said = append(said, "missing argument "+argument(append(slices.Clone(at), name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		here := append(slices.Clone(at), name)
		p, known := s.Properties[name]
		switch {
		case known:
			said = append(said, explain(p, v[name], here)...)
		case nothing(s.AdditionalProperties):
			said = append(said, unknownArgument(s, name, here))
		default:
			said = append(said, explain(s.AdditionalProperties, v[name], here)...)
		}
	}
	return said
}

func unknownArgument(s *jsonschema.Schema, name string, at []string) string {
	text := "unknown argument " + argument(at)
	if near := match.Nearest(name, slices.Sorted(maps.Keys(s.Properties))); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return text
}

// nothing reports whether a schema is false: the library writes that as not {}.
func nothing(s *jsonschema.Schema) bool {
	return s != nil && s.Not != nil && reflect.ValueOf(*s.Not).IsZero()
}

func fits(v any, want string) bool {
	got := typeNamed(v)
	if f, ok := v.(float64); ok && want == "integer" {
		return f == math.Trunc(f)
	}
	return got == want
}

func typeNamed(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// CheckSchema reports whether a JSON Schema that a user brought can be used.
func CheckSchema(schema []byte) error {
	if _, err := ReadSchema(schema); err != nil {
		return belay.Errorf(belay.CodeUsage, "the output schema can't be used").Wrap(err)
	}
	return nil
}
