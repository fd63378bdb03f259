package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// What people said in a conversation that was brought in stays as what they said here:
// the last five texts, and no note of the runtime.
func TestPinsOfABase(t *testing.T) {
	st := memory.Open(memory.Options{})
	defer st.Close()
	var msgs []belay.Message
	for n := range 7 {
		msgs = append(msgs, belay.Text(belay.RoleUser, fmt.Sprint("wish ", n)), belay.Text(belay.RoleAssistant, "done"), belay.Text(belay.RoleUser, Note("a word of the runtime")))
	}
	base, _, err := WriteBase(t.Context(), st, tokens.Profile{}, anonymous(msgs))
	if err != nil {
		t.Fatal(err)
	}
	f := pinFold{texts: map[belay.TurnID]belay.Content{}, calls: map[belay.CallID]event.ModelCall{}, changes: map[belay.CallID]bool{}}
	apply := func(ev event.Envelope) {
		t.Helper()
		if err := f.apply(t.Context(), st, ev); err != nil {
			t.Fatal(err)
		}
	}
	apply(event.Envelope{Seq: 1, Data: event.ThreadStarted{Beginning: belay.Beginning{Base: base}}})
	text := func() (out []string) {
		for _, p := range f.pins {
			out = append(out, p.Kind+": "+p.Text)
		}
		return out
	}
	if got := strings.Join(text(), ", "); got != "said: wish 2, said: wish 3, said: wish 4, said: wish 5, said: wish 6" {
		t.Error(got)
	}
	ids := belay.IDs{Turn: "turn_1"}
	apply(event.Envelope{Seq: 2, IDs: ids, Data: event.TurnSubmitted{Text: belay.Content{Text: "one more"}}})
	apply(event.Envelope{Seq: 3, IDs: ids, Data: event.TurnStarted{}})
	call := belay.IDs{Turn: "turn_1", Call: "call_1"}
	apply(event.Envelope{Seq: 4, IDs: ids, Data: event.ModelCompleted{Calls: []event.ModelCall{{ID: "call_1", Name: "edit", Args: []byte(`{"path":"a"}`)}}}})
	apply(event.Envelope{Seq: 5, IDs: call, Data: event.PermissionResolved{Decision: "deny", By: "user:ann", Message: "not that file"}})
	apply(event.Envelope{Seq: 6, IDs: call, Data: event.ToolStarted{Effect: string(belay.Recoverable)}})
	apply(event.Envelope{Seq: 7, IDs: call, Data: event.ToolFailed{Final: true, Problem: event.Problem{Class: "lost", Code: "LOST"}}})
	want := "said: wish 3, said: wish 4, said: wish 5, said: wish 6, said: one more, denied: edit {\"path\":\"a\"}\ndenied by user:ann: not that file, lost: edit {\"path\":\"a\"}"
	if got := strings.Join(text(), ", "); got != want {
		t.Errorf("%s\nand not\n%s", got, want)
	}
}

// However little room there is, of each pin there is the beginning, and how to read the
// rest; a short one stays whole.
func TestEachPinHasItsBeginning(t *testing.T) {
	long := strings.Repeat("one more word, ", 2000)
	pins := []Pin{{PinSaid, "turn_1", long}, {PinSaid, "turn_2", long}, {PinPinned, "p1", "never touch main.go"}, {PinPinned, "p2", long}}
	for _, room := range []int64{0, 12, 4_500, 5_000} {
		fit, items, cut := Fit(pins, room, true)
		if len(fit) != 4 || len(items) != 4 || len(cut) != 3 || fit[2] != pins[2] {
			t.Fatalf("room %d: %d fit, %d are cut: %+v", room, len(fit), len(cut), cut)
		}
		sum := int64(0)
		for i, p := range fit {
			sum += items[i].Tokens
			if i != 2 && (!strings.HasPrefix(p.Text, long[:150]) || !strings.Contains(p.Text, fmt.Sprintf("context_read with source %q", p.ID))) {
				t.Errorf("room %d: %.300q", room, p.Text)
			}
		}
		if sum > room+4*150 {
			t.Errorf("room %d: %d tokens", room, sum)
		}
	}
}
