package anthropic

import (
	"bytes"
	"encoding/json"
)

// shape is a JSON Schema of the kind that the vendor can hold a model to.
// Source: https://platform.claude.com/docs/en/build-with-claude/structured-outputs, November 2026.
type shape struct {
	Dialect     string            `json:"$schema"`
	ID          string            `json:"$id"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Type        json.RawMessage   `json:"type"`
	Properties  map[string]*shape `json:"properties"`
	Required    []string          `json:"required"`
	More        *bool             `json:"additionalProperties"`
	Items       *shape            `json:"items"`
	Any         []*shape          `json:"anyOf"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	Default     json.RawMessage   `json:"default"`
}

// strict reports whether a schema is of that kind: every object is closed, and
// no other keyword is used. For others the model gets the schema in words.
func strict(schema json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.DisallowUnknownFields()
	var s shape
	return d.Decode(&s) == nil && s.closed()
}

func (s *shape) closed() bool {
	if s == nil {
		return true
	}
	if (bytes.Contains(s.Type, []byte(`"object"`)) || len(s.Properties) > 0) && (s.More == nil || *s.More) {
		return false
	}
	for _, p := range s.Properties {
		if !p.closed() {
			return false
		}
	}
	for _, a := range s.Any {
		if !a.closed() {
			return false
		}
	}
	return s.Items.closed()
}
