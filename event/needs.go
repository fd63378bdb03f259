package event

import "strings"

// need says what the facts of some types must carry.
type need struct {
	types string // a family ("tool."), a part of one ("task.attempt.") or a type
	what  []string
}

// needs is what the strict profile of the standard asks for, type by type.
var needs = []need{
	{"thread.", []string{"threadId"}},
	{"turn.", []string{"threadId", "turnId"}},
	{"model.", []string{"threadId", "turnId"}},
	{"reasoning.", []string{"threadId", "turnId"}},
	{"tool.", []string{"threadId", "turnId", "stepId", "toolCallId"}},
	{"action.", []string{"threadId", "turnId", "actionId"}},
	{"permission.", []string{"threadId", "turnId"}},
	{"sandbox.", []string{"threadId", "turnId"}},
	{"hook.", []string{"threadId", "turnId"}},
	{"context.", []string{"threadId", "turnId"}},
	{"routing.", []string{"threadId", "turnId"}},
	{"cost.", []string{"threadId", "turnId"}},
	{"rate_limit.", []string{"threadId", "turnId"}},
	{"quota.", []string{"threadId", "turnId"}},
	{"task.", []string{"taskId"}},
	{"task.attempt.", []string{"runId"}},
	{"subagent.", []string{"subagentId"}},
	{"evidence.changed", []string{"evidenceId"}},
	{"benchmark.", []string{"benchmark"}},
	{"benchmark.trial.", []string{"taskId", "runId", "refs"}},
	{"benchmark.trial.started", []string{"threadId", "turnId"}},
	{"benchmark.reward.", []string{"taskId", "runId", "refs"}},
	{"benchmark.comparison.completed", []string{"comparison", "refs"}},
}

func needsOf(name string) []string {
	var all []string
	for _, n := range needs {
		if n.types == name || strings.HasSuffix(n.types, ".") && strings.HasPrefix(name, n.types) {
			all = append(all, n.what...)
		}
	}
	return all
}
