package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// more submits another turn to session 1.
func (b *bench) more(turn string, mode belay.QueueMode) {
	b.t.Helper()
	o := belay.Order{ID: belay.CommandID("cmd_" + turn), Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: belay.SubmitWork{
		Thread: thr, Task: belay.TaskID("task_" + turn), Turn: belay.TurnID(turn), Text: belay.Content{Text: "do " + turn}, Rules: b.ref, Queue: mode}}
	if _, err := b.e.Submit(b.t.Context(), o); err != nil {
		b.t.Error(err)
	}
}

// texts are what persons said in the last request, in order.
func (b *bench) texts() (out []string) {
	b.t.Helper()
	var msgs []belay.Message
	if err := json.Unmarshal([]byte(b.asked[len(b.asked)-1]), &msgs); err != nil {
		b.t.Fatal(err)
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if m.Role == belay.RoleUser && p.Text != "" {
				out = append(out, p.Text)
			}
		}
	}
	return out
}

// TestASteeringMessageReachesTheRunningTurn: it is in the next request, behind
// the results of the calls, and its task ends with the turn.
// Guarantee: V21.
func TestASteeringMessageReachesTheRunningTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, let := make(chan struct{}), make(chan struct{})
		slow := fn{tool.Spec{Name: "slow", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce, Access: belay.Write}, func(context.Context, tool.Call) (tool.Result, error) {
			close(begun) // a second time would panic
			<-let
			return tool.Result{Text: "slept"}, nil
		}}
		b := newBench(t, "steps:\n  - calls:\n      - {tool: slow, args: {}}\n      - {tool: slow, args: {n: 2}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n", nil, slow)
		go func() {
			<-begun
			b.more("turn_2", belay.QueueSteer)
			synctest.Wait() // session and task have passed it on
			close(let)
		}()
		log := b.run()
		if got := fmt.Sprint(b.texts()); got != "[go do turn_2]" {
			t.Errorf("the model was told %s", got)
		}
		if failed := find[event.ToolFailed](log); len(failed) != 1 || failed[0].Problem.Code != "STEERED" {
			t.Errorf("the call that hadn't begun ended as %+v", failed)
		}
		if ends := find[event.TurnCompleted](log); len(ends) != 2 || len(find[event.TurnStarted](log)) != 1 {
			t.Errorf("ends %+v", ends)
		}
		for _, task := range []belay.TaskID{theJob, "task_turn_2"} {
			for ev, err := range b.h.Read(t.Context(), task.Stream(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Type() == "task.completed" {
					task = ""
				}
			}
			if task != "" {
				t.Errorf("%s didn't complete", task)
			}
		}
		paired(t, b.said(thr))
	})
}

// TestCollectedMessagesAreOneTurn: what came together is asked together, once it
// is quiet; nobody need be there while it waits.
// Guarantee: V22.
func TestCollectedMessagesAreOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "steps:\n  - calls:\n      - {tool: complete_task, args: {summary: One.}}\n  - calls:\n      - {tool: complete_task, args: {summary: Two.}}\n", nil)
		b.run()
		for i := range 3 {
			b.more(fmt.Sprint("turn_c", i), belay.QueueCollect)
			time.Sleep(300 * time.Millisecond) //nolint // the time of synctest
		}
		begun := time.Now()
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 200*time.Millisecond {
			t.Errorf("it began %s later, 200ms before it was quiet for half a second", took)
		}
		if got := fmt.Sprint(b.texts()); got != "[go do turn_c0 do turn_c1 do turn_c2]" {
			t.Errorf("the model was told %s", got)
		}
		if n := len(find[event.TurnStarted](b.log())); n != 2 {
			t.Errorf("%d turns began", n)
		}
	})
}

// TestTheModelIsToldWhatWasDropped: the list stands before the next turn.
// Guarantee: V22.
func TestTheModelIsToldWhatWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, let := make(chan struct{}), make(chan struct{})
		slow := fn{tool.Spec{Name: "slow", Doc: "d", Input: noArgs, Effect: belay.Pure, ReadOnly: true}, func(context.Context, tool.Call) (tool.Result, error) {
			close(begun)
			<-let
			return tool.Result{Text: "slept"}, nil
		}}
		b := newBench(t, "steps:\n  - calls:\n      - {tool: slow, args: {}}\n  - calls:\n      - {tool: complete_task, args: {summary: One.}}\n  - calls:\n      - {tool: complete_task, args: {summary: Two.}}\n",
			func(s *belay.Settings) { s.Queue = belay.Queueing{Cap: 1, Drop: belay.DropSummarise} }, slow)
		go func() {
			<-begun
			for i := range 3 {
				b.more(fmt.Sprint("turn_d", i), "")
				synctest.Wait() // session and task have passed it on
			}
			close(let)
		}()
		b.run()
		texts := b.texts()
		if n := len(texts); n != 3 || texts[0] != "go" || texts[2] != "do turn_d2" || !strings.HasSuffix(texts[1], ":\n- do turn_d0\n- do turn_d1") {
			t.Errorf("the model was told %q", texts)
		}
	})
}

// TestATurnInPlaceOfAnotherFindsWhatWasBefore: the file and the conversation are
// what they were before the cancelled turn when the other one begins, wherever
// the process dies in between.
// Guarantee: V23.
func TestATurnInPlaceOfAnotherFindsWhatWasBefore(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			begun := make(chan struct{}, 1)
			slow := fn{tool.Spec{Name: "slow", Doc: "d", Input: noArgs, Effect: belay.Pure, ReadOnly: true}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				select {
				case begun <- struct{}{}:
				default: // it ran before, and runs again
				}
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}}
			b := newBench(t, "steps:\n  - calls:\n      - {tool: write, args: {path: a.txt, content: \"after\\n\"}}\n  - calls:\n      - {tool: slow, args: {}}\n  - calls:\n      - {tool: complete_task, args: {summary: Other.}}\n",
				nil, append(file.Tools(), slow)...)
			b.changeRules(func(r *thread.Rules) { r.Workspace = dir })
			if err := b.h.Enqueue(t.Context(), belay.Order{ID: "cmd_c", Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: belay.CreateSession{Workspace: dir, Settings: b.settings}},
				belay.Order{ID: "cmd_s", Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: belay.SubmitWork{Thread: thr, Task: theJob, Turn: "turn_1", Text: belay.Content{Text: "go"}, Rules: b.ref}}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-begun
				b.more("turn_2", belay.QueueRollback)
				if dies { // perhaps before the thread knows of it
					cancel(errPower)
				}
			}()
			err := b.e.Session(ctx, sess, nil)
			if dies {
				err = b.e.Session(t.Context(), sess, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			log := b.log()
			var ops []string // the scripted model says the same again
			for _, c := range find[event.ArtifactChanged](log) {
				ops = append(ops, c.Op)
			}
			if got := fmt.Sprint(ops); got != "[created removed created]" {
				t.Errorf("dies %v: the file was %s", dies, got)
			}
			if got := fmt.Sprint(b.texts()); got != "[do turn_2]" {
				t.Errorf("the model was told %s", got)
			}
			if back := find[event.HistoryRollbackCompleted](log); len(back) != 1 || back[0].Restored != 1 {
				t.Errorf("went back %+v", back)
			}
			cancel(nil)
		})
	}
}
