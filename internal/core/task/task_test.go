package task

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
)

const stream = belay.StreamID("task/task_1")

var rules = belay.Ref{Digest: belay.DigestOf([]byte("rules")), Size: 5}

// values compares commands by what they hold.
var values = cmp.Exporter(func(reflect.Type) bool { return true })

// bench plays commands and keeps the log.
type bench struct {
	t   *testing.T
	d   *Decider
	log []event.Envelope
}

func newBench(t *testing.T) *bench { return &bench{t: t, d: New(stream)} }

// try handles a command and folds what it gives.
func (b *bench) try(c belay.Command) ([]core.Fact, []core.Send, error) {
	b.t.Helper()
	facts, sends, err := b.d.Handle(belay.Order{Principal: "user:ann", Session: "sess_1", Stream: stream, Command: c}, time.Time{})
	for _, f := range facts {
		e := event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data}
		b.d.Apply(e)
		b.log = append(b.log, e)
	}
	return facts, sends, err
}

// do is a command that is taken; it gives the types of its facts and what is sent.
func (b *bench) do(c belay.Command) ([]string, []core.Send) {
	b.t.Helper()
	facts, sends, err := b.try(c)
	if err != nil {
		b.t.Fatalf("%s: %v", belay.CommandName(c), err)
	}
	var types []string
	for _, f := range facts {
		types = append(types, event.Envelope{Data: f.Data}.Type())
	}
	return types, sends
}

func (b *bench) create() []core.Send {
	b.t.Helper()
	_, sends := b.do(belay.CreateTask{Objective: belay.Content{Text: "fix it"}, Thread: "thr_1", Turn: "turn_1", Rules: rules})
	return sends
}

// run is the id of the newest attempt.
func (b *bench) run() belay.RunID { return b.d.s.Attempts[len(b.d.s.Attempts)-1].Run }

func (b *bench) end(o belay.Outcome) []string {
	b.t.Helper()
	types, sends := b.do(belay.EndAttempt{Run: b.run(), Turn: b.d.s.Attempts[len(b.d.s.Attempts)-1].Turn, AttemptEnd: belay.AttemptEnd{Outcome: o, Reason: "because"}})
	if len(sends) > 0 {
		b.t.Errorf("the end of an attempt sends %v", sends)
	}
	return types
}

func TestATaskSendsItsTurnOnce(t *testing.T) {
	b := newBench(t)
	sends := b.create()
	want := []core.Send{{To: "thread/thr_1", Command: belay.SubmitTurn{
		Turn: "turn_1", Kind: belay.TurnUser, Task: "task_1", Run: b.run(), Text: belay.Content{Text: "fix it"}, Rules: rules}}}
	if d := cmp.Diff(want, sends, values); d != "" {
		t.Errorf("sent (-want +got):\n%s", d)
	}
	if types, sends := b.do(belay.CreateTask{Thread: "thr_2", Turn: "turn_2"}); types != nil || sends != nil {
		t.Errorf("creating it again gives %v and sends %v", types, sends)
	}
}

// A text for the sub-agent is an attempt beside the one that runs: the task ends with
// the last of them, and says of how many texts it knows.
func TestASubagentIsToldMore(t *testing.T) {
	b := newBench(t)
	b.do(belay.CreateTask{Objective: belay.Content{Text: "fix it"}, Thread: "thr_1", Turn: "turn_1", Rules: rules, Subagent: "sub_1"})
	first := b.run()
	_, sends := b.do(belay.ContinueTask{Input: 1, Turn: "turn_2", Text: belay.Content{Text: "more"}, Rules: rules, Queue: belay.QueueSteer, Taint: []string{"web:x"}, Limits: belay.Limits{Steps: 3}, Rest: true})
	if c := sends[0].Command.(belay.SubmitTurn); c.Run == first || c.Run != b.run() || c.Text.Text != "more" || c.Queue != belay.QueueSteer || len(c.Taint) != 1 || c.Limits.Steps != 3 || !c.Rest {
		t.Errorf("sent %+v", c)
	}
	if types, sends := b.do(belay.ContinueTask{Input: 1, Turn: "turn_2"}); types != nil || sends != nil {
		t.Errorf("told again: %v %v", types, sends)
	}
	end := belay.AttemptEnd{Outcome: belay.Completed}
	if types, sends := b.do(belay.EndAttempt{Run: first, Turn: "turn_1", AttemptEnd: end}); len(types) != 1 || types[0] != "task.attempt.completed" || sends != nil {
		t.Errorf("the first ends: %v %v", types, sends)
	}
	_, sends = b.do(belay.EndAttempt{Run: b.run(), Turn: "turn_2", AttemptEnd: end})
	if c := sends[0].Command.(belay.EndSubagent); c.Inputs != 1 || b.d.s.Status != "completed" {
		t.Errorf("the last ends: %+v, %s", c, b.d.s.Status)
	}
	// It goes on when there is a place.
	types, sends := b.do(belay.ContinueTask{Input: 2, Turn: "turn_3", Text: belay.Content{Text: "again"}, Rules: rules, Wait: true, Limits: belay.Limits{Steps: 2}})
	if fmt.Sprint(types) != "[task.retrying task.queued]" || sends != nil {
		t.Errorf("it waits: %v %v", types, sends)
	}
	_, sends = b.do(belay.StartTask{})
	if c := sends[0].Command.(belay.SubmitTurn); c.Text.Text != "again" || c.Turn != "turn_3" || c.Limits.Steps != 2 || b.d.s.Count != 3 {
		t.Errorf("it starts: %+v", c)
	}
	_, sends = b.do(belay.CancelTask{})
	if len(sends) != 1 || sends[0].Command != (belay.InterruptTurn{Turn: "turn_3"}) {
		t.Errorf("cancelled: %v", sends)
	}
}

