package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/tool"
)

// A conversation of four turns: calls side by side, a failed turn, a nudge,
// texts too long for a fact.
const longTalk = `name: t
steps:
  - text: looking
    calls: [{tool: look, args: {n: 1}}, {tool: look, args: {n: 2}}]
  - calls: [{tool: complete_task, args: {summary: done one}}]
  - text: nothing to do
  - calls: [{tool: complete_task, args: {summary: done two}}]
  - when: {contains: question 3}
    fault: {kind: auth, message: who are you}
  - calls: [{tool: look, args: {n: 3}}]
  - calls: [{tool: complete_task, args: {summary: done four}}]
`

func looking() tool.Tool {
	return pure("look", func(_ context.Context, c tool.Call) (tool.Result, error) {
		if bytes.Contains(c.Args, []byte("3")) {
			return tool.Result{Text: strings.Repeat("long text ", 2000)}, nil
		}
		return tool.Result{Text: "saw " + string(c.Args)}, nil
	})
}

// say gives a session that exists another turn and plays it.
func (b *bench) say(session belay.SessionID, thread belay.ThreadID, n int) {
	b.t.Helper()
	o := belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_say_%s_%d", session, n)), Principal: "user:ann", Session: session, Stream: session.Stream(),
		Command: belay.SubmitWork{Thread: thread, Task: belay.TaskID(fmt.Sprintf("task_%s_%d", session, n)), Turn: belay.TurnID(fmt.Sprintf("turn_%d", n)),
			Text: belay.Content{Text: fmt.Sprintf("question %d", n)}, Rules: b.ref}}
	if err := b.h.Enqueue(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	if err := b.e.Session(b.t.Context(), session, nil); err != nil {
		b.t.Fatal(err)
	}
}

// talk plays four turns in session 1.
func talk(t *testing.T) *bench {
	b := newBench(t, longTalk, nil, looking())
	b.run()
	for n := 2; n <= 4; n++ {
		b.say(sess, thr, n)
	}
	return b
}

// fork makes session n of a turn of a thread.
func (b *bench) fork(n int, of belay.ThreadID, turn string) belay.ThreadID {
	b.t.Helper()
	past, err := history.ReadPast(b.t.Context(), b.h, of)
	if err != nil {
		b.t.Fatal(err)
	}
	at, err := past.Find(turn)
	if err != nil {
		b.t.Fatal(err)
	}
	begin, err := past.Fork(b.t.Context(), at, tokens.Profile{})
	if err != nil {
		b.t.Fatal(err)
	}
	counted := int64(0)
	for said, err := range history.ReadBase(b.t.Context(), b.h, begin.Base) {
		if err != nil {
			b.t.Fatal(err)
		}
		counted += tokens.Message(said.Message)
	}
	if begin.Tokens != counted {
		b.t.Errorf("a fork at turn %s begins with %d tokens, and says %d", turn, counted, begin.Tokens)
	}
	id, thread := belay.SessionID(fmt.Sprintf("sess_fork_%d", n)), belay.ThreadID(fmt.Sprintf("thr_fork_%d", n))
	if _, err := b.e.Submit(b.t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_fork_%d", n)), Principal: "user:ann", Session: id, Stream: id.Stream(),
		Command: belay.CreateSession{Workspace: "/ws", Settings: b.settings, Thread: thread, Begin: &begin}}); err != nil {
		b.t.Fatal(err)
	}
	return thread
}

// said is a thread's conversation as a model sees it now.
func (b *bench) said(id belay.ThreadID) []belay.Message {
	b.t.Helper()
	msgs, err := history.Messages(b.t.Context(), b.h, id.Stream(), 1, math.MaxInt64)
	if err != nil {
		b.t.Fatal(err)
	}
	return msgs
}

// TestAForkSaysWhatItsParentSaid: the conversation of a fork at any turn is the
// parent's up to that turn's end, also for a fork of a fork, and no call is
// without its answer.
// Guarantee: E40.
func TestAForkSaysWhatItsParentSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := talk(t)
		whole := b.said(thr)
		past, err := history.ReadPast(t.Context(), b.h, thr)
		if err != nil || len(past.Turns) != 4 {
			t.Fatalf("turns %+v, %v", past.Turns, err)
		}
		all := b.fork(100, thr, "4")
		if d := cmp.Diff(whole, b.said(all)); d != "" {
			t.Errorf("a fork of everything (-parent +fork):\n%s", d)
		}
		n := 0
		for turn := 0; turn <= 4; turn++ {
			first := b.said(b.fork(turn, thr, fmt.Sprint(turn)))
			second := b.said(b.fork(10+turn, all, fmt.Sprint(turn)))
			if d := cmp.Diff(first, second); d != "" {
				t.Errorf("at turn %d of a fork (-of the parent +of the fork):\n%s", turn, d)
			}
			if len(first) < n || turn > 0 && len(first) == n {
				t.Errorf("at turn %d: %d messages after %d", turn, len(first), n)
			}
			n = len(first)
			if d := cmp.Diff(whole[:n], first); d != "" && n > 0 {
				t.Errorf("at turn %d (-parent +fork):\n%s", turn, d)
			}
			paired(t, first)
		}
	})
}

