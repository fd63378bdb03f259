// Package policies has the use cases about the rules: what they make of a call and why,
// what others would have made of recorded calls, and which would spare questions.
package policies

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.DefineLook("evaluate_permission", auth.Read, "Say what the rules that count now make of a call, and why; nothing is recorded.", evaluatePermission),
		app.DefineLook("replay_policy", auth.Read, "Judge recorded calls by other rules, and say which verdicts change; nothing is recorded.", replayPolicy),
		app.DefineLook("suggest_rules", auth.Read, "Suggest rules for what is asked about most, with what they would have allowed.", suggestRules),
	}
}
