package thread

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/policy"
)

// Guarantee: T58.
func TestProgramsThatUsedUpWhatAThreadHasStartNoOther(t *testing.T) {
	spec := belay.ToolSpec{Name: "exec", Capabilities: []string{capProcess}}
	var s State
	for _, p := range []event.Payload{
		event.ProcessCompleted{Millis: 2000, ProcessUse: event.ProcessUse{CPU: 600, Written: 3 << 20}},
		event.ProcessTerminated{Millis: 1000, ProcessUse: event.ProcessUse{CPU: 400, Written: 1 << 20}},
		event.ProcessFailed{Class: "lost"},
	} {
		s.applyProcess(event.Envelope{Data: p})
	}
	if want := (belay.ProgramUse{Ended: 2, CPU: belay.Duration(time.Second), Time: belay.Duration(3 * time.Second), Written: 4 << 20}); s.Took != want {
		t.Fatalf("took %+v", s.Took)
	}
	s.Others = belay.ProgramUse{Ended: 1, CPU: belay.Duration(2 * time.Second), Time: belay.Duration(5 * time.Second), Written: 1 << 20}
	for _, c := range []struct {
		limits belay.ProcessLimits
		spec   belay.ToolSpec
		want   string
	}{
		{belay.ProcessLimits{}, spec, ""},
		{belay.ProcessLimits{TotalCPU: belay.Duration(1001 * time.Millisecond), TotalWritten: 4<<20 + 1}, spec, ""},
		{belay.ProcessLimits{TotalCPU: belay.Duration(time.Second)}, spec, belay.LimitTotalCPU},
		{belay.ProcessLimits{TotalWritten: 4 << 20}, spec, belay.LimitTotalDisk},
		{belay.ProcessLimits{TotalTime: belay.Duration(3 * time.Second)}, spec, belay.LimitTotalTime},
		{belay.ProcessLimits{TotalTime: belay.Duration(3001 * time.Millisecond), SessionTime: belay.Duration(8001 * time.Millisecond)}, spec, ""},
		{belay.ProcessLimits{SessionTime: belay.Duration(8 * time.Second)}, spec, belay.LimitSessionTime},
		{belay.ProcessLimits{TotalCPU: belay.Duration(3 * time.Second), SessionCPU: belay.Duration(3 * time.Second)}, spec, belay.LimitSessionCPU},
		{belay.ProcessLimits{SessionCPU: belay.Duration(3001 * time.Millisecond), SessionWritten: 5<<20 + 1}, spec, ""},
		{belay.ProcessLimits{SessionWritten: 5 << 20}, spec, belay.LimitSessionDisk},
		{belay.ProcessLimits{SessionWritten: 1}, belay.ToolSpec{Name: "read"}, ""},
		{belay.ProcessLimits{TotalWritten: 1}, belay.ToolSpec{Name: "read"}, ""}, // it starts no program
	} {
		var rd core.Ready
		call := &Call{Name: c.spec.Name, Bound: &policy.Bound{Name: "mine", Is: belay.Boundary{Limits: c.limits}}}
		refused := (&decision{State: &s, ready: &rd}).refuseOverLimit(c.spec, call)
		if refused != (c.want != "") || refused != (len(rd.Decided) == 2) {
			t.Errorf("%+v: refused %v with %d facts", c.limits, refused, len(rd.Decided))
			continue
		}
		if !refused {
			continue
		}
		v, f := rd.Decided[0].Data.(event.SandboxViolation), rd.Decided[1].Data.(event.ToolFailed)
		scope := "thread"
		if strings.HasPrefix(c.want, "session") {
			scope = "session"
		}
		if v.Layer != scope || !strings.HasPrefix(f.Problem.Message, "not run: the programs of this "+scope+" ") {
			t.Errorf("%+v: %+v, %+v", c.limits, v, f)
		}
		if v.Op != policy.OpLimit || v.Target != c.want || f.Problem.Code != codeUsedUp || f.Problem.Class != "denied" || !f.Final || !strings.Contains(f.Problem.Hint, c.want) {
			t.Errorf("%+v: %+v, %+v", c.limits, v, f)
		}
	}
}

// TestARunningProgramTakesTime has a program that was left running, an MCP server, and one that
// a crash took: the first counts while it runs, the others aren't the agent's running programs.
// Guarantee: T58.
func TestARunningProgramTakesTime(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var s State
	s.applyProcess(event.Envelope{Data: event.ProcessCompleted{Millis: 1000}})
	for id, server := range map[belay.ProcessID]string{"proc_1": "", "proc_2": "docs"} {
		s.applyProcess(event.Envelope{Time: start, IDs: belay.IDs{Process: id}, Data: event.ProcessStarted{PID: 7, Server: server, Argv: []string{"serve"}}})
	}
	call := &Call{Name: "exec", Bound: &policy.Bound{Name: "mine", Is: belay.Boundary{Limits: belay.ProcessLimits{TotalTime: belay.Duration(5 * time.Second)}}}}
	spec := belay.ToolSpec{Name: "exec", Capabilities: []string{capProcess}}
	refused := func(after time.Duration) bool {
		var rd core.Ready
		return (&decision{State: &s, ready: &rd, now: start.Add(after)}).refuseOverLimit(spec, call)
	}
	if refused(3999*time.Millisecond) || !refused(4*time.Second) || refused(-time.Hour) {
		t.Error("a program that runs doesn't count the time that it runs")
	}
	s.applyProcess(event.Envelope{Data: event.RunStatus{Status: "running", Phase: "takeover"}})
	if refused(time.Hour) {
		t.Error("a program counts that the runtime lost")
	}
}

