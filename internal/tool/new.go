package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// New makes a tool of a function. Its schema is derived from In, a struct with
// json and jsonschema tags, unless the spec brings one. A type that has no
// schema is a bug and panics.
func New[In any](spec Spec, run func(ctx context.Context, c Call, in In) (Result, error)) Tool {
	if len(spec.Input) == 0 {
		spec.Input = schemaOf[In](spec.Name)
	}
	return &typed[In]{spec: spec, run: run}
}

// NewRecoverable is New for a tool that can find out what an attempt before did.
func NewRecoverable[In any](spec Spec, run func(ctx context.Context, c Call, in In) (Result, error),
	recover func(ctx context.Context, c Call, in In) (Result, bool, error)) Tool {
	return &recoverable[In]{typed: *New(spec, run).(*typed[In]), recover: recover}
}

type typed[In any] struct {
	spec Spec
	run  func(context.Context, Call, In) (Result, error)
}

// Spec implements Tool.
func (t *typed[In]) Spec() Spec { return t.spec }

// Run implements Tool.
func (t *typed[In]) Run(ctx context.Context, c Call) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	in, err := t.decode(c.Args)
	if err != nil {
		return Result{}, err
	}
	return t.run(ctx, c, in)
}

// decode reads arguments that a Set has checked; it fails where the schema is
// wider than the type, for instance on a number beyond an int.
func (t *typed[In]) decode(args []byte) (In, error) {
	var in In
	if len(bytes.TrimSpace(args)) == 0 {
		return in, nil
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return in, Failf(BadArguments, CodeBadArguments, "arguments of %s: %v", t.spec.Name, err)
	}
	return in, nil
}

type recoverable[In any] struct {
	typed[In]
	recover func(context.Context, Call, In) (Result, bool, error)
}

// Recover implements Recoverer.
func (t *recoverable[In]) Recover(ctx context.Context, c Call) (Result, bool, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, false, err
	}
	in, err := t.decode(c.Args)
	if err != nil {
		return Result{}, false, err
	}
	return t.recover(ctx, c, in)
}

func schemaOf[In any](name string) json.RawMessage {
	b, err := deriveSchema[In]()
	if err != nil {
		panic(fmt.Sprintf("tool %s: its arguments have no schema: %v", name, err))
	}
	return b
}
