package event_test

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// schema is the part of JSON Schema that the Go types need.
type schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        any                `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Const       string             `json:"const,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Maximum     *int               `json:"maximum,omitempty"`
	MinLength   int                `json:"minLength,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Values      *schema            `json:"additionalProperties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	AllOf       []*schema          `json:"allOf,omitempty"`
	If          *schema            `json:"if,omitempty"`
	Then        *schema            `json:"then,omitempty"`
	Defs        map[string]*schema `json:"$defs,omitempty"`
}

// generator collects the definitions of the structs it meets.
type generator struct {
	t    *testing.T
	docs comments
	defs map[string]*schema
	owns map[string]reflect.Type
}

func (g *generator) of(t reflect.Type) *schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return &schema{}
	case t == reflect.TypeFor[belay.Digest]():
		return &schema{Type: "string"}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Slice:
		return &schema{Type: "array", Items: g.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", Values: g.of(t.Elem())}
	case reflect.Struct:
		return &schema{Ref: "#/$defs/" + g.define(t)}
	}
	g.t.Fatalf("no schema for %s", t)
	return nil
}

// define makes the definition of a struct once and returns its name.
func (g *generator) define(t reflect.Type) string {
	name := t.Name()
	if other, ok := g.owns[name]; ok {
		if other != t {
			g.t.Fatalf("%s and %s would have the same definition", other, t)
		}
		return name
	}
	g.owns[name] = t
	s := g.object(t)
	s.Description = g.docs[name]
	g.defs[name] = s
	return name
}

// object is a struct's own schema. It is open: fields are added over time.
func (g *generator) object(t reflect.Type) *schema {
	s := &schema{Type: "object", Properties: map[string]*schema{}}
	for _, f := range fieldsOf(t) {
		p := g.of(f.Type)
		p.Description = g.docs[f.Go]
		if !f.Optional {
			s.Required = append(s.Required, f.JSON)
			if p.Type == "array" {
				p.Type = []string{"array", "null"}
			}
		}
		s.Properties[f.JSON] = p
	}
	return s
}

// eventSchema describes the JSON of a fact, type by type.
func eventSchema(t *testing.T) *schema {
	g := &generator{t: t, docs: readComments(t), defs: map[string]*schema{}, owns: map[string]reflect.Type{}}
	root := g.object(event.WireType)
	root.Dialect = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "Belay event"
	root.Description = "A durable fact of the runtime, as it is exported and streamed. Types marked draft are not emitted and may change."
	one := 1
	root.Properties["sequence"].Minimum = &one
	root.Properties["schemaVersion"].Const = event.SchemaVersion
	root.Properties["payload"].Type = "object"
	root.Properties["eventId"].Pattern = "^evt_"
	root.Properties["runtimeId"].MinLength = 1
	root.Properties["stream"].Pattern = "^[a-z]+/."
	root.Properties["type"].MinLength = 1
	root.Required = append(root.Required, "sessionId")
	root.Properties["sessionId"].MinLength = 1
	for _, ty := range event.Types() {
		root.AllOf = append(root.AllOf, g.line(ty))
	}
	root.Defs = g.defs
	return root
}

// line says what holds for one type, in the versions this build knows.
func (g *generator) line(ty event.Type) *schema {
	state := "draft"
	if ty.Stable {
		state = "stable"
	}
	v := ty.Version
	return &schema{
		If: &schema{Required: []string{"type"}, Properties: map[string]*schema{"type": {Const: ty.Name}, "payloadVersion": {Maximum: &v}}},
		Then: &schema{
			Description: state + ": " + ty.Doc,
			Required:    slices.Clone(ty.Needs),
			Properties:  map[string]*schema{"payload": {Ref: "#/$defs/" + g.define(event.GoType(ty))}},
		},
	}
}