// together are two threads and their session, as an engine brings commands from one
// to the other.
type together struct {
	t       *testing.T
	session *session.Decider
	threads map[belay.StreamID]*Decider
	seq     map[belay.StreamID]int64
}

const togetherStream = belay.StreamID("session/sess_1")

func newTogether(t *testing.T) *together {
	g := &together{t: t, session: session.New(togetherStream), threads: map[belay.StreamID]*Decider{}, seq: map[belay.StreamID]int64{}}
	g.apply(togetherStream, core.Fact{IDs: belay.IDs{Session: "sess_1"}, Data: event.SessionCreated{Workspace: "/ws"}})
	return g
}

func (g *together) decider(s belay.StreamID) core.Decider {
	if s == togetherStream {
		return g.session
	}
	if g.threads[s] == nil {
		g.threads[s] = New(s)
	}
	return g.threads[s]
}

func (g *together) apply(s belay.StreamID, facts ...core.Fact) {
	for _, f := range facts {
		g.seq[s]++
		g.decider(s).Apply(event.Envelope{Stream: s, Seq: g.seq[s], IDs: f.IDs, Data: f.Data})
	}
}

// bring hands a command to a stream, and what follows to the others.
func (g *together) bring(s belay.StreamID, c belay.Command) {
	g.t.Helper()
	if s.Kind() == belay.KindTask {
		return
	}
	facts, sends, err := g.decider(s).Handle(belay.Order{Session: "sess_1", Stream: s, Principal: "user:ann", Command: c}, time.Time{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.apply(s, facts...)
	for _, x := range sends {
		g.bring(x.To, x.Command)
	}
	g.settle(s)
}

// settle takes what a stream decides until it decides nothing.
func (g *together) settle(s belay.StreamID) {
	g.t.Helper()
	for {
		rd := g.decider(s).Next(time.Time{})
		if len(rd.Decided) == 0 {
			return
		}
		g.apply(s, rd.Decided...)
		for _, x := range rd.Sends {
			g.bring(x.To, x.Command)
		}
	}
}

// work opens a thread in the session.
func (g *together) work(id belay.ThreadID) belay.StreamID {
	g.t.Helper()
	g.bring(togetherStream, belay.SubmitWork{Thread: id, Task: belay.TaskID("task_" + id), Turn: belay.TurnID("turn_" + id)})
	return id.Stream()
}

// ends is a program of a thread that ended.
func (g *together) ends(s belay.StreamID, cpu int64) {
	g.t.Helper()
	g.apply(s, core.Fact{IDs: belay.IDs{Session: "sess_1", Thread: belay.ThreadID(s.ID()), Process: "proc_1"}, Data: event.ProcessCompleted{ProcessUse: event.ProcessUse{CPU: cpu}}})
	g.settle(s)
}

// hears asks the session for a call's hold, and is what the thread knows of others
// with its word.
func (g *together) hears(s belay.StreamID, call belay.CallID) belay.ProgramUse {
	g.t.Helper()
	d := g.threads[s]
	var rd core.Ready
	c := &Call{ID: call, Name: "look", Bound: &policy.Bound{Name: "mine", Is: belay.Boundary{Limits: belay.ProcessLimits{SessionCPU: 1}}}}
	look := belay.ToolSpec{Name: "look", ReadOnly: true, Capabilities: []string{capProcess}}
	if !d.decision(time.Time{}, &rd).waitsForHold(look, c) {
		g.t.Fatal("it doesn't ask")
	}
	g.apply(s, rd.Decided...)
	for _, x := range rd.Sends {
		facts, sends, err := g.session.Handle(belay.Order{Session: "sess_1", Stream: togetherStream, Command: x.Command}, time.Time{})
		if err != nil || len(sends) > 0 {
			g.t.Fatal(sends, err)
		}
		g.apply(togetherStream, facts...)
	}
	answer := g.session.Next(time.Time{})
	g.apply(togetherStream, answer.Decided...)
	for _, x := range answer.Sends {
		facts, _, err := d.Handle(belay.Order{Session: "sess_1", Stream: x.To, Command: x.Command}, time.Time{})
		if err != nil {
			g.t.Fatal(err)
		}
		g.apply(x.To, facts...)
	}
	if d.decision(time.Time{}, &rd).waitsForHold(look, c) {
		g.t.Fatal("the session doesn't answer")
	}
	return d.s.Others
}

// Guarantee: T58.
func TestThreadsOfASessionKnowWhatTheOthersUsed(t *testing.T) {
	g := newTogether(t)
	a := g.work("thr_a")
	g.ends(a, 300) // alone, it tells nobody
	if n := len(g.session.State().Used); n != 0 {
		t.Fatalf("%d threads told", n)
	}
	b := g.work("thr_b")
	if got := g.hears(b, "call_1"); got.CPU != millis(300) || got.Ended != 1 {
		t.Errorf("the second hears %+v", got)
	}
	g.ends(b, 50)
	g.ends(b, 50)
	g.ends(a, 1000) // in the background: it holds nothing
	if got := g.hears(a, "call_2"); got.CPU != millis(100) || got.Ended != 2 {
		t.Errorf("the first hears %+v", got)
	}
	if got := g.hears(b, "call_3"); got.CPU != millis(1300) {
		t.Errorf("the second hears %+v", got)
	}
	c := g.work("thr_c")
	if got := g.hears(c, "call_4"); got.CPU != millis(1400) || got.Ended != 4 {
		t.Errorf("the third hears %+v", got)
	}
	before := g.seq[togetherStream]
	g.bring(togetherStream, belay.ReturnGrant{Thread: "thr_a", Used: &g.threads[a].s.Took})
	if g.seq[togetherStream] != before {
		t.Error("what is told twice is recorded twice")
	}
}
