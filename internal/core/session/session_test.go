package session

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/policy"
)

const stream = belay.StreamID("session/sess_1")

// values compares commands and facts by what they hold.
var values = cmp.Exporter(func(reflect.Type) bool { return true })

var rules = belay.Ref{Digest: belay.DigestOf([]byte("rules")), Size: 5}

// bench plays commands and keeps the log.
type bench struct {
	t   *testing.T
	d   *Decider
	log []event.Envelope

	sent []core.Send
}

func newBench(t *testing.T) *bench { return &bench{t: t, d: New(stream)} }

// try handles a command and folds what it gives.
func (b *bench) try(c belay.Command) ([]core.Fact, []core.Send, error) {
	b.t.Helper()
	facts, sends, err := b.d.Handle(belay.Order{Principal: "user:ann", Session: "sess_1", Stream: stream, Command: c}, time.Time{})
	b.sent = append(b.sent, sends...)
	for _, f := range facts {
		e := event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data}
		b.d.Apply(e)
		b.log = append(b.log, e)
	}
	return facts, sends, err
}

// do is a command that is taken.
func (b *bench) do(c belay.Command) ([]event.Payload, []core.Send) {
	b.t.Helper()
	facts, sends, err := b.try(c)
	if err != nil {
		b.t.Fatalf("%s: %v", belay.CommandName(c), err)
	}
	var out []event.Payload
	for _, f := range facts {
		if f.IDs.Session != "sess_1" {
			b.t.Errorf("%T is about %+v", f.Data, f.IDs)
		}
		out = append(out, f.Data)
	}
	return out, sends
}

func (b *bench) create(allow ...string) []event.Payload {
	b.t.Helper()
	facts, sends := b.do(belay.CreateSession{Workspace: "/ws", Title: "fix it", Settings: belay.Settings{Provider: "scripted", Allow: allow}})
	if len(sends) > 0 {
		b.t.Errorf("creating a session sends %v", sends)
	}
	return facts
}

func gives(tool string) event.PolicyChanged {
	return event.PolicyChanged{Kind: "grant", Op: "granted", Tool: tool, Tier: policy.TierUser, Scope: "session", By: "user:ann"}
}

// What was allowed beforehand is in the log with who allowed it.
func TestASessionBeginsWithItsSettingsAndGrants(t *testing.T) {
	b := newBench(t)
	want := []event.Payload{
		event.SessionCreated{Workspace: "/ws", Title: "fix it", Settings: belay.Settings{Provider: "scripted", Allow: []string{"exec", "edit"}}},
		gives("exec"), gives("edit"),
	}
	if d := cmp.Diff(want, b.create("exec", "edit"), values); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
	if facts, _ := b.do(belay.CreateSession{Workspace: "/other"}); facts != nil || b.d.s.Workspace != "/ws" {
		t.Errorf("creating it again gives %v", facts)
	}
}

// TestASessionKeepsItsShell: it is decided once, and what is allowed for it says
// its dialect.
// Guarantee: G86.
func TestASessionKeepsItsShell(t *testing.T) {
	for _, had := range []*belay.Shell{nil, {Path: "/bin/bash", Dialect: "bash"}} {
		b := newBench(t)
		b.do(belay.CreateSession{Workspace: "/ws", Settings: belay.Settings{Shell: had}})
		facts, _ := b.do(belay.UpdateSession{Settings: belay.Settings{Allow: []string{"exec"}, Shell: &belay.Shell{Path: "/opt/sh", Dialect: "sh"}}})
		want, g := belay.Settings{Allow: []string{"exec"}, Shell: had}, gives("exec")
		if had != nil {
			g.Dialect = "bash"
		}
		if d := cmp.Diff([]event.Payload{event.SessionUpdated{Settings: &want}, g}, facts, values); d != "" {
			t.Errorf("facts (-want +got):\n%s", d)
		}
		if got := b.d.s.Grants[0].Dialect; string(got) != g.Dialect {
			t.Errorf("the grant is for %q", got)
		}
	}
}

func TestASettingChangesAndAGrantIsGivenOnce(t *testing.T) {
	b := newBench(t)
	b.create("exec")
	next := belay.Settings{Provider: "other", Mode: belay.ModePlan, Allow: []string{"exec", "edit"}}
	facts, _ := b.do(belay.UpdateSession{Settings: next})
	if d := cmp.Diff([]event.Payload{event.SessionUpdated{Settings: &next}, gives("edit")}, facts, values); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
	if d := cmp.Diff(next, b.d.s.Settings); d != "" || b.d.s.Title != "fix it" {
		t.Errorf("settings (-want +got), title %q:\n%s", b.d.s.Title, d)
	}
}

