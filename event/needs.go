package event

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

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

// Lacks names what a fact's type needs and the fact hasn't got, by JSON name.
// It looks at what a decider gives: runtime, session and place come later.
func Lacks(p Payload, ids belay.IDs, refs map[string]belay.Ref) []string {
	t := byName[TypeOf(p)]
	if t == nil {
		return nil
	}
	var missing []string
	for _, n := range t.Needs {
		if !carries(n, p, ids, refs) {
			missing = append(missing, n)
		}
	}
	return missing
}

func carries(need string, p Payload, ids belay.IDs, refs map[string]belay.Ref) bool {
	switch need {
	case "threadId":
		return ids.Thread != ""
	case "turnId":
		return ids.Turn != ""
	case "taskId":
		return ids.Task != ""
	case "runId":
		return ids.Run != ""
	case "stepId":
		return ids.Step != ""
	case "toolCallId":
		return ids.Call != ""
	case "actionId":
		return ids.Action != ""
	case "subagentId":
		return ids.Subagent != ""
	case "evidenceId":
		return ids.Evidence != ""
	case "refs":
		return len(refs) > 0
	case "benchmark":
		return promoted(p).Benchmark != nil
	case "comparison":
		return promoted(p).Comparison != nil
	}
	return false
}

// Check tells whether a fact can stand in a log: it has a type, a place, a time
// and every id that its type needs. The error names all that is missing.
func Check(e Envelope) error {
	name := e.Type()
	if name == "" {
		return fmt.Errorf("a fact with payload %T has no type", e.Data)
	}
	var missing []string
	lacks := func(absent bool, what string) {
		if absent {
			missing = append(missing, what)
		}
	}
	lacks(e.Stream == "", "stream")
	lacks(e.Seq < 1, "sequence")
	lacks(e.Time.IsZero(), "timestamp")
	lacks(e.Runtime == "", "runtimeId")
	lacks(e.IDs.Session == "", "sessionId")
	missing = append(missing, Lacks(e.Data, e.IDs, e.Refs)...)
	if len(missing) > 0 {
		return fmt.Errorf("%s lacks %s", name, strings.Join(missing, ", "))
	}
	return nil
}
