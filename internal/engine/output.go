package engine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// CheckSchema tells whether a JSON Schema that a user brought can be used.
func CheckSchema(schema []byte) error {
	if _, err := tool.ReadSchema(schema); err != nil {
		return belay.Errorf(belay.CodeUsage, "the output schema can't be used").Wrap(err)
	}
	return nil
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
	s, err := tool.ReadSchema(schema)
	if err != nil {
		return &event.Problem{Class: "internal", Code: "BAD_SCHEMA", Message: err.Error()}
	}
	var value any
	_ = json.Unmarshal(in.Output, &value)
	if said := s.Complaints(value); len(said) > 0 {
		text := strings.ReplaceAll(strings.Join(said, "; "), "argument", "field")
		return &event.Problem{Class: "bad_arguments", Code: "OUTPUT_INVALID", Message: "the output doesn't fit its schema: " + event.CutText(text, 1000), Hint: "correct it and complete again"}
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