// Work opens its thread once and always makes a task.
func TestWorkOpensTheThreadAndCreatesTheTask(t *testing.T) {
	b := newBench(t)
	b.create()
	work := belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1", Text: belay.Content{Text: "do it"}, Rules: rules}
	_, sends := b.do(work)
	task := func(id belay.TaskID, turn belay.TurnID, place int64) core.Send {
		return core.Send{To: id.Stream(), Command: belay.CreateTask{Objective: work.Text, Thread: "thr_1", Turn: turn, Rules: rules, Place: place}}
	}
	want := []core.Send{{To: "thread/thr_1", Command: belay.OpenThread{Workspace: "/ws"}}, task("task_1", "turn_1", 2)}
	if d := cmp.Diff(want, sends, values); d != "" {
		t.Errorf("sent (-want +got):\n%s", d)
	}
	if facts, sends := b.do(work); facts != nil || sends != nil {
		t.Errorf("the same work again gives %v and sends %v", facts, sends)
	}
	work.Task, work.Turn = "task_2", "turn_2"
	_, sends = b.do(work)
	if d := cmp.Diff([]core.Send{task("task_2", "turn_2", 3)}, sends, values); d != "" || b.d.s.Task != "task_2" {
		t.Errorf("more work on the thread, newest task %s, sent (-want +got):\n%s", b.d.s.Task, d)
	}
}

// Threads learn whether they may write before they are given work.
// Guarantee: E21.
func TestAThreadOfAReaderKnowsItFirst(t *testing.T) {
	b := newBench(t)
	b.create()
	reader := belay.WorkspaceUse{Use: belay.UseReader, Writer: "sess_2", Path: "/ws"}
	writer := belay.WorkspaceUse{Use: belay.UseWriter}
	facts, sends := b.do(belay.UseWorkspace{Use: &reader})
	if len(facts) != 1 || len(sends) != 0 || b.d.s.Use != reader {
		t.Fatalf("%v %v %+v", facts, sends, b.d.s.Use)
	}
	_, sends = b.do(belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1", Rules: rules})
	if len(sends) != 3 || sends[0].To != "thread/thr_1" || !cmp.Equal(sends[1].Command, belay.Command(belay.UseWorkspace{Use: &reader}), values) {
		t.Fatalf("work in a reader sends %+v", sends)
	}
	_, sends = b.do(belay.UseWorkspace{Use: &writer})
	if len(sends) != 1 || sends[0].To != "thread/thr_1" || !cmp.Equal(sends[0].Command, belay.Command(belay.UseWorkspace{Use: &writer}), values) {
		t.Fatalf("a reader that becomes the writer sends %+v", sends)
	}
	if facts, sends = b.do(belay.UseWorkspace{Use: &writer}); len(facts)+len(sends) != 0 {
		t.Errorf("the same use again gives %v %v", facts, sends)
	}
	tree := belay.Worktree{Repository: "/ws", Path: "/wt", Branch: "b", Base: "c"}
	b.do(belay.UseWorkspace{Worktree: &tree})
	tree.Removed = true
	b.do(belay.UseWorkspace{Worktree: &tree})
	if b.d.s.Worktree == nil || *b.d.s.Worktree != tree || b.d.s.Use != writer {
		t.Errorf("worktree %+v, use %+v", b.d.s.Worktree, b.d.s.Use)
	}
}

func TestWhatASessionRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		do   belay.Command
		want belay.Code
	}{
		{"work for no session", belay.SubmitWork{Turn: "turn_1"}, belay.CodeNotFound},
		{"settings of no session", belay.UpdateSession{}, belay.CodeNotFound},
		{"a command of others", belay.EndAttempt{}, belay.CodeBadCommand},
	} {
		b := newBench(t)
		before, _ := b.d.Save()
		facts, sends, err := b.try(c.do)
		after, _ := b.d.Save()
		if err == nil || belay.CodeOf(err) != c.want || facts != nil || sends != nil || string(before) != string(after) {
			t.Errorf("%s: %v, %v, %v; want code %s and nothing else", c.name, facts, sends, err, c.want)
		}
	}
}

