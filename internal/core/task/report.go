package task

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Bounds of the report of a failed task.
const (
	maxTried       = 8
	maxTriedReason = 300
)

// Classes of failures, by what has to change.
const (
	failedWork    = "work"    // what the agent did
	failedModel   = "model"   // who answers for the agent
	failedLimit   = "limit"   // what it may use
	failedGate    = "gate"    // what it may do
	failedRuntime = "runtime" // where it ran
)

// failure is the report of a task that agents tried in vain; nil: nobody's file or kind
// describes who tried it, or a person ended it.
func (s *State) failure(c belay.EndAttempt) *event.FailureReport {
	if c.Outcome == belay.Completed || c.Outcome == belay.Cancelled || c.Agent == "" {
		return nil
	}
	r := &event.FailureReport{Agent: c.Agent, Code: c.Cause, Reason: event.CutText(c.Reason, maxTriedReason)}
	for _, a := range s.Attempts {
		if a.Run == c.Run { // its end is beside the report
			a.Outcome, a.Agent, a.Code, a.Reason = c.Outcome, c.Agent, c.Cause, r.Reason
		}
		r.Tried = append(r.Tried, event.Tried{Run: a.Run, Agent: a.Agent, Outcome: a.Outcome, Code: a.Code, Reason: a.Reason})
	}
	r.Tried = slices.Clone(r.Tried[max(0, len(r.Tried)-maxTried):])
	r.Class, r.Next = advice(c)
	return r
}

// advice says what kind of failure an end is, and what a person can do.
func advice(c belay.EndAttempt) (class, next string) {
	switch c.Cause {
	case "CHECKS_FAILED":
		return failedWork, "belay why says which checks failed; mend what they found, or waive them: belay tasks complete TASK --waive CHECK --why TEXT"
	case "MODEL_FAILED", "MODEL_REFUSED", "NO_ROUTE", "RETRY_BUDGET", "CONTEXT_FULL", "CONTEXT_TOO_SMALL", "CONTEXT_EXCEEDED":
		return failedModel, "belay doctor says which models answer; name another one in the agent's file, or give it a fallback"
	case "NO_PRICE":
		return failedModel, "write the model's prices into models.yaml, or limit tokens instead of money"
	case "CRASH_LOOP", "SNAPSHOT_FAILED", "RULES_MISSING", "CONTENT_MISSING":
		return failedRuntime, "belay doctor, then belay tasks retry TASK"
	case "STEP_LIMIT", "CALL_LIMIT":
		return failedLimit, "raise limits of the agent's file, or make the task smaller, then belay tasks retry TASK"
	}
	switch c.Outcome {
	case belay.Denied:
		return failedGate, "belay why says which call was denied and by which rule; give the agent the capability, or another task"
	case belay.OverBudget, belay.TimedOut:
		return failedLimit, "raise the budget or the limits of the agent's file, then belay tasks retry TASK"
	case belay.Lost:
		return failedRuntime, "belay verify, then belay tasks retry TASK"
	}
	return failedWork, "belay why says what happened; say more in the task or in the agent's file, then belay tasks retry TASK"
}

// reported is an end with its report.
func reported(end event.TaskOver, r *event.FailureReport) event.TaskOver {
	switch p := end.(type) {
	case event.TaskFailed:
		p.Report = r
		return p
	case event.TaskTimedOut:
		p.Report = r
		return p
	case event.TaskLost:
		p.Report = r
		return p
	case event.TaskBlocked:
		p.Report = r
		return p
	}
	return end
}