// Every outcome of a turn is an end of its task.
func TestTheEndOfAnAttemptEndsTheTask(t *testing.T) {
	for o, want := range map[belay.Outcome][]string{
		belay.Completed:    {"task.attempt.completed", "task.completed"},
		belay.Failed:       {"task.attempt.failed", "task.failed"},
		belay.NoCompletion: {"task.attempt.failed", "task.failed"},
		belay.Denied:       {"task.attempt.failed", "task.failed"},
		belay.OverBudget:   {"task.attempt.failed", "task.failed"},
		belay.Blocked:      {"task.attempt.failed", "task.blocked"},
		belay.TimedOut:     {"task.attempt.failed", "task.timed_out"},
		belay.Cancelled:    {"task.attempt.failed", "task.cancelled"},
		belay.Lost:         {"task.attempt.failed", "task.lost"},
	} {
		b := newBench(t)
		b.create()
		if d := cmp.Diff(want, b.end(o)); d != "" {
			t.Errorf("%s (-want +got):\n%s", o, d)
		}
		if a := b.d.s.Attempts[0]; a.Outcome != o || b.d.s.running() != nil {
			t.Errorf("%s: the attempt is %+v", o, a)
		}
	}
}

// An end is told at least once, and may come late: only the running attempt ends.
func TestAnEndToldAgainOrOfAnotherRunChangesNothing(t *testing.T) {
	b := newBench(t)
	b.create()
	first := b.run()
	if types, _ := b.do(belay.EndAttempt{Run: "run_other", AttemptEnd: belay.AttemptEnd{Outcome: belay.Completed}}); types != nil {
		t.Errorf("the end of another run gives %v", types)
	}
	b.end(belay.Failed)
	if types, _ := b.do(belay.EndAttempt{Run: first, Turn: "turn_1", AttemptEnd: belay.AttemptEnd{Outcome: belay.Failed}}); types != nil {
		t.Errorf("the end told again gives %v", types)
	}
	b.do(belay.RetryTask{Turn: "turn_2", Rules: rules})
	if types, _ := b.do(belay.EndAttempt{Run: first, Turn: "turn_1", AttemptEnd: belay.AttemptEnd{Outcome: belay.Completed}}); types != nil || b.d.s.Status != "running" {
		t.Errorf("the end of the attempt before gives %v, and the task is %s", types, b.d.s.Status)
	}
}

func TestARetryIsAnAttemptOfItsOwn(t *testing.T) {
	b := newBench(t)
	b.create()
	first := b.run()
	b.end(belay.TimedOut)
	other := belay.Ref{Digest: belay.DigestOf([]byte("other rules")), Size: 11}
	types, sends := b.do(belay.RetryTask{Turn: "turn_2", Reason: "again", Rules: other})
	if d := cmp.Diff([]string{"task.retrying", "task.attempt.started"}, types); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
	want := []core.Send{{To: "thread/thr_1", Command: belay.SubmitTurn{
		Turn: "turn_2", Kind: belay.TurnUser, Task: "task_1", Run: b.run(), Text: belay.Content{Text: "fix it"}, Rules: other, Again: true}}}
	if d := cmp.Diff(want, sends, values); d != "" || b.run() == first {
		t.Errorf("sent (-want +got):\n%s", d)
	}
	if p, _ := b.log[len(b.log)-1].Data.(event.TaskAttemptStarted); p.Number != 2 {
		t.Errorf("the second attempt has number %d", p.Number)
	}
}

