package thread

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// heavy is text that takes six bytes a character inside a fact.
func heavy(n int) string { return strings.Repeat("\x01", n) }

// long has the arguments of a call in a blob, as the engine keeps long ones.
func (w *world) long(name string, args any) event.ModelCall {
	w.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	ref := belay.Ref{Digest: belay.DigestOf(raw), Size: int64(len(raw))}
	w.blobs[ref.Digest] = raw
	return event.ModelCall{Name: name, ArgsRef: &ref, ArgsHash: ref.Digest}
}

// answer answers the request in flight with calls.
func (w *world) answer(calls ...event.ModelCall) {
	for i := range calls {
		calls[i].ID = belay.CallID(belay.DeriveID("call", stream, w.d.s.Seq+1, i))
	}
	w.add([]core.Fact{w.d.s.fact(event.ModelCompleted{Attempt: 1, Calls: calls})}, nil)
	w.settle()
}

// begin is a world in which a turn waits for its first answer.
func begin(t *testing.T, rules string) *world {
	w := newWorld(t)
	if rules != "" {
		w.do("rules " + rules)
	}
	w.do("open")
	w.do("submit t1")
	return w
}

// A fact of a thread fits into the log, however long what a model or a person
// says is.
func TestNoFactIsTooLong(t *testing.T) {
	t.Parallel()
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("dir/%s-%d.go", strings.Repeat("x", 100), i)
	}
	for name, run := range map[string]func(w *world){
		"a completion": func(w *world) {
			w.answer(w.long("complete_task", completion{
				Summary: heavy(20_000), NextSteps: heavy(20_000), Artifacts: append(many, heavy(20_000)), Output: json.RawMessage(`"` + strings.Repeat(`\u0001`, 20_000) + `"`)}))
		},
		"a completion in one piece": func(w *world) {
			args := json.RawMessage(`{"summary":"` + strings.Repeat(`\"`, 1500) + `","nextSteps":"` + strings.Repeat(`\n`, 1500) + `","artifacts":["` + strings.Repeat(`\\`, 1500) + `"],"output":["` + strings.Repeat(`","`, 700) + `"]}`)
			w.answer(event.ModelCall{Name: "complete_task", Args: args, ArgsHash: belay.DigestOf(args)})
		},
		"a question": func(w *world) {
			w.answer(w.long("ask_user", map[string]any{"question": heavy(20_000), "options": many}))
		},
		"a question in one piece": func(w *world) {
			args := json.RawMessage(`{"question":"` + strings.Repeat(`\u0001`, 2000) + `"}`)
			w.answer(event.ModelCall{Name: "ask_user", Args: args, ArgsHash: belay.DigestOf(args)})
		},
		"a question that is none": func(w *world) {
			args := json.RawMessage(`{"q":"` + strings.Repeat(`\u0001`, 2000) + `"}`)
			w.answer(event.ModelCall{Name: "ask_user", Args: args, ArgsHash: belay.DigestOf(args)})
		},
		"arguments that are asked about": func(w *world) {
			args := json.RawMessage(`{"command":"` + strings.Repeat(`\"`, 6000) + `"}`)
			w.answer(event.ModelCall{Name: "exec", Args: args, ArgsHash: belay.DigestOf(args)})
			w.do("deny act1 " + heavy(600))
		},
		"an answer": func(w *world) {
			w.do(`model ask_user{"question":"which?"}`)
			w.do("answer act1 " + heavy(3000))
			if w.d.s.Turn.Step.Calls[0].Phase == CallOver {
				w.t.Error("an answer that is too long is taken")
			}
			w.do("answer act1 " + heavy(600))
		},
		"the reason of an interrupt": func(w *world) {
			w.do("submit t2")
			w.do("interrupt " + heavy(3000) + " turn=t2")
			w.do("interrupt " + heavy(2400))
			w.add([]core.Fact{w.d.s.fact(event.ModelFailed{Attempt: 1, Partial: heavy(1300), Problem: event.Problem{Class: "cancelled"}})}, nil)
			w.settle()
		},
		"many failures": func(w *world) {
			var calls []event.ModelCall
			for i := range 48 {
				args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
				calls = append(calls, event.ModelCall{Name: fmt.Sprint(strings.Repeat("n", 120), i), Args: args, ArgsHash: belay.DigestOf(args)})
			}
			w.answer(calls...)
			w.do("deny act1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "")
			before := len(w.log)
			run(w)
			if len(w.log) < before+3 {
				t.Fatalf("hardly anything happened:\n%s", w.out.String())
			}
			for _, e := range w.log {
				raw, err := event.Encode(e.Data)
				if err != nil {
					t.Fatal(err)
				}
				if len(raw) > event.MaxPayload {
					t.Errorf("%s has %d bytes; at most %d are taken", e.Type(), len(raw), event.MaxPayload)
				}
			}
		})
	}
}

