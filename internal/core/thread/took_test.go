package thread

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

func TestProgramsThatUsedUpWhatAThreadHasStartNoOther(t *testing.T) {
	spec := belay.ToolSpec{Name: "exec", Capabilities: []string{capProcess}}
	var s State
	for _, p := range []event.Payload{
		event.ProcessCompleted{ProcessUse: event.ProcessUse{CPU: 600, Written: 3 << 20}},
		event.ProcessTerminated{ProcessUse: event.ProcessUse{CPU: 400, Written: 1 << 20}},
		event.ProcessFailed{Class: "lost"},
	} {
		s.applyProcess(event.Envelope{Data: p})
	}
	if s.Took.CPU != belay.Duration(time.Second) || s.Took.Written != 4<<20 {
		t.Fatalf("took %+v", s.Took)
	}
	for _, c := range []struct {
		limits belay.ProcessLimits
		spec   belay.ToolSpec
		want   string
	}{
		{belay.ProcessLimits{}, spec, ""},
		{belay.ProcessLimits{TotalCPU: belay.Duration(1001 * time.Millisecond), TotalWritten: 4<<20 + 1}, spec, ""},
		{belay.ProcessLimits{TotalCPU: belay.Duration(time.Second)}, spec, belay.LimitTotalCPU},
		{belay.ProcessLimits{TotalWritten: 4 << 20}, spec, belay.LimitTotalDisk},
		{belay.ProcessLimits{TotalWritten: 1}, belay.ToolSpec{Name: "read"}, ""}, // it starts no program
	} {
		var rd core.Ready
		call := &Call{Name: c.spec.Name, Bound: &policy.Bound{Name: "mine", Is: belay.Boundary{Limits: c.limits}}}
		refused := s.usedUp(&rd, c.spec, call)
		if refused != (c.want != "") || refused != (len(rd.Decided) == 2) {
			t.Errorf("%+v: refused %v with %d facts", c.limits, refused, len(rd.Decided))
			continue
		}
		if !refused {
			continue
		}
		v, f := rd.Decided[0].Data.(event.SandboxViolation), rd.Decided[1].Data.(event.ToolFailed)
		if v.Op != policy.OpLimit || v.Target != c.want || f.Problem.Code != CodeUsedUp || f.Problem.Class != "denied" || !f.Final || !strings.Contains(f.Problem.Hint, c.want) {
			t.Errorf("%+v: %+v, %+v", c.limits, v, f)
		}
	}
}
