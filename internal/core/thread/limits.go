package thread

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// finalTime is how much active time the final-warning step gets.
const finalTime = time.Minute

// limits watches active time. When it is used up, what runs is no longer
// wanted; once nothing is in flight the model gets one final step.
func limits(s *State, r *Rules, now time.Time, rd *core.Ready) bool {
	t := s.Turn
	used := s.active(now)
	if st := t.Step; st != nil && st.Kind == KindFinal && s.exhausted() != "" {
		if left := st.Begun + finalTime - used; left > 0 {
			if s.driven() {
				wakeAt(rd, now.Add(left))
			}
			return false
		}
		if s.settleAll(r, rd, "cancelled", "TIME_IS_UP", "the final step took too long") {
			s.endFinal(rd)
		}
		return true
	}
	if t.Limits.Time <= 0 {
		return false
	}
	if left := time.Duration(t.Limits.Time) - used; left > 0 {
		if s.driven() {
			wakeAt(rd, now.Add(left))
		}
		return false
	}
	if s.settleAll(r, rd, "cancelled", "TIME_IS_UP", "the turn's time is up") && len(rd.Decided) == 0 {
		s.ask(r, rd, KindFinal)
	}
	return true
}

// exhausted names the limit that the turn has reached; empty when none is.
func (s *State) exhausted() string {
	t := s.Turn
	switch {
	case t.Limits.Time > 0 && t.Active >= time.Duration(t.Limits.Time):
		return "time"
	case t.Limits.Steps > 0 && t.Steps >= t.Limits.Steps:
		return "steps"
	case t.Limits.Calls > 0 && t.Calls >= t.Limits.Calls:
		return "calls"
	case t.Loop != "":
		return "loop"
	}
	return ""
}

// endFinal ends a turn whose final-warning step brought no completion.
func (s *State) endFinal(rd *core.Ready) {
	l := s.Turn.Limits
	switch s.Turn.Step.Limit {
	case "time":
		s.fail(rd, belay.TimedOut, "TIME_LIMIT", fmt.Sprintf("%s of active time are used up", l.Time))
	case "steps":
		s.fail(rd, belay.NoCompletion, "STEP_LIMIT", fmt.Sprintf("%d steps are used up", l.Steps))
	case "calls":
		s.fail(rd, belay.NoCompletion, "CALL_LIMIT", fmt.Sprintf("%d calls are used up", l.Calls))
	default:
		s.fail(rd, belay.NoCompletion, "LOOP", s.Turn.looped())
	}
}

// looped says how a call repeated itself.
func (t *Turn) looped() string {
	for _, k := range t.Tracked {
		if k.Fails >= sameFailures+loopAt {
			return fmt.Sprintf("%s was called %d times with the same arguments although it fails with %s", t.Loop, k.Fails, k.Code)
		}
	}
	return fmt.Sprintf("%s was called %d times in a row with the same arguments and the same result", t.Loop, loopAt)
}

// limitNote is what the model is told in the final-warning step.
func (s *State) limitNote(r *Rules) string {
	l := s.Turn.Limits
	var why string
	switch s.exhausted() {
	case "time":
		why = fmt.Sprintf("The time for this turn (%s) is used up.", l.Time)
	case "steps":
		why = fmt.Sprintf("All %d steps of this turn are used up.", l.Steps)
	case "calls":
		why = fmt.Sprintf("All %d tool calls of this turn are used up.", l.Calls)
	default:
		why = s.Turn.looped() + "."
	}
	return why + " This is your last step: call " + r.completionTool() + " now and say what is done and what is not. Any other call is refused."
}

func refusedFinal(name string) event.Problem {
	return event.Problem{Class: "skipped", Code: "LAST_STEP", Message: "this step only takes the completion tool; " + name + " was not run"}
}
