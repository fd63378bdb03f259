package task

import (
	"fmt"

	"github.com/belay-run/belay"
)

// Bounds of a goal.
const (
	maxGoalTurns = 10 // attempts
	maxIdle      = 2  // attempts in a row that change nothing
)

// missed makes the end of an attempt that of the goal, if it didn't meet it and no other
// one follows: so many have changed nothing, or they are all that there may be.
func (s *State) missed(c *belay.EndAttempt) bool {
	switch {
	case !s.Goal || s.Cancel || c.Outcome == belay.Completed || c.Outcome == belay.Cancelled:
		return false
	case !c.Acted && s.Idle+1 >= maxIdle:
		c.Reason = fmt.Sprintf("%d turns in a row changed nothing; the last one: %s", maxIdle, c.Reason)
	case s.Count >= maxGoalTurns:
		c.Reason = fmt.Sprintf("%d turns didn't meet the goal; the last one: %s", maxGoalTurns, c.Reason)
	default:
		return false
	}
	c.Outcome = belay.Blocked
	return true
}

// again is the text of an attempt that follows by itself.
func (s *State) again() belay.Content {
	if !s.Goal || s.Objective.Ref != nil {
		return s.Objective
	}
	return belay.Content{Text: "The goal is not met yet; go on with it, and complete when it is: " + s.Objective.Text}
}
