package thread

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// CodeUsedUp is the code of a call whose programs would be more than its
// boundary lets a thread have. Nothing ran.
const CodeUsedUp = "PROGRAMS_USED_UP"

// Took is what the programs of a thread took that have ended.
type Took struct {
	CPU     belay.Duration `json:"cpu,omitempty"`
	Written int64          `json:"written,omitempty"` // bytes to disks
}

// took folds what a program took.
func (t *Took) took(p event.Payload) {
	if use, _, ok := event.UseOf(p); ok {
		t.CPU += belay.Duration(time.Duration(use.CPU) * time.Millisecond)
		t.Written += use.Written
	}
}

// usedUp refuses a call that starts programs when those before it have used up
// what its boundary gives the thread, and tells whether it did.
func (s *State) usedUp(rd *core.Ready, spec belay.ToolSpec, c *Call) bool {
	if c.Bound == nil || !hasProcess(spec) {
		return false
	}
	l := c.Bound.Is.Limits
	limit, what := "", ""
	switch {
	case l.TotalCPU > 0 && s.Took.CPU >= l.TotalCPU:
		limit, what = belay.LimitTotalCPU, "had "+s.Took.CPU.String()+" of processors, and "+l.TotalCPU.String()+" is all"
	case l.TotalWritten > 0 && s.Took.Written >= l.TotalWritten:
		limit, what = belay.LimitTotalDisk, fmt.Sprintf("wrote %d bytes to disks, and %d is all", s.Took.Written, l.TotalWritten)
	default:
		return false
	}
	rd.Decided = append(rd.Decided,
		core.Fact{IDs: s.callIDs(c), Data: event.SandboxViolation{Layer: "thread", Op: policy.OpLimit, Target: limit, Boundary: c.Bound.Name, Reason: "its programs " + what}},
		s.failed(c, event.Problem{Class: "denied", Code: CodeUsedUp, Message: "not run: the programs of this thread " + what + " that boundary " + c.Bound.Name + " gives them",
			Hint: "go on without programs, or tell the person; " + limit + " of the boundary sets it"}))
	return true
}
