package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	infer "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// deriveSchema is the schema of a struct: properties in the order of its
// fields, nothing beside them allowed. The same type gives the same bytes.
func deriveSchema[In any]() (json.RawMessage, error) {
	s, err := infer.For[In](nil)
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
func dropNull(s *infer.Schema) {
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

// compile reads a schema of draft 2020-12 and checks that it is one. It loads
// nothing from anywhere.
func compile(schema json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, errors.New("the schema is not an object")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	const at = "tool:input"
	if err := c.AddResource(at, doc); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("the schema refers to " + url + ", and a schema must stand alone")
}
