//go:build unix

package file

import (
	"context"

	"github.com/belay-run/belay"
)

// TempName is a name that a call's temporary file may have.
func TempName(id belay.CallID) string { return tempPrefix(id) + "ABCDEF.tmp" }

// WithSteps calls f before each operation that changes something on disk.
func WithSteps(ctx context.Context, f func(op string) error) context.Context {
	return context.WithValue(ctx, stepKey{}, f)
}
