//go:build unix

package exec

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// begin lets a program begin: at once without a boundary; else when it stands,
// and after the fact that announces the program is durable.
func begin(ctx context.Context, c tool.Call, proc *process.Process, started event.ProcessStarted) error {
	if c.Box == nil {
		c.Sink.Fact(started)
		return nil
	}
	err := proc.Await(ctx)
	if err == nil {
		err = c.Sink.Durable(started)
	}
	if err == nil {
		err = proc.Release()
	}
	if err != nil {
		ended, end := context.WithCancel(ctx)
		end()
		proc.Wait(ended) // nothing ran
	}
	return err
}

// violation is what the boundary stopped of a program that ended, as far as
// anybody can tell; nil is nothing. It is recorded.
func (j *job) violation(said string) *event.SandboxViolation {
	if j.call.Box == nil {
		return nil
	}
	v := j.call.Box.Stopped(j.proc.Exit(), said, j.p.Dir)
	if v != nil {
		j.call.Sink.Fact(*v)
	}
	return v
}

// boxed is the failure of a program that its boundary stopped. It is a denial
// that says what was stopped, not a failure of the program alone.
func boxed(v *event.SandboxViolation, text string, ref *belay.Ref) error {
	what := v.Op
	if v.Target != "" {
		what += " " + v.Target
	}
	e := tool.Failf(tool.Denied, tool.CodeViolation, "the boundary %s stopped it: %s (%s)", v.Boundary, what, v.Reason).
		WithHint("stay inside the boundary, or do without it")
	e.Text, e.Output = text, ref
	return e
}
