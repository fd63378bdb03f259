package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// What lists show of a session changes by facts; what is so already is none.
func TestASessionIsLabelled(t *testing.T) {
	yes, no := true, false
	b := newBench(t)
	b.create()
	for _, c := range []struct {
		do   belay.LabelSession
		want []event.Payload
	}{
		{belay.LabelSession{Title: " other "}, []event.Payload{event.SessionUpdated{Title: "other"}}},
		{belay.LabelSession{Title: "other"}, nil},
		{belay.LabelSession{Tag: []string{"b", "a", "b"}}, []event.Payload{event.SessionUpdated{Tag: []string{"b", "a"}}}},
		{belay.LabelSession{Tag: []string{"a"}, Untag: []string{"c"}}, nil},
		{belay.LabelSession{Untag: []string{"b"}}, []event.Payload{event.SessionUpdated{Untag: []string{"b"}}}},
		{belay.LabelSession{Archived: &no}, nil},
		{belay.LabelSession{Archived: &yes}, []event.Payload{event.SessionUpdated{Archived: &yes}}},
		{belay.LabelSession{Archived: &yes}, nil},
	} {
		facts, _ := b.do(c.do)
		if d := cmp.Diff(c.want, facts, values); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.do, d)
		}
	}
	if s := b.d.s; s.Title != "other" || fmt.Sprint(s.Tags) != "[a]" || !s.Archived {
		t.Errorf("state %+v", s)
	}
	b.do(belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1"})
	if b.d.s.Archived {
		t.Error("it is worked on and still archived")
	}
}

func TestWhatIsNoLabel(t *testing.T) {
	var many []string
	for i := range maxTags + 1 {
		many = append(many, fmt.Sprint("t", i))
	}
	for _, c := range []struct {
		do   belay.LabelSession
		want belay.Code
	}{
		{belay.LabelSession{Tag: []string{""}}, belay.CodeUsage},
		{belay.LabelSession{Tag: []string{"two words"}}, belay.CodeUsage},
		{belay.LabelSession{Tag: []string{"fine", "-x"}}, belay.CodeUsage},
		{belay.LabelSession{Tag: []string{strings.Repeat("x", maxTag+1)}}, belay.CodeUsage},
		{belay.LabelSession{Tag: many}, belay.CodeTooLarge},
		{belay.LabelSession{Title: strings.Repeat("x", maxTitle+1)}, belay.CodeTooLarge},
	} {
		b := newBench(t)
		b.create()
		if facts, _, err := b.try(c.do); facts != nil || belay.CodeOf(err) != c.want {
			t.Errorf("%.60v: %v, %v; want code %s", c.do, facts, err, c.want)
		}
	}
	if _, _, err := newBench(t).try(belay.LabelSession{Title: "x"}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("no session: %v", err)
	}
}

// A session that begins with a history opens its thread with it, in the same
// decision.
func TestASessionBeginsWithAHistory(t *testing.T) {
	b := newBench(t)
	begin := &belay.Beginning{Base: []belay.Ref{rules}, ForkedFrom: &belay.Fork{Session: "sess_0", Thread: "thr_0", Turn: "turn_0"}}
	facts, sends := b.do(belay.CreateSession{Workspace: "/ws", Thread: "thr_1", Begin: begin, Pins: []belay.PinContext{{Pin: "p1", Text: "keep it"}}})
	if len(facts) != 1 || len(sends) != 1 || fmt.Sprint(b.d.s.Threads) != "[thr_1]" {
		t.Fatalf("facts %v, sends %v, threads %v", facts, sends, b.d.s.Threads)
	}
	if open, ok := sends[0].Command.(belay.OpenThread); !ok || sends[0].To != "thread/thr_1" || open.Begin != begin || len(open.Pins) != 1 {
		t.Errorf("sent %+v", sends[0])
	}
	if _, sends := b.do(belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1"}); len(sends) != 1 {
		t.Errorf("work for a thread that is open sends %v", sends)
	}
}
