package snapshot

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// work folds what happens between the beginning and the end of a turn.
func (f *Fold) work(t *Thread, e event.Envelope) {
	turn := t.turn()
	if turn == nil || t.Active != turn.TurnID {
		return
	}
	switch p := e.Data.(type) {
	case event.ModelRequested:
		f.request(t, turn, e, p)
	case event.ModelCompleted:
		if t.step != nil {
			t.step.Status, t.step.CompletedAt, t.step.Usage = "completed", e.Time, p.Usage
		}
		f.s.Routing.Usage = f.s.Routing.Usage.Add(p.Usage)
		f.wants(turn, e)
	case event.TaskProgress:
		f.wants(turn, e)
	case event.ModelFailed:
		if t.step != nil {
			t.step.Status, t.step.CompletedAt = "failed", e.Time
		}
	case event.PermissionEvaluated:
		c := turn.call(e.IDs.Call)
		c.Decision, c.Rule = p.Decision, p.Rule
	case event.PermissionResolved:
		turn.call(e.IDs.Call).Decision = p.Decision
	case event.ToolArgs:
		turn.call(e.IDs.Call).EditedBy = p.By
	case event.ToolStarted:
		c := turn.call(e.IDs.Call)
		c.Status, c.Attempts, c.Name = "running", p.Attempt, p.Name
	case event.ToolResult:
		c := turn.call(e.IDs.Call)
		c.Status, c.Output = "completed", p.Whole
		if p.Exit != 0 {
			c.Code = p.Outcome()
		}
	case event.ToolFailed:
		f.failed(t, turn.call(e.IDs.Call), e, p)
	}
}

// wants folds the calls that a fact announces.
func (f *Fold) wants(turn *Turn, e event.Envelope) {
	for _, c := range event.Calls(e.Data) {
		f.s.Telemetry.Calls++
		turn.Calls = last(append(turn.Calls, &Call{CallID: c.ID, StepID: e.IDs.Step, Name: cut(c.Name), Status: "requested"}), maxCalls)
	}
}

func (f *Fold) request(t *Thread, turn *Turn, e event.Envelope, p event.ModelRequested) {
	if t.step == nil || t.step.StepID != e.IDs.Step {
		f.s.Telemetry.Steps++
		t.step = &Step{StepID: e.IDs.Step, Kind: p.Kind, Model: p.Model, StartedAt: e.Time}
		turn.Steps = last(append(turn.Steps, t.step), maxSteps)
	}
	t.step.Status, t.step.Attempts = "running", p.Attempt
}

func (f *Fold) failed(t *Thread, c *Call, e event.Envelope, p event.ToolFailed) {
	if !p.Final {
		c.Status = "retrying"
		return
	}
	c.Status, c.Code, c.Output = "failed", p.Problem.Code, p.Whole
	switch p.Problem.Class {
	case "lost":
		f.s.Telemetry.Lost++
		t.incident(e, "lost_call", p.Problem.Code, p.Name+": "+p.Problem.Message)
		c.Status = "lost"
	case "denied", "cancelled", "skipped":
		c.Status = p.Problem.Class
	default:
		f.s.Telemetry.Failures++
	}
}

// call finds a call of the turn. One that no answer named is not kept.
func (turn *Turn) call(id belay.CallID) *Call {
	for i := len(turn.Calls) - 1; i >= 0; i-- {
		if turn.Calls[i].CallID == id {
			return turn.Calls[i]
		}
	}
	return &Call{CallID: id}
}

// shown is the beginning of a program's arguments.
func shown(argv []string) (out []string) {
	for _, arg := range argv[:min(len(argv), maxArgv)] {
		out = append(out, cut(arg))
	}
	return out
}

// process follows the processes that run; some outlive their turn.
func (t *Thread) process(e event.Envelope) {
	switch p := e.Data.(type) {
	case event.ProcessStarted:
		t.Processes = append(t.Processes, &Process{ProcessID: e.IDs.Process, CallID: e.IDs.Call, PID: p.PID, Status: "running", Argv: shown(p.Argv), Cwd: p.Cwd, TTY: p.TTY, StartedAt: e.Time})
	case event.ProcessCompleted, event.ProcessFailed, event.ProcessTerminated:
		t.Processes, _ = without(t.Processes, func(p *Process) bool { return p.ProcessID == e.IDs.Process })
	}
}

// without is a list without its first entry that is meant, and that entry, or nil.
func without[T any](list []*T, is func(*T) bool) ([]*T, *T) {
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return list, nil
	}
	return append(list[:i:i], list[i+1:]...), list[i]
}

// last is the end of a list.
func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }
