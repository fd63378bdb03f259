package effect

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// How long effects may be silent that have no time of their own. A request's is
// what the gateway gives it in all; text that comes is a sign of life.
const (
	modelSilence   = 30 * time.Minute
	checkerSilence = 5 * time.Minute
)

// Silence is how long an effect may give no sign of life. The runtime's own work
// on this machine has no bound.
func (v *performer) Silence(eff core.Effect) time.Duration {
	switch eff := eff.(type) {
	case core.RunTool:
		return toolTime(eff.Timeout)
	case core.CallModel:
		return modelSilence
	case core.CheckCall:
		return checkerSilence
	}
	return 0
}

// toolTime is how long a call may take, by what its tool says.
func toolTime(own time.Duration) time.Duration {
	if own > 0 {
		return own
	}
	return tool.DefaultTimeout
}

// CodeStuck is the code of what ended because it was given up.
const CodeStuck = "EFFECT_STUCK"

// GiveUp returns the end of an effect that holds its thread for longer than its
// time.
func (v *performer) GiveUp(eff core.Effect, silent time.Duration, now time.Time) []core.Fact {
	warning := func(ids belay.IDs, what string) core.Fact {
		return core.Fact{IDs: ids, Data: event.RuntimeWarning{Code: CodeStuck, Message: fmt.Sprintf("%s gave no sign of life for %s and didn't end when it was cancelled; it was given up", what, silent)}}
	}
	switch eff := eff.(type) {
	case core.RunTool:
		p := event.Problem{Class: tool.Lost, Code: CodeStuck, Message: eff.Name + " didn't end when its time was up, and was given up; nobody knows whether it did its work (lost)",
			Hint: "look at what is there before you decide to run it again"}
		return []core.Fact{warning(eff.IDs, eff.Name), {IDs: eff.IDs, Data: event.ToolFailed{Name: eff.Name, Attempt: eff.Attempt, Final: true, Problem: p, Millis: silent.Milliseconds()}}}
	case core.CallModel:
		p := event.Problem{Class: "transient", Code: CodeStuck, Message: "the model gave no answer and the request could not be ended; it was given up", Retryable: true}
		return []core.Fact{warning(eff.IDs, "a request to "+eff.Provider), {IDs: eff.IDs, Data: event.ModelFailed{Attempt: eff.Attempt, Problem: p,
			RetryAt: thread.ModelRetryAt(now, eff.Step, eff.Failures, 0)}}}
	case core.CheckCall:
		hook, point := "checker/"+eff.Checker, "permission_request"
		if eff.Request != nil {
			hook, point = eff.Checker, "sampling"
		}
		p := event.Problem{Class: "internal", Code: CodeStuck, Message: "the checker gave no answer and could not be ended"}
		return []core.Fact{warning(eff.IDs, "checker "+eff.Checker), {IDs: eff.IDs, Data: event.HookFailed{Hook: hook, Point: point, Problem: p, Fails: "closed"}}}
	}
	return nil
}
