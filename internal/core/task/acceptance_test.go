package task

import (
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// A person's word is verified in a turn of its own; what fails leaves the task as it was,
// and what is waived has a name and a reason.
// Guarantee: J2.
func TestAPersonsWordIsVerified(t *testing.T) {
	checks := []belay.Check{{ID: "a", Kind: belay.CheckCommand, Argv: []string{"true"}}, {ID: "b", Kind: belay.CheckFiles, Paths: []string{"x"}}}
	plan := &belay.TaskPlan{Acceptance: checks}
	word := belay.CompleteTask{Thread: "thr_1", Turn: "turn_1", Rules: rules, Waive: []belay.Waiver{{Check: "b", Reason: "why"}}}
	fails := belay.AttemptEnd{Outcome: belay.Failed, Reason: "CHECKS_FAILED"}
	for _, c := range []struct {
		name   string
		before []belay.Command
		stands string
	}{
		{"planned", nil, "accepted"},
		{"queued", []belay.Command{belay.StartTask{Thread: "thr_1", Turn: "turn_0", Rules: rules, Reason: "dependency"}}, "queued"},
		{"blocked", []belay.Command{belay.StartTask{Thread: "thr_1", Turn: "turn_0", Rules: rules, Reason: "dependency"}, belay.BlockTask{Reason: "it failed"}}, "blocked"},
		{"failed", []belay.Command{belay.FailTask{Reason: "no"}}, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.do(belay.CreateTask{Objective: belay.Content{Text: "fix it"}, Plan: plan})
			for _, o := range c.before {
				b.do(o)
			}
			planned := b.d.s.Planned
			types, sends := b.do(word)
			turn := sends[0].Command.(belay.SubmitTurn)
			if !slices.Equal(types, []string{"task.progress", "task.attempt.started"}) || len(turn.Checks) != 1 || turn.Checks[0].ID != "a" || turn.Rounds != 1 || turn.Kind != belay.TurnSystem {
				t.Fatalf("facts %v, turn %+v", types, turn)
			}
			waived := b.log[len(b.log)-2].Data.(event.TaskProgress)
			if waived.By != "user:ann" || waived.Check.Status != event.CheckWaived || waived.Check.Reason != "why" {
				t.Errorf("waived: %+v", waived)
			}
			b.do(belay.EndAttempt{Run: b.run(), Turn: "turn_1", AttemptEnd: fails})
			if b.d.s.Status != c.stands || (b.d.s.Planned == nil) != (planned == nil) {
				t.Errorf("after checks that fail it is %s, waiting %v", b.d.s.Status, b.d.s.Planned)
			}
			word := word
			word.Turn = "turn_2"
			b.do(word)
			_, sends = b.do(belay.EndAttempt{Run: b.run(), Turn: "turn_2", AttemptEnd: belay.AttemptEnd{Outcome: belay.Completed}})
			if end := b.log[len(b.log)-1].Data.(event.TaskCompleted); end.By != "user:ann" || b.d.s.Status != "completed" || len(sends) != 1 {
				t.Errorf("it ends %+v, sends %v", end, sends)
			}
		})
	}
}

// Guarantee: J2.
func TestChecksArePassedOrWaived(t *testing.T) {
	b := newBench(t)
	b.do(belay.CreateTask{Objective: belay.Content{Text: "fix it"}, Plan: &belay.TaskPlan{Acceptance: []belay.Check{{ID: "a", Kind: belay.CheckFiles, Paths: []string{"x"}}}}})
	if _, _, err := b.try(belay.CompleteTask{}); belay.CodeOf(err) != belay.CodeConflict {
		t.Errorf("without a turn that checks: %v", err)
	}
	if _, _, err := b.try(belay.CompleteTask{Waive: []belay.Waiver{{Check: "z"}}}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("waiving what there isn't: %v", err)
	}
	if types, _ := b.do(belay.CompleteTask{Waive: []belay.Waiver{{Check: "a", Reason: "x"}}}); !slices.Equal(types, []string{"task.progress", "task.completed"}) {
		t.Errorf("all waived: %v", types)
	}
}