// What a model hands over is whole as long as the call's arguments are in the
// log themselves: there would be no other place to read it from.
func TestAnOutputOfShortArgumentsIsWhole(t *testing.T) {
	t.Parallel()
	out := `["` + strings.Repeat(`a","`, 480) + `"]`
	args := json.RawMessage(`{"summary":"done","output":` + out + `}`)
	if len(args) > 2<<10 || event.TextLen(out) <= maxSaid {
		t.Fatalf("%d bytes of arguments and %d of output show nothing", len(args), event.TextLen(out))
	}
	w := begin(t, "")
	w.answer(event.ModelCall{Name: "complete_task", Args: args, ArgsHash: belay.DigestOf(args)})
	done, ok := w.log[len(w.log)-1].Data.(event.TurnCompleted)
	if !ok || done.Output == nil || done.Output.Text != out {
		t.Fatalf("the turn ended with %+v", w.log[len(w.log)-1].Data)
	}
}

// A turn of a task is never refused: its task waits for an end, so it gets one.
func TestATurnTooManyEndsAndItsTaskIsTold(t *testing.T) {
	t.Parallel()
	w := begin(t, "")
	for i := range belay.MaxQueued {
		w.do(fmt.Sprint("submit q", i))
	}
	order := belay.Order{Principal: "user:ann", Session: "sess_1", Stream: stream}
	order.Command = belay.SubmitTurn{Turn: "t_plain", Kind: belay.TurnUser, Rules: w.keepRules()}
	if facts, _, err := w.d.Handle(order, w.now); belay.CodeOf(err) != belay.CodeBusy || len(facts) > 0 {
		t.Errorf("a turn without a task: %v, %v; want it refused as busy", facts, err)
	}
	order.Command = belay.SubmitTurn{Turn: "t_over", Kind: belay.TurnUser, Task: "task_9", Run: "run_9", Rules: w.keepRules()}
	facts, sends, err := w.d.Handle(order, w.now)
	if err != nil || len(facts) != 2 || len(sends) != 1 {
		t.Fatalf("a turn of a task: %v, %v, %v", facts, sends, err)
	}
	end, ok := facts[1].Data.(event.TurnFailed)
	if !ok || end.Outcome != belay.Failed || end.Code != "BUSY" || facts[1].IDs.Turn != "t_over" || facts[1].IDs.Task != "task_9" {
		t.Errorf("it ends with %+v about %+v", facts[1].Data, facts[1].IDs)
	}
	told, ok := sends[0].Command.(belay.EndAttempt)
	if !ok || sends[0].To != "task/task_9" || told.Run != "run_9" || told.Turn != "t_over" || told.Outcome != belay.Failed {
		t.Errorf("the task is told %+v at %s", sends[0].Command, sends[0].To)
	}
	w.add(facts, sends)
	w.settle()
	if n := len(w.d.s.Queue); n != belay.MaxQueued || w.d.s.Turn.Turn != "t1" {
		t.Errorf("%d turns wait behind %s", n, w.d.s.Turn.Turn)
	}
	if again, _, err := w.d.Handle(order, w.now); len(again) > 0 || err != nil {
		t.Errorf("the same turn again gives %v, %v", again, err)
	}
}

// A person's no isn't undone by laxer rules that come before the call is closed.
func TestANoStandsUnderLaxerRules(t *testing.T) {
	t.Parallel()
	w := begin(t, "")
	w.do(`model edit{"path":"a"}`)
	c := *w.d.s.Turn.Step.Calls[0]
	w.handle(belay.RespondAction{Action: c.Ask.Action, Decision: "deny", Message: "not this file"})
	w.do("rules mode=accept_edits")
	w.do("resume")
	var end event.ToolFailed
	for _, e := range w.log {
		switch p := e.Data.(type) {
		case event.ToolStarted:
			t.Fatal("the call runs although a person denied it")
		case event.ToolFailed:
			end = p
		}
	}
	if end.Problem.Class != "denied" || !strings.Contains(end.Problem.Message, "not this file") {
		t.Errorf("the call ended with %+v", end.Problem)
	}
}

// A task whose turn id the thread has used before is told so: it would wait for ever.
func TestAUsedTurnIDEndsTheAttempt(t *testing.T) {
	w := newWorld(t)
	w.do("open")
	w.do("submit t1")
	order := func(task belay.TaskID, run belay.RunID) belay.Order {
		return belay.Order{ID: "cmd_2", Principal: "stream:x", Session: "sess_1", Stream: stream,
			Command: belay.SubmitTurn{Turn: "t1", Kind: belay.TurnUser, Task: task, Run: run, Rules: w.keepRules()}}
	}
	if facts, sends, err := w.d.Handle(order("task_1", "run_1"), w.now); len(facts)+len(sends) != 0 || err != nil {
		t.Errorf("the same turn told again: %v %v %v", facts, sends, err)
	}
	_, sends, err := w.d.Handle(order("task_2", "run_2"), w.now)
	if err != nil || len(sends) != 1 {
		t.Fatalf("another attempt: %v %v", sends, err)
	}
	end, ok := sends[0].Command.(belay.EndAttempt)
	if !ok || sends[0].To != "task/task_2" || end.Run != "run_2" || end.Outcome != belay.Failed {
		t.Errorf("sent %+v", sends[0])
	}
}