// A turn id stands for one turn of a thread for ever: an attempt under a used
// one would never begin.
func TestARetryNeedsANewTurn(t *testing.T) {
	b := newBench(t)
	b.create()
	b.end(belay.Failed)
	b.do(belay.RetryTask{Turn: "turn_2", Rules: rules})
	b.end(belay.Failed)
	for _, used := range []belay.TurnID{"turn_1", "turn_2"} {
		if facts, sends, err := b.try(belay.RetryTask{Turn: used}); belay.CodeOf(err) != belay.CodeIDConflict || facts != nil || sends != nil {
			t.Errorf("a retry with %s: %v, %v, %v", used, facts, sends, err)
		}
	}
}

func TestCancelInterruptsTheTurnOfTheRunningAttempt(t *testing.T) {
	b := newBench(t)
	b.create()
	b.end(belay.Failed)
	b.do(belay.RetryTask{Turn: "turn_2", Rules: rules})
	types, sends := b.do(belay.CancelTask{Reason: "enough"})
	want := []core.Send{{To: "thread/thr_1", Command: belay.InterruptTurn{Turn: "turn_2", Reason: "enough"}}}
	if d := cmp.Diff(want, sends, values); d != "" || len(types) != 1 || types[0] != "task.cancel_requested" {
		t.Errorf("facts %v, sent (-want +got):\n%s", types, d)
	}
	if types, sends := b.do(belay.CancelTask{}); types != nil || sends != nil {
		t.Errorf("cancelling again gives %v and sends %v", types, sends)
	}
	b.end(belay.Cancelled)
	b.do(belay.RetryTask{Turn: "turn_3", Rules: rules})
	if _, sends := b.do(belay.CancelTask{}); len(sends) != 1 {
		t.Error("an attempt after a cancelled one can't be cancelled")
	}
}

func TestWhatATaskRefuses(t *testing.T) {
	fresh := func(*bench) {}
	running := func(b *bench) { b.create() }
	completed := func(b *bench) { b.create(); b.end(belay.Completed) }
	for _, c := range []struct {
		name string
		at   func(*bench)
		do   belay.Command
		want belay.Code
	}{
		{"a retry of nothing", fresh, belay.RetryTask{Turn: "turn_1"}, belay.CodeNotFound},
		{"a retry of what runs", running, belay.RetryTask{Turn: "turn_2"}, belay.CodeBadState},
		{"a retry of what is done", completed, belay.RetryTask{Turn: "turn_2"}, belay.CodeBadState},
		{"cancelling nothing", fresh, belay.CancelTask{}, belay.CodeBadState},
		{"cancelling what is done", completed, belay.CancelTask{}, belay.CodeBadState},
		{"a command of others", running, belay.OpenThread{}, belay.CodeBadCommand},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.at(b)
			before, _ := b.d.Save()
			facts, sends, err := b.try(c.do)
			if belay.CodeOf(err) != c.want || err == nil || facts != nil || sends != nil {
				t.Errorf("got %v, %v, %v; want code %s and nothing else", facts, sends, err, c.want)
			}
			if after, _ := b.d.Save(); string(after) != string(before) {
				t.Error("a refusal changed the state")
			}
		})
	}
}

// The state is bounded, and folding on from a saved one is folding them all.
func TestATaskFoldsTheSameFromEveryCut(t *testing.T) {
	b := newBench(t)
	b.create()
	b.do(belay.CancelTask{Reason: "wait"})
	for i := range 2 * maxAttempts {
		b.end(belay.Failed)
		b.do(belay.RetryTask{Turn: belay.TurnID(fmt.Sprint("turn_again_", i)), Rules: rules})
	}
	b.end(belay.Completed)
	if n := len(b.d.s.Attempts); n != maxAttempts || b.d.s.Count != 2*maxAttempts+1 {
		t.Errorf("%d attempts are kept of %d", n, b.d.s.Count)
	}
	coretest.FromEveryCut(t, func() core.Decider { return New(stream) }, b.log)
}

// Folding is total: every type can come along, in any state.
func TestATaskFoldsAnything(t *testing.T) {
	for _, typ := range event.Types() {
		p, err := event.Decode(typ.Name, typ.Version, []byte(`{}`))
		if err != nil {
			t.Fatalf("%s: %v", typ.Name, err)
		}
		b := newBench(t)
		b.d.Apply(event.Envelope{Stream: stream, Seq: 1, Data: p})
		b = newBench(t)
		b.create()
		b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, Data: p})
	}
}