// The turns remembered are bounded, and folding on from a saved state is
// folding it all.
func TestASessionFoldsTheSameFromEveryCut(t *testing.T) {
	b := newBench(t)
	b.create("exec")
	for i := range maxKnown + 10 {
		b.do(belay.SubmitWork{Thread: belay.ThreadID(fmt.Sprint("thr_", i%3)), Task: belay.TaskID(fmt.Sprint("task_", i)), Turn: belay.TurnID(fmt.Sprint("turn_", i))})
	}
	b.do(belay.UpdateSession{Settings: belay.Settings{Provider: "other", Allow: []string{"edit"}}})
	b.do(belay.ReturnGrant{Thread: "thr_1", Used: &belay.ProgramUse{Ended: 1, Written: 3}})
	b.do(belay.ReturnGrant{Thread: "thr_2", Used: &belay.ProgramUse{Ended: 1, Written: 4}})
	b.do(belay.ReturnGrant{Thread: "thr_1", Used: &belay.ProgramUse{Ended: 2, Written: 5}})
	if used := b.d.s.others("thr_0"); used == nil || *used != (belay.ProgramUse{Ended: 3, Written: 9}) || len(b.d.s.Used) != 2 {
		t.Errorf("used %+v, %+v", used, b.d.s.Used)
	}
	if n := len(b.d.s.Turns); n != maxKnown || len(b.d.s.Threads) != 3 {
		t.Errorf("%d turns and %d threads are remembered", n, len(b.d.s.Threads))
	}
	coretest.FromEveryCut(t, func() core.Decider { return New(stream) }, b.log)
}

// Folding is total: every type can come along.
func TestASessionFoldsAnything(t *testing.T) {
	for _, typ := range event.Types() {
		p, err := event.Decode(typ.Name, typ.Version, []byte(`{}`))
		if err != nil {
			t.Fatalf("%s: %v", typ.Name, err)
		}
		b := newBench(t)
		b.create()
		b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, Data: p})
	}
}

// order plays a session of three threads and says who may change things.
func order(t *testing.T) *bench {
	b := newBench(t)
	b.create()
	for i, thread := range []belay.ThreadID{"thr_1", "thr_2", "thr_3"} {
		_, sends := b.do(belay.SubmitWork{Thread: thread, Task: belay.TaskID(fmt.Sprint("task_", i)), Turn: belay.TurnID(fmt.Sprint("turn_", i)), Rules: rules})
		var shared []belay.StreamID
		for _, s := range sends {
			if _, ok := s.Command.(belay.ShareWorkspace); ok {
				shared = append(shared, s.To)
			}
		}
		want := [][]belay.StreamID{nil, {"thread/thr_1", "thread/thr_2"}, {"thread/thr_3"}}[i]
		if !slices.Equal(shared, want) {
			t.Fatalf("thread %d: told to share: %v, want %v", i+1, shared, want)
		}
	}
	return b
}

// next folds what the session decides by itself, and gives the calls that got a hold.
func (b *bench) next() (granted []belay.CallID) {
	b.t.Helper()
	for {
		rd := b.d.Next(time.Time{})
		if len(rd.Decided) == 0 {
			return granted
		}
		for _, f := range rd.Decided {
			b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
		}
		for _, s := range rd.Sends {
			granted = append(granted, s.Command.(belay.GiveGrant).Call)
		}
	}
}

func (b *bench) asks(thread belay.ThreadID, call belay.CallID, whole bool) {
	b.t.Helper()
	b.do(belay.AskGrants{Thread: thread, Calls: []belay.Hold{{Call: call, Whole: whole}}})
}

// Guarantee: E22.
func TestHoldsAreGrantedInTheOrderTheyWereAskedFor(t *testing.T) {
	b := order(t)
	want := func(what string, calls ...belay.CallID) {
		t.Helper()
		if got := b.next(); !slices.Equal(got, calls) {
			t.Fatalf("%s: granted %v, want %v", what, got, calls)
		}
	}
	b.asks("thr_2", "edit_2", false)
	want("as long as nobody knows what the first thread is doing")
	b.do(belay.AskGrants{Thread: "thr_1", Joined: true, Calls: []belay.Hold{{Call: "exec_1", Whole: true}}})
	want("while a program runs that began before")
	b.do(belay.ReturnGrant{Thread: "thr_1", Call: "exec_1"})
	want("it has ended", "edit_2")
	b.asks("thr_3", "edit_3", false)
	want("files go together", "edit_3")
	b.asks("thr_1", "exec_1b", true)
	b.asks("thr_3", "edit_3b", false)
	want("a program waits, and isn't overtaken")
	b.do(belay.ReturnGrant{Thread: "thr_2", Call: "edit_2"})
	want("one is left")
	b.do(belay.ReturnGrant{Thread: "thr_3", Call: "edit_3"})
	want("none is left", "exec_1b")
	b.do(belay.ReturnGrant{Thread: "thr_1", Call: "exec_1b"})
	want("the program has ended", "edit_3b")
	b.asks("thr_1", "exec_1c", true)
	b.do(belay.ReturnGrant{Thread: "thr_1", Call: "exec_1c"})
	b.do(belay.ReturnGrant{Thread: "thr_1", Call: "never"})
	b.do(belay.ReturnGrant{Thread: "thr_3", Call: "edit_3b"})
	want("a wish was taken back")
	if len(b.d.s.Holds) != 0 || len(b.d.s.Awaited) != 0 {
		t.Errorf("left: %+v %v", b.d.s.Holds, b.d.s.Awaited)
	}
}
