package effect

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// checkOutput holds the output field of a completion against a schema.
func checkOutput(schema, args []byte) *event.Problem {
	var in struct {
		Output json.RawMessage `json:"output"`
	}
	_ = json.Unmarshal(args, &in) // its form was checked before
	if len(in.Output) == 0 {
		return &event.Problem{Class: "bad_arguments", Code: "OUTPUT_MISSING", Message: "this task asks for an output", Hint: "put it into the field output; its schema is " + string(schema)}
	}
	said, err := tool.Misfit(schema, in.Output)
	switch {
	case err != nil:
		return &event.Problem{Class: "internal", Code: "BAD_SCHEMA", Message: err.Error()}
	case said != "":
		return &event.Problem{Class: "bad_arguments", Code: "OUTPUT_INVALID", Message: "the output doesn't fit its schema: " + event.CutText(said, 1000), Hint: "correct it and complete again"}
	}
	return nil
}

// outputError returns why a plain answer isn't the output that the turn asks for: one
// value of JSON that fits the schema, and nothing else. Empty: it is, or the turn
// asks for none, or the answer is no end of the turn anyway.
func (a *answer) outputError(ctx context.Context, said belay.Content) (string, error) {
	schema := a.rules.Answer()
	if len(schema) == 0 || len(a.calls) > 0 || a.stop != "stop" {
		return "", nil
	}
	text := []byte(said.Text)
	if said.Ref != nil {
		var err error
		if text, err = a.v.e.c.Store.Get(ctx, said.Ref.Digest); err != nil {
			return "", err
		}
	}
	if text = bytes.TrimSpace(text); !json.Valid(text) {
		return "it is not JSON alone", nil
	}
	misfit, err := tool.Misfit(schema, text)
	if err != nil {
		misfit = err.Error()
	}
	return event.CutText(misfit, 1000), nil
}
