package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/view/snapshot"
)

// golden are the logs that releases left behind.
func golden(t *testing.T) [][]event.Envelope {
	t.Helper()
	return eventtest.Logs(t, "../../engine/testdata/golden/*.jsonl")
}

func encoded(t *testing.T, s *snapshot.Session) []byte {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSnapshotsAreValidUnderTheStandard: after each fact of a session the
// snapshot is one of the standard, under both schemas.
// Guarantee: O14.
func TestSnapshotsAreValidUnderTheStandard(t *testing.T) {
	n := 0
	for _, log := range golden(t) {
		for cut := 1; cut <= len(log); cut++ {
			for _, driven := range []bool{true, false} {
				f := snapshot.New(log[0].Runtime, log[0].IDs.Session)
				for _, e := range log[:cut] {
					f.Apply(e)
				}
				s := f.Done(driven)
				if len(s.Threads) == 0 {
					continue
				}
				raw := encoded(t, s)
				if err := eventtest.InvalidSnapshot(raw); err != nil {
					t.Fatalf("after %d facts, driven %v: %v\n%s", cut, driven, err, raw)
				}
				var back snapshot.Session
				if err := json.Unmarshal(raw, &back); err != nil {
					t.Fatal(err)
				}
				if again := encoded(t, &back); !bytes.Equal(again, raw) {
					t.Fatalf("read back it is\n%s\nwas\n%s", again, raw)
				}
				n++
			}
		}
	}
	t.Logf("%d snapshots", n)
}

// TestASnapshotFollowsTheFacts folds a small session and looks at its words.
func TestASnapshotFollowsTheFacts(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := snapshot.New("rt_1", "sess_1")
	seq := map[belay.StreamID]int64{}
	add := func(s belay.StreamID, ids belay.IDs, p event.Payload) {
		seq[s]++
		now = now.Add(time.Second)
		ids.Session = "sess_1"
		f.Apply(event.Envelope{Stream: s, Seq: seq[s], Time: now, IDs: ids, Data: p})
	}
	const session, thread, task = belay.StreamID("session/sess_1"), belay.StreamID("thread/thr_1"), belay.StreamID("task/task_1")
	status := func(driven bool) string { return f.Done(driven).Threads[0].Status }
	turn := belay.IDs{Thread: "thr_1", Turn: "turn_1", Task: "task_1", Run: "run_1"}
	step, call := turn, turn
	step.Step = "step_1"
	call.Step, call.Call = "step_1", "call_1"
	asked := call
	asked.Action = "act_1"

	add(session, belay.IDs{}, event.SessionCreated{Workspace: "/w", Title: "T", Settings: belay.Settings{Mode: belay.ModeDefault, Provider: "scripted:x"}})
	add(session, belay.IDs{}, event.PolicyChanged{Kind: "grant", Op: "granted", Tool: "exec", Scope: "session", By: "user:ada"})
	add(thread, belay.IDs{Thread: "thr_1"}, event.ThreadStarted{Kind: "main"})
	if got := status(true); got != "idle" {
		t.Errorf("before a turn: %s", got)
	}
	add(task, belay.IDs{Task: "task_1"}, event.TaskCreated{Objective: belay.Content{Text: "do it"}, Thread: "thr_1"})
	add(task, belay.IDs{Task: "task_1", Run: "run_1"}, event.TaskAttemptStarted{Number: 1, Turn: "turn_1"})
	add(thread, turn, event.TurnSubmitted{Text: belay.Content{Text: "do it"}})
	if got := status(true); got != "queued" {
		t.Errorf("with a turn that waits: %s", got)
	}
	add(thread, turn, event.TurnStarted{})
	add(thread, step, event.ModelRequested{Attempt: 1, Kind: "normal", Model: "m"})
	add(thread, step, event.ModelCompleted{Attempt: 1, Usage: belay.Usage{Input: 7, Output: 2, Reported: true}, Calls: []event.ModelCall{{ID: "call_1", Name: "exec"}}})
	add(thread, call, event.PermissionEvaluated{Decision: "ask", Rule: "r1"})
	add(thread, asked, event.ActionRequired{Kind: "permission", Prompt: belay.Content{Text: "may it?"}, Default: "deny"})
	s := f.Done(true)
	if got := s.Threads[0]; got.Status != "blocked" || len(got.Pending) != 1 || got.Pending[0].ActionID != "act_1" || s.Permission.Pending != 1 || s.Permission.Asked != 1 {
		t.Errorf("while it asks: %+v, %+v", got, s.Permission)
	}
	add(thread, asked, event.ActionResolved{Decision: "allow"})
	if running, left := status(true), status(false); running != "running" || left != "stale" {
		t.Errorf("while it runs: %s, without a driver %s", running, left)
	}
	add(thread, call, event.ToolStarted{Name: "exec", Attempt: 1})
	add(thread, belay.IDs{Thread: "thr_1"}, event.RunStatus{Status: "running", Phase: "takeover", Reason: "new driver"})
	add(thread, call, event.ToolFailed{Name: "exec", Final: true, Problem: event.Problem{Class: "lost", Code: "LOST", Message: "who knows"}})
	add(thread, turn, event.TurnFailed{Outcome: belay.Lost, Reason: "given up", Code: "GIVEN_UP"})
	add(task, belay.IDs{Task: "task_1", Run: "run_1"}, event.TaskAttemptFailed{Outcome: belay.Lost, Reason: "given up"})
	add(task, belay.IDs{Task: "task_1"}, event.TaskLost{TaskEnd: event.TaskEnd{Outcome: belay.Lost}})

	s = f.Done(false)
	th := s.Threads[0]
	kinds := ""
	for _, i := range th.Incidents {
		kinds += i.Kind + " "
	}
	got := fmt.Sprint(th.Status, " ", th.Turns[0].Status, " ", th.Turns[0].Calls[0].Status, " ", s.Tasks[0].Status, " ", s.Tasks[0].Attempts[0].Status, " ",
		s.Tasks[0].Attempts[0].Error.Outcome, " ", s.Telemetry.Lost, " ", s.Routing.Usage.Input, " ", kinds, len(s.Cursor), " ", s.TaskSummary.ByStatus)
	if want := "unknown lost lost lost unknown lost 1 7 takeover lost_call failed_turn 3 map[lost:1]"; got != want {
		t.Errorf("at the end:\n got %s\nwant %s", got, want)
	}
	if err := eventtest.InvalidSnapshot(encoded(t, s)); err != nil {
		t.Error(err)
	}
}

// TestASnapshotIsBounded: of many turns and tasks the end is there, and counted.
func TestASnapshotIsBounded(t *testing.T) {
	f := snapshot.New("rt_1", "sess_1")
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seq := int64(0)
	for i := range 3000 {
		ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: belay.TurnID(fmt.Sprint("turn_", i))}
		for _, p := range []event.Payload{event.TurnSubmitted{}, event.TurnStarted{}, event.TurnFailed{Outcome: belay.Failed, Reason: "x"}} {
			seq++
			f.Apply(event.Envelope{Stream: "thread/thr_1", Seq: seq, Time: at, IDs: ids, Data: p})
		}
		id := belay.TaskID(fmt.Sprint("task_", i))
		f.Apply(event.Envelope{Stream: id.Stream(), Seq: 1, Time: at, IDs: belay.IDs{Session: "sess_1", Task: id}, Data: event.TaskCompleted{}})
	}
	s := f.Done(false)
	if th := s.Threads[0]; len(th.Turns) != 50 || th.Turns[49].TurnID != "turn_2999" || len(th.Incidents) != 50 {
		t.Errorf("%d turns, %d incidents", len(th.Turns), len(th.Incidents))
	}
	if h := s.History; h.Turns != 3000 || h.Shown != 50 || !h.Truncated {
		t.Errorf("history: %+v", h)
	}
	if sum := s.TaskSummary; sum.Total != 3000 || sum.Shown != 200 || sum.ByStatus["completed"] != 3000 {
		t.Errorf("tasks: %+v", sum)
	}
	if err := eventtest.InvalidSnapshot(encoded(t, s)); err != nil {
		t.Error(err)
	}
}

