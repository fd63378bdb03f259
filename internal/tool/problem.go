package tool

import (
	"fmt"

	"github.com/belay-run/belay/event"
)

// Codes of problems that a set or a tool made by New reports itself. Tools
// have their own besides.
const (
	CodeUnknownTool  = "UNKNOWN_TOOL"
	CodeBrokenJSON   = "BROKEN_JSON"
	CodeBadArguments = "BAD_ARGUMENTS"
)

// Failf makes an Error of a class and a stable, upper-case code. The message is
// for a person; WithHint adds what the model can do about it.
func Failf(class, code, format string, args ...any) *Error {
	return &Error{Problem: event.Problem{
		Class: class, Code: code, Message: fmt.Sprintf(format, args...), Retryable: class == Transient,
	}}
}

// WithHint adds what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}
