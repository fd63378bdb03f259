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
	derived := len(spec.Input) == 0
	if derived {
		spec.Input = schemaOf[In](spec.Name)
	}
	return &typed[In]{spec: spec, run: run, derived: derived, certain: derived}
}

// NewFixed is New for a tool whose schema the spec brings as a constant of the
// program. As one that New derived it is read when the tool is called first; if it
// is none, that is a bug and panics.
func NewFixed[In any](spec Spec, run func(ctx context.Context, c Call, in In) (Result, error)) Tool {
	return &typed[In]{spec: spec, run: run, certain: true}
}

// Derivation is the schema of a tool's arguments as the library for JSON Schema
// derives it from their type; nil for a tool that brings its schema. The tests of
// tools hold it against the schema that New made.
func Derivation(t Tool) (json.RawMessage, error) {
	if d, ok := wrapped(t).(interface {
		derivation() (json.RawMessage, error)
	}); ok {
		return d.derivation()
	}
	return nil, nil
}

// Wrapper is a tool that can do more than another, with the same spec.
type Wrapper interface {
	Tool
	Wrapped() Tool // the other one
}

func wrapped(t Tool) Tool {
	for {
		w, ok := t.(Wrapper)
		if !ok {
			return t
		}
		t = w.Wrapped()
	}
}

// NewRecoverable is New for a tool that can find out what an attempt before did.
func NewRecoverable[In any](spec Spec, run func(ctx context.Context, c Call, in In) (Result, error),
	recover func(ctx context.Context, c Call, in In) (Result, bool, error)) Tool {
	return &recoverable[In]{typed: *New(spec, run).(*typed[In]), recover: recover}
}

type typed[In any] struct {
	spec    Spec
	run     func(context.Context, Call, In) (Result, error)
	derived bool // the schema is that of In
	certain bool // the schema is one
}

func (t *typed[In]) Spec() Spec { return t.spec }

func (t *typed[In]) schemaCertain() bool { return t.certain }

func (t *typed[In]) derivation() (json.RawMessage, error) {
	if !t.derived {
		return nil, nil
	}
	return deriveByLibrary[In]()
}

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
