package story

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

var at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// say is facts of one session, in order.
func say(s *Stats, ids belay.IDs, facts ...event.Payload) {
	ids.Session = "sess_1"
	for _, p := range facts {
		s.Apply(event.Envelope{IDs: ids, Time: at, Data: p})
	}
}

func TestWhatIsCounted(t *testing.T) {
	s := NewStats()
	say(s, belay.IDs{Turn: "turn_1"}, event.TurnStarted{})
	say(s, belay.IDs{Turn: "turn_1", Step: "step_1"},
		event.ModelRequested{Attempt: 1, Provider: "p", Model: "m"},
		event.ModelFailed{Attempt: 1, Problem: event.Problem{Class: "rate_limited"}, RetryAt: at},
		event.ModelRequested{Attempt: 2, Provider: "p", Model: "m"},
		event.ModelCompleted{Attempt: 2, Usage: belay.Usage{Input: 10, Output: 2, Reported: true}, FirstMS: 5, TookMS: 9},
		event.CostRecorded{Cost: event.Cost{Amount: 700, Currency: "USD", Provider: "p", Model: "m"}})
	say(s, belay.IDs{Turn: "turn_1", Step: "step_2"}, event.ModelRequested{Attempt: 1, Provider: "p", Model: "m"}, event.ModelCompleted{Attempt: 1, FirstMS: 1, TookMS: 1},
		event.CostRecorded{Cost: event.Cost{Unpriced: true, Provider: "p", Model: "m"}},
		event.CostRecorded{Cost: event.Cost{Amount: 30, Provider: "p", Model: "m"}, Failed: true})
	say(s, belay.IDs{Turn: "turn_1", Call: "call_9"}, event.CostRecorded{Cost: event.Cost{Amount: 5, Provider: "p", Model: "m"}})
	say(s, belay.IDs{Turn: "turn_1", Call: "call_1"},
		event.PermissionEvaluated{Decision: "allow", Rule: "r", ReasonCode: "C"},
		event.ToolFailed{Name: "read", Attempt: 1, Problem: event.Problem{Class: "transient"}, RetryAt: at, Millis: 5},
		event.ToolResult{Name: "read", Attempt: 2, Millis: 7})
	say(s, belay.IDs{Turn: "turn_1", Call: "call_2", Action: "act_1"},
		event.PermissionEvaluated{Decision: "ask", Rule: "r", ReasonCode: "C"}, event.PermissionRequested{}, event.ActionResolved{Decision: "deny", By: "deadline"})
	say(s, belay.IDs{Turn: "turn_1", Call: "call_2"}, event.ToolFailed{Name: "exec", Attempt: 0, Final: true, Problem: event.Problem{Class: "denied"}})
	say(s, belay.IDs{Turn: "turn_1", Action: "act_2"}, event.ActionResolved{Decision: "answer"})
	say(s, belay.IDs{Turn: "turn_1"}, event.TurnCompleted{Stats: event.TurnStats{Steps: 1, ActiveMS: 30, Usage: belay.Usage{Input: 10, Output: 2, Reported: true}}})
	say(s, belay.IDs{Turn: "turn_2"}, event.TurnStarted{}, event.TurnFailed{Outcome: belay.NoCompletion, Code: "NO_COMPLETION", Stats: event.TurnStats{Steps: 2}})
	say(s, belay.IDs{Turn: "turn_3"}, event.TurnStarted{})

	want := Stats{
		Sessions: 1, Turns: 2, Running: 1, Silent: 1, Outcomes: map[belay.Outcome]int{belay.Completed: 1, belay.NoCompletion: 1}, Steps: 3, ActiveMS: 30,
		Usage: belay.Usage{Input: 10, Output: 2, Reported: true}, Cost: event.CostSum{MicroUSD: 735, Priced: 2, Unpriced: 1},
		Tools: []ToolStats{{Name: "exec", Calls: 1, Classes: map[string]int{"denied": 1}}, {Name: "read", Calls: 1, Ran: 1, OK: 1, Classes: map[string]int{}, Retried: 1, Helped: 1, MS: 7, MaxMS: 7}},
		Models: []ModelStats{{Provider: "p", Model: "m", Requests: 2, Answers: 2, Failures: map[string]int{"rate_limited": 1}, Retried: 1,
			Usage: belay.Usage{Input: 10, Output: 2, Reported: true}, Unknown: 1, Cost: event.CostSum{MicroUSD: 735, Priced: 2, Unpriced: 1}, FirstMS: 6, TookMS: 10}},
		Gate:     GateStats{Decisions: map[string]int{"allow": 1, "ask": 1}, Reasoned: 2, Expired: 1},
		Purposes: []SpentStats{{"failed", 1, event.CostSum{MicroUSD: 30, Priced: 1}}, {"review", 1, event.CostSum{MicroUSD: 5, Priced: 1}}, {"step", 2, event.CostSum{MicroUSD: 700, Priced: 1, Unpriced: 1}}},
		Days:     []SpentStats{{"2026-01-01", 4, event.CostSum{MicroUSD: 735, Priced: 3, Unpriced: 1}}},
	}
	got := s.Sum()
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Stats{}), cmpopts.IgnoreFields(Stats{}, "Agents")); d != "" {
		t.Error(d)
	}
	for name, c := range map[string]struct {
		share func() (float64, bool)
		want  float64
	}{"silent stops": {got.SilentStops, 0.5}, "retries that helped": {got.RetriesHelped, 1}, "reasons": {got.ReasonCoverage, 1}, "asks": {got.AskRate, 50}} {
		if v, ok := c.share(); !ok || v != c.want {
			t.Errorf("%s: %v %v", name, v, ok)
		}
	}
}

