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
		app.Define("evaluate_permission", auth.Read, false, "Say what the rules that count now make of a call, and why; nothing is recorded.", evaluatePermission),
		app.Define("replay_policy", auth.Read, false, "Judge recorded calls by other rules, and say which verdicts change; nothing is recorded.", replayPolicy),
		app.Define("suggest_rules", auth.Read, false, "Suggest rules for what is asked about most, with what they would have allowed.", suggestRules),
	}
}
