package thread

import (
	"cmp"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Time that the final-warning step gets, its repetitions and the waits for them included:
// a fifth of the turn's, between these bounds.
const (
	leastFinal = 2 * time.Second
	mostFinal  = time.Minute
	finalPart  = 5
)

func finalTime(limit belay.Duration) time.Duration {
	if limit <= 0 {
		return mostFinal
	}
	return min(max(time.Duration(limit)/finalPart, leastFinal), mostFinal)
}

// elapsed is what the turn has used of its time as of now: driven time, and the waits for a
// provider that fails.
func (d *decision) elapsed() time.Duration {
	return d.active() + d.Turn.Waited + d.Turn.retryWait(d.Last, d.now)
}

// lasts has the turn looked at when so much more of its time is used up, if it is being used.
func (d *decision) lasts(left time.Duration) {
	if d.driven() || d.Turn.retryWait(d.now, d.now.Add(left)) > 0 {
		d.wakeAt(d.now.Add(left))
	}
}

// turnTime is how much of its time the turn has left; limited is false if that isn't
// limited.
func (d *decision) turnTime() (left time.Duration, limited bool) {
	if d.Turn == nil || d.Turn.Limits.Time <= 0 {
		return 0, false
	}
	return time.Duration(d.Turn.Limits.Time) - d.elapsed(), true
}

// limits watches the turn's time. When it is used up, what runs is no longer wanted; once
// nothing is in flight the model gets one final step, unless its provider gave no answer.
func limits(d *decision) bool {
	t := d.Turn
	if st := t.Step; st != nil && st.Kind == KindFinal && d.Turn.exhausted() != "" {
		if left := st.Begun + finalTime(t.Limits.Time) - d.elapsed(); left > 0 {
			d.lasts(left)
			return false
		}
		if d.settleAll("TIME_IS_UP", "the final step took too long") {
			d.endFinal()
		}
		return true
	}
	if left, limited := (spending{d}).timeLeft(); limited && d.driven() {
		if left <= 0 { // what follows asks for more, or ends the turn
			d.settleAll(lows[belay.BudgetTime].code, usedUp(belay.BudgetTime))
			return true
		}
		d.wakeAt(d.now.Add(left))
	}
	switch left, limited := d.turnTime(); {
	case !limited:
		return false
	case left > 0:
		d.lasts(left)
		return false
	}
	if st := t.Step; st != nil && st.Phase == stepFailed {
		if !st.Problem.Retryable { // it ends the turn, or is mended, without the provider
			return false
		}
		d.fail(belay.TimedOut, "TIME_LIMIT", fmt.Sprintf("%s are used up, and the model gave no answer: %s", t.Limits.Time, st.Problem.Message))
		return true
	}
	if d.settleAll("TIME_IS_UP", "the turn's time is up") && len(d.ready.Decided) == 0 {
		if t.Answers == 0 && t.PartialText == "" && t.Partial == nil {
			d.fail(belay.TimedOut, "TIME_LIMIT", fmt.Sprintf("%s are used up, and the model gave no answer", t.Limits.Time))
		} else {
			d.ask(KindFinal)
		}
	}
	return true
}

// exhausted names the limit that the turn has reached, or the budget that this
// decision found too small.
func (d *decision) exhausted() string {
	return cmp.Or(d.Turn.exhausted(), lows[d.short].limit)
}

// exhausted names the limit that the turn has reached; empty when none is.
func (t *Turn) exhausted() string {
	switch {
	case t.Stop != nil && t.Stop.Grace:
		return limitClosed
	case t.Limits.Time > 0 && t.Active+t.Waited >= time.Duration(t.Limits.Time):
		return "time"
	case t.Limits.Steps > 0 && t.Steps >= t.Limits.Steps:
		return "steps"
	case t.Limits.Calls > 0 && t.Calls >= t.Limits.Calls:
		return "calls"
	case t.Loop != "" || t.Refusals >= maxRefusals:
		return "loop"
	case t.Low != "":
		return lows[t.Low].limit
	}
	return ""
}

// usedUpAll says that as many as a limit allows are used up.
func usedUpAll(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is used up"
	}
	return fmt.Sprintf("%d %ss are used up", n, what)
}

// endFinal ends a turn whose final-warning step brought no completion.
func (d *decision) endFinal() {
	l := d.Turn.Limits
	switch d.Turn.Step.Limit {
	case limitClosed:
		d.fail(belay.Cancelled, "INTERRUPTED", stopReason(d.Turn.Stop.By, d.Turn.Stop.Reason))
	case "time":
		d.fail(belay.TimedOut, "TIME_LIMIT", fmt.Sprintf("%s of active time are used up", l.Time))
	case "steps":
		d.fail(belay.NoCompletion, "STEP_LIMIT", usedUpAll(l.Steps, "step"))
	case "calls":
		d.fail(belay.NoCompletion, "CALL_LIMIT", usedUpAll(l.Calls, "call"))
	case "loop":
		d.fail(belay.NoCompletion, "LOOP", d.Turn.looped())
	default:
		d.fail(belay.OverBudget, lows[d.Turn.Low].code, usedUp(d.Turn.Low))
	}
}

// looped says how a call repeated itself.
func (t *Turn) looped() string {
	if t.Loop == "" {
		return fmt.Sprintf("none of the calls of %d answers in a row could run", t.Refusals)
	}
	for _, k := range t.Tracked {
		if k.Fails >= sameFailures+loopAt {
			return fmt.Sprintf("%s was called %d times with the same arguments although it fails with %s", t.Loop, k.Fails, k.Code)
		}
	}
	return fmt.Sprintf("%s was called %d times in a row with the same arguments and the same result", t.Loop, loopAt)
}

// limitNote is the note to the model in the final-warning step.
func (d *decision) limitNote() string {
	l := d.Turn.Limits
	var why string
	switch d.exhausted() {
	case limitClosed:
		why = "You are told to end: " + stopReason(d.Turn.Stop.By, d.Turn.Stop.Reason) + "."
	case "time":
		why = fmt.Sprintf("The time for this turn (%s) is used up.", l.Time)
	case "steps":
		why = "This turn has no step left: " + usedUpAll(l.Steps, "step") + "."
	case "calls":
		why = "This turn has no call left: " + usedUpAll(l.Calls, "tool call") + "."
	case "loop":
		why = d.Turn.looped() + "."
	default:
		why = "Stop: " + usedUp(cmp.Or(d.Turn.Low, d.short)) + "."
	}
	if d.rules.completionTool() == "" {
		return why + " This is your last step: answer now, and say what is done and what is not. Any call is refused."
	}
	return why + " This is your last step: call " + d.rules.completionTool() + " now and say what is done and what is not. Any other call is refused."
}

func (d *decision) refusedFinal(name string) *event.Problem {
	takes := "takes no calls"
	if d.rules.completionTool() != "" {
		takes = "only takes the completion tool"
	}
	return &event.Problem{Class: "skipped", Code: "LAST_STEP", Message: "this step " + takes + "; " + name + " was not run"}
}
