package scripted

import (
	"cmp"
	"context"
	"time"

	"github.com/belay-run/belay/internal/model"
)

// fault is what goes wrong instead of the end of an answer.
type fault struct {
	Kind       string `yaml:"kind"`
	Message    string `yaml:"message"`
	RetryAfter string `yaml:"retryAfter"`
	AfterChars int    `yaml:"afterChars"` // characters of the text that arrive first
	Attempts   int    `yaml:"attempts"`   // only attempts up to this one fail; 0 is all

	retryAfter time.Duration
}

// faultKinds are the kinds a script may name, with what each says by default.
// hang and cut are no errors: the one never ends, the other ends too early.
var faultKinds = map[string]string{
	"rate_limited": "too many requests",
	"transient":    "the provider is not available",
	"overflow":     "the request is longer than the model's context",
	"auth":         "the key was not accepted",
	"bad_request":  "the provider does not understand the request",
	"refused":      "the provider refuses to answer",
	"internal":     "the provider has a bug",
	"hang":         "",
	"cut":          "",
}

// strikes reports whether the fault happens on an attempt.
func (f *fault) strikes(attempt int) bool {
	return f != nil && (f.Attempts == 0 || attempt <= f.Attempts)
}

// happen ends a stream: with an error, with nothing, or only with its context.
func (f *fault) happen(ctx context.Context, yield func(model.Chunk, error) bool) {
	switch f.Kind {
	case "cut":
	case "hang":
		<-ctx.Done()
		yield(model.Chunk{}, ctx.Err())
	default:
		yield(model.Chunk{}, &model.Error{Class: f.Kind, Message: cmp.Or(f.Message, faultKinds[f.Kind]), RetryAfter: f.retryAfter})
	}
}
