package tool

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// deriveSchema is the schema of a struct: properties in the order of its
// fields, nothing beside them allowed. The same type gives the same bytes. What
// the usual types have is written here, byte for byte as the library does it,
// which takes a tenth of the time: every start makes some twenty.
func deriveSchema[In any]() (json.RawMessage, error) {
	if raw, ok := schemaOfType(make(json.RawMessage, 0, 512), reflect.TypeFor[In](), ""); ok {
		return raw, nil
	}
	return deriveByLibrary[In]()
}

// deriveByLibrary is deriveSchema for any type that has a schema.
func deriveByLibrary[In any]() (json.RawMessage, error) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, err
	}
	dropNull(s)
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// dropNull removes null from the types: an argument that isn't given is left
// out, it isn't null.
func dropNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if rest := slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" }); len(rest) == 1 {
		s.Type, s.Types = rest[0], nil
	}
	for _, p := range s.Properties {
		dropNull(p)
	}
	dropNull(s.Items)
	dropNull(s.AdditionalProperties)
}

// schemaOfType appends the schema of a type; ok is false for one that the library
// must say, then nothing counts.
func schemaOfType(out json.RawMessage, t reflect.Type, doc string) (_ json.RawMessage, ok bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		out, ok = schemaOfStruct(out, t, doc)
		return out, ok && verbatim(doc)
	}
	if t.PkgPath() != "" || !verbatim(doc) { // a type with a name may have a schema of its own
		return nil, false
	}
	if t == reflect.TypeFor[any]() && doc != "" {
		return append(append(append(out, `{"description":"`...), doc...), `"}`...), true
	}
	out = append(out, `{"type":"`...)
	switch t.Kind() {
	case reflect.String:
		out = described(append(out, `string"`...), doc)
	case reflect.Bool:
		out = described(append(out, `boolean"`...), doc)
	case reflect.Int, reflect.Int64:
		out = described(append(out, `integer"`...), doc)
	case reflect.Float64:
		out = described(append(out, `number"`...), doc)
	case reflect.Slice:
		if out, ok = schemaOfType(append(out, `array","items":`...), t.Elem(), ""); !ok {
			return nil, false
		}
		out = described(out, doc)
	case reflect.Map:
		out = append(described(append(out, `object"`...), doc), `,"additionalProperties":`...)
		if out, ok = schemaOfType(out, t.Elem(), ""); !ok || t.Key() != reflect.TypeFor[string]() {
			return nil, false
		}
	default:
		return nil, false
	}
	return append(out, '}'), true
}

// schemaOfStruct is schemaOfType for a struct that has fields.
func schemaOfStruct(out json.RawMessage, t reflect.Type, doc string) (_ json.RawMessage, ok bool) {
	if t.NumField() == 0 || hasForm(t) || len(out) > maxDerived { // a type within itself has no end
		return nil, false
	}
	out = append(out, `{"type":"object","properties":{`...)
	var required []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" || !verbatim(name) || options != "" && options != "omitempty" {
			return nil, false
		}
		if options == "" {
			required = append(required, `"`+name+`"`)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), name...), `":`...)
		if out, ok = schemaOfType(out, f.Type, f.Tag.Get("jsonschema")); !ok {
			return nil, false
		}
	}
	out = described(append(out, '}'), doc)
	if len(required) > 0 {
		out = append(append(append(out, `,"required":[`...), strings.Join(required, ",")...), ']')
	}
	return append(out, `,"additionalProperties":false}`...), true
}

// maxDerived bounds what is derived here, in bytes.
const maxDerived = 16 << 10

// described appends what something is for.
func described(out json.RawMessage, doc string) json.RawMessage {
	if doc == "" {
		return out
	}
	return append(append(append(out, `,"description":"`...), doc...), '"')
}

// verbatim reports whether a text stands in JSON as it is, and isn't what the library
// refuses as a description.
func verbatim(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&=`, c)
	})
}

var (
	jsonForm = reflect.TypeFor[json.Marshaler]()
	textForm = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

// hasForm reports whether values of a type say themselves how they are written.
func hasForm(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonForm) || p.Implements(textForm)
}
