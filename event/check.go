package event

import (
	"strconv"

	"github.com/belay-run/belay"
)

// CheckResult is what became of a check that the task must pass.
type CheckResult struct {
	ID     string          `json:"id"`
	Kind   belay.CheckKind `json:"kind"`
	Status string          `json:"status"`           // noted, running, passed, failed, unknown, waived
	Call   *ModelCall      `json:"call,omitempty"`   // of a running one: the call that finds it out
	Reason string          `json:"reason,omitempty"` // why it isn't passed
	Output string          `json:"output,omitempty"` // the last lines of what it printed
	Files  []FileSeen      `json:"files,omitempty"`  // of a noted one: how files were before the first attempt

	Score        *float64 `json:"score,omitempty"`        // that an agent gave, or the worker itself: from 0 to 1
	SelfReported bool     `json:"selfReported,omitempty"` // the score is the worker's own
}

// Calls are the calls that a fact announces: those of an answer, or that of a check.
func Calls(p Payload) []ModelCall {
	switch p := p.(type) {
	case ModelCompleted:
		return p.Calls
	case TaskProgress:
		if p.Check != nil && p.Check.Call != nil {
			return []ModelCall{*p.Check.Call}
		}
	}
	return nil
}

// Text is the result in words, such as "go-test failed: exit 1".
func (k CheckResult) Text() string {
	text := "check " + k.ID + " " + k.Status
	if k.Score != nil {
		text += " " + strconv.FormatFloat(*k.Score, 'g', 3, 64)
		if k.SelfReported {
			text += " by the worker itself"
		}
	}
	if k.Reason != "" {
		text += ": " + k.Reason
	}
	return text
}

// PhaseVerifying is the phase in which checks are found out.
const PhaseVerifying = "verifying"

// Words of a CheckResult.
const (
	CheckNoted   = "noted"   // what must stay unchanged is known
	CheckRunning = "running" // a call finds it out
	CheckPassed  = "passed"
	CheckFailed  = "failed"
	CheckUnknown = "unknown" // it couldn't be found out, which doesn't pass
	CheckWaived  = "waived"  // a person does without it
)