// TestEveryFactCanBeFolded: any type of fact, on any stream, at any time.
func TestEveryFactCanBeFolded(t *testing.T) {
	for _, stream := range []belay.StreamID{"session/s", "thread/t", "task/k", "odd"} {
		f := snapshot.New("rt_1", "sess_1")
		for i, ty := range event.Types() {
			p, err := event.Decode(ty.Name, 0, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			f.Apply(event.Envelope{Stream: stream, Seq: int64(i), IDs: belay.IDs{Task: "k"}, Data: p})
			f.Done(i%2 == 0)
		}
	}
}

// TestASavedFoldGoesOn: a fold that is saved and loaded after any fact comes to the
// snapshot that a fold of all facts comes to.
// Guarantee: L20.
func TestASavedFoldGoesOn(t *testing.T) {
	n := 0
	for _, log := range golden(t) {
		whole := snapshot.New(log[0].Runtime, log[0].IDs.Session)
		for _, e := range log {
			whole.Apply(e)
		}
		want := encoded(t, whole.Done(false))
		f := snapshot.New(log[0].Runtime, log[0].IDs.Session)
		for i, e := range log {
			f.Apply(e)
			raw, err := f.Save()
			if err != nil {
				t.Fatal(err)
			}
			if f, err = snapshot.Load(raw); err != nil {
				t.Fatalf("after fact %d: %v", i+1, err)
			}
			n++
		}
		if got := encoded(t, f.Done(false)); !bytes.Equal(got, want) {
			t.Errorf("saved after each fact it is\n%s\nwant\n%s", got, want)
		}
	}
	t.Logf("%d folds were saved and loaded", n)
	for _, bad := range []string{"", "{}", "null", `{"session":{"schemaVersion":"x"}}`} {
		if _, err := snapshot.Load([]byte(bad)); err == nil {
			t.Errorf("%q was loaded", bad)
		}
	}
}

// TestATurnThatNeverBegan: it is taken out while another one runs, and that one
// stays the newest, with what it continues to do.
func TestATurnThatNeverBegan(t *testing.T) {
	f := snapshot.New("rt_1", "sess_1")
	seq := int64(0)
	add := func(turn belay.TurnID, p event.Payload) {
		seq++
		f.Apply(event.Envelope{Stream: "thread/thr_1", Seq: seq, Time: time.Unix(seq, 0).UTC(), IDs: belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: turn, Step: "step_1"}, Data: p})
	}
	add("turn_1", event.TurnSubmitted{})
	add("turn_1", event.TurnStarted{})
	add("turn_2", event.TurnSubmitted{})
	add("turn_2", event.TurnFailed{Outcome: belay.Cancelled})
	add("turn_1", event.ModelRequested{Attempt: 1})
	th := f.Done(true).Threads[0]
	if th.Active != "turn_1" || len(th.Turns) != 2 || len(th.Queue) != 0 || th.Turns[0].Status != "cancelled" || len(th.Turns[1].Steps) != 1 || th.Turns[1].TurnID != "turn_1" {
		t.Errorf("%s is active, %d turns, the last one %+v", th.Active, len(th.Turns), th.Turns[len(th.Turns)-1])
	}
}
