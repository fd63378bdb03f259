// Package policies has the use cases about the rules: what they make of a call, and why.
package policies

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.Define("evaluate_permission", auth.Read, false, "Say what the rules that count now make of a call, and why; nothing is recorded.", evaluatePermission),
	}
}