// TestFiguresThatMisled: a fallback that answers what another model was asked, a
// loop and limits, commands that failed, and answers without usage.
// Guarantee: M62.
func TestFiguresThatMisled(t *testing.T) {
	s := NewStats()
	turn, step := belay.IDs{Turn: "turn_1"}, belay.IDs{Turn: "turn_1", Step: "step_1"}
	say(s, turn, event.TurnStarted{})
	say(s, step, event.ModelRequested{Attempt: 1, Provider: "p"}, event.ModelFailed{Attempt: 1}, event.ModelRequested{Attempt: 2, Provider: "q"}, event.ModelFailed{Attempt: 2, RetryAt: at},
		event.ModelRequested{Attempt: 3, Provider: "q"}, event.ModelCompleted{Attempt: 3})
	step.Step = "step_2"
	say(s, step, event.ModelRequested{Attempt: 1, Provider: "q"}, event.ModelCompleted{Attempt: 1, Usage: belay.Usage{Reported: true}})
	say(s, step, event.ToolResult{Name: "exec", Attempt: 1, Exit: 3}, event.ToolResult{Name: "exec", Attempt: 2}, event.ToolFailed{Name: "exec", Problem: event.Problem{Class: "denied"}, Final: true})
	say(s, turn, event.TurnFailed{Outcome: belay.NoCompletion, Code: "LOOP"})
	for _, code := range []string{"STEP_LIMIT", "CALL_LIMIT"} {
		say(s, turn, event.TurnFailed{Outcome: belay.NoCompletion, Code: code})
	}
	got := s.Sum()
	want := []ModelStats{{Provider: "p", Requests: 1, Failures: map[string]int{"internal": 1}},
		{Provider: "q", Requests: 2, Answers: 2, Failures: map[string]int{"internal": 1}, Retried: 1, Unknown: 1, Usage: belay.Usage{Reported: true}, Cost: event.CostSum{Unpriced: 2}}}
	if d := cmp.Diff(want, got.Models); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]ToolStats{{Name: "exec", Calls: 3, Ran: 2, OK: 1, Classes: map[string]int{"exit 3": 1, "denied": 1}, Retried: 1, Helped: 1}}, got.Tools); d != "" {
		t.Error(d)
	}
	if share, ok := got.SilentStops(); share != 0 || !ok || got.Outcomes[belay.NoCompletion] != 3 {
		t.Errorf("silent stops %v, outcomes %v", share, got.Outcomes)
	}
}

