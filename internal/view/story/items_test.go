package story_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/view/story"
)

var (
	t0   = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	ids  = belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Step: "step_1"}
	call = belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Step: "step_1", Call: "call_1", Action: "act_1"}
)

type fact struct {
	ids  belay.IDs
	data event.Payload
}

func told(facts []fact, from int) []*story.Item {
	var f story.Items
	for i := from; i < len(facts); i++ {
		f.Apply(event.Envelope{Stream: "thread/thr_1", Seq: int64(i + 1), Time: t0.Add(time.Duration(i) * time.Second), IDs: facts[i].ids, Data: facts[i].data})
	}
	return f.List()
}

// work is a turn whose call is asked about, runs and fails for good.
func work() []fact {
	return []fact{
		{ids, event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "do it"}}},
		{ids, event.ModelRequested{Attempt: 1, Model: "m"}},
		{ids, event.ModelDelta{Attempt: 1, Text: "I "}},
		{ids, event.ModelFailed{Attempt: 1, Problem: event.Problem{Message: "broken"}, RetryAt: t0}},
		{ids, event.ModelRequested{Attempt: 2, Model: "m"}},
		{ids, event.ModelDelta{Attempt: 2, Text: "I do "}},
		{ids, event.ModelDelta{Attempt: 2, Offset: 5, Text: "it"}},
		{ids, event.ReasoningSummary{Attempt: 2, Text: belay.Content{Text: "hm"}}},
		{ids, event.ModelCompleted{Attempt: 2, Text: belay.Content{Text: "I do it"}, Calls: []event.ModelCall{{ID: "call_1", Name: "exec", Args: json.RawMessage(`{"c":1}`)}}}},
		{call, event.ActionRequired{Kind: "permission", Prompt: belay.Content{Text: "may it?"}, Tool: "exec"}},
		{call, event.ActionResolved{Decision: "allow", By: "user:ann"}},
		{call, event.ToolStarted{Name: "exec", Attempt: 1}},
		{call, event.ToolFailed{Name: "exec", Attempt: 1, Problem: event.Problem{Class: "timeout", Message: "too long"}, Final: true}},
		{call, event.ArtifactChanged{Kind: "file", Path: "a.go", Op: "changed"}},
		{ids, event.ArtifactChanged{Kind: "plan", Plan: []event.PlanItem{{ID: "1", Text: "x"}}}},
		{ids, event.RunStatus{Phase: "takeover", Reason: "gone"}},
		{ids, event.TurnFailed{Outcome: belay.Failed, Reason: "no luck"}},
	}
}

func TestATurnIsTold(t *testing.T) {
	facts := work()
	want := [][]string{ // after so many facts: kind, state, status, text or detail
		1:  {"user_message completed  do it"},
		3:  {"agent_message updated running I "},
		4:  {"agent_message updated failed broken"},
		7:  {"agent_message updated running I do it"},
		9:  {"agent_message completed completed I do it", "tool_call started requested "},
		10: {"tool_call updated waiting ", "question started waiting may it?"},
		11: {"tool_call updated waiting ", "question completed allow by user:ann"},
		12: {"tool_call updated running "},
		13: {"tool_call completed timeout too long"},
		17: {"file_change completed changed a.go", "plan completed  ", "notice completed takeover gone", "turn_end completed failed no luck"},
	}
	for n, lines := range want {
		var got []string
		for _, it := range told(facts[:n], 0) {
			text := it.Text
			if it.Detail != "" {
				text = it.Detail
			}
			if it.Kind == story.ItemFileChange {
				text = it.Name
			}
			got = append(got, strings.Join([]string{it.Kind, it.State, it.Status, text}, " "))
		}
		all := strings.Join(got, "\n")
		for _, line := range lines {
			if !strings.Contains(all, line) {
				t.Errorf("after %d facts there is no %q in\n%s", n, line, all)
			}
		}
	}
}

// TestACommandThatFailedSaysSo: the call gave a result, and its item the exit code.
func TestACommandThatFailedSaysSo(t *testing.T) {
	for exit, want := range map[int]string{0: "completed", 3: "exit 3"} {
		items := told([]fact{{call, event.ToolStarted{Name: "exec", Attempt: 1}}, {call, event.ToolResult{Name: "exec", Attempt: 1, Exit: exit}}}, 0)
		if it := items[0]; it.State != "completed" || it.Status != want {
			t.Errorf("exit %d: %s %s, want %s", exit, it.State, it.Status, want)
		}
	}
}

// TestItemsKeepTheirIDs: whatever part of a history is told, an item has the id
// it has in the whole, and is as far as it is there when the part goes to the end.
func TestItemsKeepTheirIDs(t *testing.T) {
	facts := work()
	whole := map[string]*story.Item{}
	for _, it := range told(facts, 0) {
		whole[it.Kind+it.ID] = it
		if it.Begun || it.StartedAt.IsZero() {
			t.Errorf("%s %s began before its beginning", it.Kind, it.ID)
		}
	}
	for from := range facts {
		for _, it := range told(facts, from) {
			w := whole[it.Kind+it.ID]
			switch {
			case w == nil:
				t.Errorf("from %d: %s %s isn't in the whole", from, it.Kind, it.ID)
			case it.Last != w.Last, it.State != w.State && !it.Begun, it.Begun == (it.First == w.First):
				t.Errorf("from %d: %+v, in the whole %+v", from, it, w)
			}
		}
	}
}

// TestEveryFactCanBeTold folds what releases left behind, and every type alone.
func TestEveryFactCanBeTold(t *testing.T) {
	for i, log := range eventtest.Logs(t, "../../engine/testdata/golden/*.jsonl") {
		var f, again story.Items
		for _, e := range log {
			f.Apply(e)
			again.Apply(e)
		}
		if len(f.List()) == 0 || !reflect.DeepEqual(f.List(), again.List()) {
			t.Errorf("log %d: %d items", i, len(f.List()))
		}
		for _, it := range f.List() {
			if it.ID == "" || it.Kind == "" || it.First == "" {
				t.Errorf("log %d: %+v", i, it)
			}
		}
	}
	for _, typ := range event.Types() {
		p, err := event.Decode(typ.Name, 0, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		told([]fact{{ids, p}, {call, p}}, 0)
	}
}

// TestACallSaysWhoDecided about it: a rule or a person; one that waited in vain, nobody.
func TestACallSaysWhoDecided(t *testing.T) {
	asks := fact{call, event.PermissionEvaluated{Decision: "ask", Source: "rule"}}
	for want, facts := range map[string][]fact{
		"rule":   {{call, event.PermissionEvaluated{Decision: "deny", Source: "rule"}}},
		"person": {asks, {call, event.PermissionResolved{Decision: "allow", By: "user:ann"}}},
		"":       {asks, {call, event.PermissionResolved{Decision: "deny", By: "deadline"}}},
	} {
		begun := []fact{{ids, event.ModelCompleted{Attempt: 1, Calls: []event.ModelCall{{ID: "call_1", Name: "exec"}}}}}
		for from := range 2 { // also by a window that begins behind the call
			got := told(append(begun, append(facts, fact{call, event.ToolStarted{Name: "exec", Attempt: 1}})...), from)
			if i := got[len(got)-1]; i.Kind != story.ItemToolCall || i.Decided != want || i.Begun != (from == 1) {
				t.Errorf("decided by %q, from %d: %+v", want, from, i)
			}
		}
	}
}
