package tool

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// derived keeps the schemas of types: the same type gives the same bytes.
var derived sync.Map // of reflect.Type: json.RawMessage

// deriveSchema returns the schema of a struct: properties in the order of its
// fields, nothing beside them allowed.
func deriveSchema[In any]() (json.RawMessage, error) {
	t := reflect.TypeFor[In]()
	if known, ok := derived.Load(t); ok {
		return known.(json.RawMessage), nil
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}})
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
	raw, _ := derived.LoadOrStore(t, json.RawMessage(bytes.TrimSpace(buf.Bytes())))
	return raw.(json.RawMessage), nil
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