// TestEachRequestIsCountedOnce has what answers tell, and what only its cost tells: of a summary,
// of a model that judged a call, of an attempt that failed. The end of a turn counts what its
// agents took once more, and no sum takes it from there.
// Guarantee: M62.
func TestEachRequestIsCountedOnce(t *testing.T) {
	s := NewStats()
	used := belay.Usage{Input: 10, Output: 1, Reported: true}
	cost := func(key string, amount int64, unpriced bool) event.CostRecorded {
		return event.CostRecorded{Cost: event.Cost{Amount: amount, Unpriced: unpriced, Provider: "p", Model: "m", For: key, Usage: used}}
	}
	say(s, belay.IDs{Turn: "turn_1", Step: "step_0", Thread: "thr_1"}, cost("model/step_0/1", 9, false)) // its answer came before what is counted
	for _, turn := range []belay.TurnID{"turn_1", "turn_2"} {
		thread := belay.ThreadID("thr_" + turn)
		say(s, belay.IDs{Turn: turn, Thread: thread}, event.TurnStarted{})
		say(s, belay.IDs{Turn: turn, Thread: thread, Step: belay.StepID("step_" + turn)},
			event.ModelRequested{Attempt: 1, Provider: "p", Model: "m"}, event.ModelCompleted{Attempt: 1, Usage: used}, cost("model/step_1/1", 9, false))
	}
	for range 3 {
		say(s, belay.IDs{Thread: "thr_1"}, cost(event.CompactionKey(7), 5, false))
	}
	say(s, belay.IDs{Thread: "thr_1"}, cost(event.CompactionKey(8), 0, true))
	say(s, belay.IDs{Thread: "thr_1", Call: "call_1"}, cost("call_1/reviewer", 0, true))
	failed := cost("model/step_2/1", 0, true)
	failed.Failed = true
	say(s, belay.IDs{Thread: "thr_1"}, failed)
	both := event.TurnStats{Steps: 1, Usage: used.Add(used), Below: event.AgentsUse{Usage: used}}
	say(s, belay.IDs{Turn: "turn_1"}, event.TurnCompleted{Stats: both})
	say(s, belay.IDs{Turn: "turn_2"}, event.TurnCompleted{Stats: event.TurnStats{Steps: 1, Usage: used}})
	got := s.Sum()
	want := belay.Usage{Input: 80, Output: 8, Reported: true}
	if got.Usage != want || got.Models[0].Usage != want {
		t.Errorf("used %+v, the model %+v", got.Usage, got.Models[0].Usage)
	}
	if sum := (event.CostSum{MicroUSD: 42, Priced: 6, Unpriced: 3}); got.Cost != sum || got.Models[0].Cost != sum || got.Days[0].Cost != sum {
		t.Errorf("cost %+v, the model %+v, the day %+v", got.Cost, got.Models[0].Cost, got.Days[0].Cost)
	}
	if own := both.Own(); own.Usage != used || own.Below != (event.AgentsUse{}) {
		t.Errorf("the turn itself took %+v", own)
	}
}

// TestAPriceOfTheNextDayIsOfItsAnswer: the answer's day doesn't keep an unknown price.
func TestAPriceOfTheNextDayIsOfItsAnswer(t *testing.T) {
	s := NewStats()
	ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Step: "step_1"}
	s.Apply(event.Envelope{IDs: ids, Time: at, Data: event.ModelRequested{Attempt: 1, Provider: "p"}})
	s.Apply(event.Envelope{IDs: ids, Time: at, Data: event.ModelCompleted{Attempt: 1}})
	s.Apply(event.Envelope{IDs: ids, Time: at.AddDate(0, 0, 1), Data: event.CostRecorded{Cost: event.Cost{Amount: 9, Provider: "p"}}})
	want := []SpentStats{{Of: "2026-01-01", Requests: 1}, {Of: "2026-01-02", Cost: event.CostSum{MicroUSD: 9, Priced: 1}}}
	if d := cmp.Diff(want, s.Sum().Days); d != "" || len(s.unpriced) != 0 {
		t.Errorf("%s, and %d answers are kept", d, len(s.unpriced))
	}
}

func TestWhatIsUnknownIsNotZero(t *testing.T) {
	s := NewStats().Sum()
	for name, share := range map[string]func() (float64, bool){"silent stops": s.SilentStops, "retries": s.RetriesHelped, "reasons": s.ReasonCoverage, "asks": s.AskRate} {
		if _, ok := share(); ok {
			t.Errorf("%s of nothing is said to be known", name)
		}
	}
}

// Memory follows what runs, not what happened.
func TestNothingOfAnEndedTurnIsKept(t *testing.T) {
	s := NewStats()
	for range 100 {
		say(s, belay.IDs{Turn: belay.TurnID(belay.NewID(belay.PrefixTurn)), Step: belay.StepID(belay.NewID(belay.PrefixStep)), Action: "act_1"},
			event.TurnStarted{}, event.ModelRequested{Attempt: 1}, event.ModelCompleted{Attempt: 1}, event.PermissionRequested{},
			event.ActionResolved{Decision: "allow"}, event.TurnCompleted{})
	}
	for _, m := range []any{s.open, s.asked, s.asks} {
		if n := reflect.ValueOf(m).Len(); n != 0 {
			t.Errorf("%T keeps %d", m, n)
		}
	}
}
