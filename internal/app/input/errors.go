// Package input reads what callers send: strict JSON into typed values, and errors
// that name the field at fault, which it writes as HTTP answers of type
// application/problem+json (RFC 9457). It promises that nothing which could be read in
// two ways is accepted, that a client may depend on the code and the field of an
// error, that the status follows from the code alone, and that the text of an error
// without a code is never shown.
package input

import (
	"errors"
	"strings"
	"time"
)

// FieldError is an error in a part of a request.
type FieldError struct {
	Field string // such as "message", "settings.mode", "header Origin"
	err   error
}

// Error implements error.
func (f *FieldError) Error() string { return f.err.Error() }

// Unwrap returns the error behind it.
func (f *FieldError) Unwrap() error { return f.err }

// At adds the part of the request to an error that names none yet.
func At(field string, err error) error {
	if _, said := errors.AsType[*FieldError](err); err == nil || said {
		return err
	}
	return &FieldError{field, err}
}

// Shown returns a name from outside as an error may repeat it: shortened, and as UTF-8.
func Shown(name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	return strings.ToValidUTF8(name, "�")
}

// LaterError is an error that may be gone after a while.
type LaterError struct {
	After time.Duration
	err   error
}

// Error implements error.
func (l *LaterError) Error() string { return l.err.Error() }

// Unwrap returns the error behind it.
func (l *LaterError) Unwrap() error { return l.err }

// After adds to an error when it is worth trying again.
func After(d time.Duration, err error) error { return &LaterError{d, err} }
