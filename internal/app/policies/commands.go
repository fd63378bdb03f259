// Package policies has the use cases about the rules: what they make of a call and why,
// what others would have made of recorded calls, and which would spare questions.
package policies

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/policy"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.DefineLook("evaluate_permission", auth.Read, "Say what the rules that count now make of a call, and why; nothing is recorded.", evaluatePermission),
		app.DefineLook("replay_policy", auth.Read, "Judge recorded calls by other rules, and say which verdicts change; nothing is recorded.", replayPolicy),
		app.DefineLook("list_rules", auth.Read, "List the rules that count now, by tier and priority, with the calls that each decided.", listRules),
		app.DefineLook("rehearse_grant", auth.Read, "Say which recorded questions an answer to an open one would have spared.", rehearseGrant),
		app.Define("save_rule", auth.Admin, true, "Keep a rule that was rehearsed, in a file of its own beside the person's other rules; it counts from the next turn on.", saveRule),
		app.DefineLook("suggest_rules", auth.Read, "Suggest rules for what is asked about most, with what they would have allowed.", suggestRules),
	}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineRead(app.Read{Name: "listDecisions", Path: "/v1/decisions", Tag: "reads", Doc: "List what was decided about calls, the newest first.",
			Query: []read.Param{
				{Name: "sessionId", Doc: "Only about calls of this session."},
				{Name: "rule", Doc: "Only by this rule."},
				{Name: "decision", Doc: "Only these.", OneOf: []string{string(policy.Allow), string(policy.Ask), string(policy.Deny)}},
				{Name: "before", Doc: "Those before a position: next of the answer before.", Whole: true},
				{Name: "limit", Doc: "How many at most; 100 when left out.", Whole: true}}}, listDecisions),
	}
}