// paired reports whether every call is answered by the message after it.
func paired(t *testing.T, msgs []belay.Message) {
	t.Helper()
	for i, m := range msgs {
		for _, p := range m.Parts {
			if p.Call == nil {
				continue
			}
			if i+1 == len(msgs) || msgs[i+1].Role != belay.RoleTool || !answers(msgs[i+1], p.Call.ID) {
				t.Errorf("message %d: call %s has no answer", i, p.Call.ID)
			}
		}
	}
}

func answers(m belay.Message, id belay.CallID) bool {
	for _, p := range m.Parts {
		if p.Result != nil && p.Result.ID == id {
			return true
		}
	}
	return false
}

// A fork needs nothing of its parent: its history is whole in what it names,
// and copying on makes no second copy.
// Guarantee: E40.
func TestAForkNamesItsWholeHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := talk(t)
		one := b.fork(1, thr, "4")
		var lines []belay.Said
		for s, err := range history.ReadBase(t.Context(), b.h, b.begin(one).Base) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, s)
		}
		if whole := b.said(thr); len(lines) != len(whole) || lines[0].Turn != "turn_1" || lines[len(lines)-1].Turn != "turn_4" {
			t.Errorf("%d lines of %d messages, turns %s to %s", len(lines), len(whole), lines[0].Turn, lines[len(lines)-1].Turn)
		}
		for _, s := range lines {
			for _, p := range s.Parts {
				if p.Result != nil && strings.HasPrefix(p.Result.Text, "long") && len(p.Result.Text) < 15000 {
					t.Errorf("a long result was cut to %d bytes", len(p.Result.Text))
				}
			}
		}
		b.say("sess_fork_1", one, 5)
		two := b.begin(b.fork(2, one, "5"))
		if len(two.Base) != 2 || two.Base[0] != b.begin(one).Base[0] {
			t.Errorf("a fork of a fork begins with %v", two.Base)
		}
		of := one
		for n := range belay.MaxBase + 3 { // each adds a piece, until they are joined
			of = b.fork(200+n, of, fmt.Sprint(5+n))
			if got := b.begin(of); len(got.Base) > belay.MaxBase {
				t.Fatalf("%d pieces", len(got.Base))
			}
			b.say(belay.SessionID(fmt.Sprint("sess_fork_", 200+n)), of, 6+n)
		}
		paired(t, b.said(of))
	})
}

func (b *bench) begin(id belay.ThreadID) belay.Beginning {
	b.t.Helper()
	for e, err := range b.h.Read(b.t.Context(), id.Stream(), 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		return e.Data.(event.ThreadStarted).Beginning
	}
	b.t.Fatalf("%s has no fact", id)
	return belay.Beginning{}
}

// TestAForkInTheMiddleKeepsWholeSteps: of a turn that waits for a person only
// the steps that ended are copied, and the model is told.
// Guarantee: E40.
func TestAForkInTheMiddleKeepsWholeSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := "name: t\nsteps:\n  - calls: [{tool: look, args: {n: 1}}]\n  - text: now\n    calls: [{tool: look, args: {n: 2}}, {tool: change, args: {}}]\n" + done
		change := fn{tool.Spec{Name: "change", Doc: "change", Input: noArgs, Effect: belay.AtMostOnce, Access: belay.Write}, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Text: "changed"}, nil
		}}
		b := newBench(t, script, func(s *belay.Settings) { s.Approvals = belay.ApprovalsWait }, looking(), change)
		b.dropGrants()
		b.run()
		msgs := b.said(b.fork(1, thr, "1"))
		raw, _ := json.Marshal(msgs)
		if len(msgs) != 4 || !strings.Contains(string(raw), "in the middle of that turn") || strings.Contains(string(raw), `"now"`) {
			t.Errorf("copied %s", raw)
		}
		paired(t, msgs)

		b = newBench(t, "name: t\nsteps:\n  - calls: [{tool: change, args: {}}]\n"+done, func(s *belay.Settings) { s.Approvals = belay.ApprovalsWait }, change)
		b.dropGrants()
		b.run()
		past, err := history.ReadPast(t.Context(), b.h, thr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := past.Fork(t.Context(), past.Turns[0], tokens.Profile{}); belay.CodeOf(err) != belay.CodeBadState || !strings.Contains(err.Error(), "turn 1 hasn't ended, and none of its steps has") {
			t.Errorf("in the first step: %v", err)
		}
	})
}
