package engine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// CheckSchema tells whether a JSON Schema that a user brought can be used.
func CheckSchema(schema []byte) error {
	_, err := compileSchema(schema)
	return err
}

func compileSchema(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the output schema isn't JSON").Wrap(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("belay:output", doc); err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the output schema can't be read").Wrap(err)
	}
	s, err := c.Compile("belay:output")
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the output schema isn't a JSON Schema").Wrap(err)
	}
	return s, nil
}

// noLoader refuses references to other documents: a schema opens no connection and no file.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, belay.Errorf(belay.CodeUsage, "a schema can't refer to %s: only to itself", url)
}

// checkOutput holds the output field of a completion against a schema.
func checkOutput(schema, args []byte) *event.Problem {
	var in struct {
		Output json.RawMessage `json:"output"`
	}
	_ = json.Unmarshal(args, &in) // its form was checked before
	if len(in.Output) == 0 {
		return &event.Problem{Class: "bad_arguments", Code: "OUTPUT_MISSING", Message: "this task asks for an output", Hint: "put it into the field output; its schema is " + string(schema)}
	}
	s, err := compileSchema(schema)
	if err != nil {
		return &event.Problem{Class: "internal", Code: "BAD_SCHEMA", Message: err.Error()}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(in.Output))
	if err == nil {
		err = s.Validate(doc)
	}
	if err != nil {
		return &event.Problem{Class: "bad_arguments", Code: "OUTPUT_INVALID", Message: "the output doesn't fit its schema: " + strings.ReplaceAll(err.Error(), "belay:output", "schema"), Hint: "correct it and complete again"}
	}
	return nil
}

// scrubOrder removes registered secrets from a command before it becomes durable.
func (e *Engine) scrubOrder(o belay.Order) belay.Order {
	name, body, err := belay.EncodeCommand(o.Command)
	if err != nil {
		return o
	}
	clean := e.c.Secrets.Bytes(body)
	if bytes.Equal(clean, body) {
		return o
	}
	if c, err := belay.DecodeCommand(name, clean); err == nil {
		o.Command = c
	}
	return o
}
