package thread

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// codeUsedUp is the code of a call whose programs would be more than its
// boundary lets a thread have. Nothing ran.
const codeUsedUp = "PROGRAMS_USED_UP"

// programUsage is what a program took that ended by a fact.
func programUsage(p event.Payload) (u belay.ProgramUse) {
	if use, ms, ok := event.UseOf(p); ok {
		u = belay.ProgramUse{Ended: 1, CPU: millis(use.CPU), Time: millis(ms), Written: use.Written}
	}
	return u
}

// took is what the thread's programs took up to now. One that runs, or was left running,
// counts its time while it does; MCP servers aren't programs of the agent.
func (d *decision) took() belay.ProgramUse {
	u := d.Took
	for _, p := range d.Procs {
		if p.Server == "" && !p.Orphan {
			u.Time += belay.Duration(max(0, d.now.Sub(p.Since)))
		}
	}
	return u
}

func millis(n int64) belay.Duration { return belay.Duration(time.Duration(n) * time.Millisecond) }

// reportUsage sends the session what the programs of this thread used: the other
// threads get it with what the session grants them.
func (d *decision) reportUsage() {
	if d.Took != d.Reported {
		used := d.Took
		d.record(d.threadFact(event.ThreadUpdated{Reported: &used}))
		d.send(core.Send{To: d.Session.Stream(), Command: belay.ReturnGrant{Thread: d.Thread, Used: &used}})
	}
}

// refuseOverLimit refuses a call that starts programs when those before it have used up
// what its boundary gives the thread, or the session, and reports whether it did.
func (d *decision) refuseOverLimit(spec belay.ToolSpec, c *Call) bool {
	if c.Bound == nil || !hasProcess(spec) {
		return false
	}
	l, took := c.Bound.Is.Limits, d.took()
	all := took.Plus(d.Others)
	layer := "thread"
	limit, what := exceeded(took, l.TotalCPU, l.TotalWritten, l.TotalTime, belay.LimitTotalCPU, belay.LimitTotalDisk, belay.LimitTotalTime)
	if limit == "" {
		layer = "session"
		limit, what = exceeded(all, l.SessionCPU, l.SessionWritten, l.SessionTime, belay.LimitSessionCPU, belay.LimitSessionDisk, belay.LimitSessionTime)
	}
	if limit == "" {
		return false
	}
	d.record(
		core.Fact{IDs: d.callIDs(c), Data: event.SandboxViolation{Layer: layer, Op: policy.OpLimit, Target: limit, Boundary: c.Bound.Name, Reason: "the programs of this " + layer + " " + what}},
		d.failed(c, event.Problem{Class: "denied", Code: codeUsedUp, Message: "not run: the programs of this " + layer + " " + what + " that boundary " + c.Bound.Name + " gives them",
			Hint: "go on without programs, or tell the person; " + limit + " of the boundary sets it"}))
	return true
}

// exceeded names the limit that is used up, by one of three names, and says how.
func exceeded(u belay.ProgramUse, cpu belay.Duration, written int64, took belay.Duration, names ...string) (limit, what string) {
	switch {
	case cpu > 0 && u.CPU >= cpu:
		return names[0], "had " + u.CPU.String() + " of processors, and " + cpu.String() + " is all"
	case written > 0 && u.Written >= written:
		return names[1], fmt.Sprintf("wrote %d bytes to disks, and %d is all", u.Written, written)
	case took > 0 && u.Time >= took:
		return names[2], "ran for " + u.Time.String() + ", and " + took.String() + " is all"
	}
	return "", ""
}
