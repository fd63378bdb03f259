package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// after folds the story up to and including its first fact of a type.
func after(t *testing.T, typ string) view.Session {
	t.Helper()
	var row view.Session
	now := t0
	for i, f := range story() {
		now = now.Add(f.after)
		view.Apply(&row, store.Record{Position: store.Position(i + 1), Event: event.Envelope{Stream: f.stream, Seq: int64(i + 1), Time: now, IDs: f.ids, Data: f.data}})
		if event.TypeOf(f.data) == typ {
			return row
		}
	}
	t.Fatalf("the story has no %s", typ)
	return row
}

func TestTheRowFollowsTheStory(t *testing.T) {
	for _, c := range []struct {
		after string
		is    string // status of the turn
		says  func(view.Session) bool
	}{
		{"session.created", "", func(s view.Session) bool {
			return s.ID == "sess_1" && s.Workspace == "/ws" && s.Title == "fix it" && s.Created.Equal(t0) && s.Mode == belay.ModeDefault && s.Provider == "scripted" && s.Model == "m"
		}},
		{"task.attempt.started", "", func(s view.Session) bool {
			return len(s.Tasks) == 1 && s.Tasks[0].Status == "running" && s.Tasks[0].Attempts == 1 && s.Tasks[0].Objective == "fix the test" && s.Tasks[0].Run == "run_1"
		}},
		{"turn.submitted", view.Queued, func(s view.Session) bool { return s.Counts.Turns == 1 && len(s.Threads[0].Queue) == 1 }},
		{"turn.started", view.Running, func(s view.Session) bool { return len(s.Threads[0].Queue) == 0 && s.Turn().ID == "turn_1" }},
		{"model.requested", view.Running, func(s view.Session) bool { return s.Counts.Steps == 1 && len(s.Threads[0].Flying) == 1 }},
		{"model.failed", view.Running, func(s view.Session) bool {
			return len(s.Threads[0].Flying) == 0 && time.Duration(s.Active) == 2*time.Second
		}},
		{"model.completed", view.Running, func(s view.Session) bool { return s.Counts.Steps == 1 && s.Usage.Input == 100 && s.Usage.Cached == 50 }},
		{"action.required", view.Waiting, func(s view.Session) bool {
			a := s.Actions[0]
			return a.ID == "act_1" && a.Tool == "exec" && a.Prompt == `exec {"command":"make"}` && a.Stream == "thread/thr_1" && a.Until.Equal(t0.Add(24*time.Hour))
		}},
		{"action.resolved", view.Running, func(s view.Session) bool { return len(s.Actions) == 0 }},
		{"run.status", view.Running, func(s view.Session) bool {
			return len(s.Threads[0].Flying) == 0 && time.Duration(s.Active) == 5*time.Second // neither the person's hour nor the crash's
		}},
		{"artifact.changed", view.Running, func(s view.Session) bool { return s.Files[0] == view.File{"a.go", "created", s.Updated, true} }},
		{"tool.result", view.Running, func(s view.Session) bool {
			p, pub := s.Threads[0].Plan, s.Artifacts
			return s.Counts.Calls == 1 && time.Duration(s.Active) == 7*time.Second && len(p) == 1 && p[0].Text == "fix" &&
				len(pub) == 1 && pub[0].Name == "r.md" && pub[0].Version == "1" && pub[0].Content.Size == 3 && len(s.Files) == 1
		}},
		{"turn.completed", view.Ended, func(s view.Session) bool {
			return s.Turn().Outcome == belay.Completed && s.Turn().Summary == "fixed" && time.Duration(s.Turn().Active) == 7*time.Second
		}},
		{"task.completed", view.Ended, func(s view.Session) bool {
			return s.Tasks[0].Status == "completed" && s.Counts.Events == len(story()) && int(s.Position) == len(story())
		}},
	} {
		row := after(t, c.after)
		got := ""
		if turn := row.Turn(); turn != nil {
			got = turn.Status
		}
		if got != c.is || !c.says(row) {
			t.Errorf("after %s: turn %q, want %q; row %s", c.after, got, c.is, text(row))
		}
	}
}

func TestAFactTwiceCountsOnce(t *testing.T) {
	rec := store.Record{Position: 7, Event: event.Envelope{Stream: "session/s", Time: t0, IDs: belay.IDs{Session: "s"}, Data: event.SessionCreated{}}}
	var row view.Session
	view.Apply(&row, rec)
	once := text(row)
	view.Apply(&row, rec)
	if text(row) != once || row.Counts.Events != 1 {
		t.Errorf("got %s, want %s", text(row), once)
	}
}

// Every type of the table, also those with nothing in them and out of any order,
// leaves a row that only knows more.
// Guarantee: O8.
func TestEveryFactCanBeFolded(t *testing.T) {
	for _, full := range []bool{false, true} {
		var row view.Session
		if full {
			row = after(t, "action.required")
		}
		for _, ty := range event.Types() {
			for _, stream := range []belay.StreamID{"thread/thr_1", "task/task_1", "session/sess_1", "odd"} {
				p, err := event.Decode(ty.Name, ty.Version, []byte("{}"))
				if err != nil {
					t.Fatal(err)
				}
				before := row.Counts.Events
				view.Apply(&row, store.Record{Position: row.Position + 1, Event: event.Envelope{Stream: stream, Time: t0, IDs: belay.IDs{Session: "sess_1", Task: "task_1"}, Data: p}})
				if row.Counts.Events != before+1 {
					t.Errorf("%s on %s wasn't counted", ty.Name, stream)
				}
			}
		}
		view.Apply(&row, store.Record{Position: row.Position + 1, Event: event.Envelope{Stream: "thread/thr_1", Data: event.Unknown{Type: "new.thing", Raw: []byte("{}")}}})
	}
}

func TestAnEndClosesWhatWasAsked(t *testing.T) {
	row := after(t, "action.required")
	view.Apply(&row, store.Record{Position: 100, Event: event.Envelope{Stream: "thread/thr_1", Time: t0, IDs: belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1"},
		Data: event.TurnFailed{Outcome: belay.Lost, Code: "RULES_MISSING", Reason: "gone"}}})
	if turn := row.Turn(); len(row.Actions) != 0 || turn.Outcome != belay.Lost || turn.Code != "RULES_MISSING" || turn.Reason != "gone" {
		t.Errorf("got %s", text(row))
	}
}

// A turn that never began ends beside the running one, which continues and waits on.
func TestATurnThatNeverBeganLeavesTheRunningOneAlone(t *testing.T) {
	row := after(t, "action.required")
	asked, running := len(row.Actions), row.Turn().ID
	ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_9"}
	for i, p := range []event.Payload{event.TurnSubmitted{}, event.TurnFailed{Outcome: belay.Cancelled, Code: "INTERRUPTED", Reason: "not any more"}} {
		view.Apply(&row, store.Record{Position: store.Position(100 + i), Event: event.Envelope{Stream: "thread/thr_1", Time: t0, IDs: ids, Data: p}})
	}
	if turn := row.Turn(); asked == 0 || len(row.Actions) != asked || turn.ID != running || turn.Outcome != "" {
		t.Errorf("got %s", text(row))
	}
	for _, th := range row.Threads {
		for _, q := range th.Queue {
			if q.ID == "turn_9" {
				t.Errorf("it still waits: %s", text(row))
			}
		}
	}
}

func TestFilesAreTheNetEffect(t *testing.T) {
	for _, c := range []struct{ ops, want string }{
		{"a created", "a created"},
		{"a created, a changed", "a created"},
		{"a created, a removed", ""},
		{"a changed, a removed", "a removed"},
		{"a removed, a created", "a changed"},
		{"a changed, b changed, a changed", "b changed, a changed"},
	} {
		var row view.Session
		for i, op := range strings.Split(c.ops, ", ") {
			path, op, _ := strings.Cut(op, " ")
			view.Apply(&row, store.Record{Position: store.Position(i + 1), Event: event.Envelope{Stream: "thread/t", Time: t0, Data: event.ArtifactChanged{Kind: "file", Path: path, Op: op}}})
		}
		var got []string
		for _, f := range row.Files {
			got = append(got, f.Path+" "+f.Op)
		}
		if s := strings.Join(got, ", "); s != c.want || row.Counts.Files != len(row.Files) {
			t.Errorf("%s: got %q, want %q; %d counted", c.ops, s, c.want, row.Counts.Files)
		}
	}
}

// A session that lives for years has a row of the same size.
func TestRowsAreBounded(t *testing.T) {
	var row view.Session
	pos := store.Position(0)
	add := func(stream string, ids belay.IDs, p event.Payload) {
		pos++
		view.Apply(&row, store.Record{Position: pos, Event: event.Envelope{Stream: belay.StreamID(stream), Time: t0, IDs: ids, Data: p}})
	}
	long := strings.Repeat("é", 5000)
	for i := range 2000 {
		n := fmt.Sprint(i)
		add("task/task_"+n, belay.IDs{Task: belay.TaskID("task_" + n)}, event.TaskCreated{Objective: say("%s", long)})
		turn := belay.IDs{Turn: belay.TurnID("turn_" + n)}
		add("thread/thr_"+n, turn, event.TurnStarted{})
		add("thread/thr_"+n, turn, event.ArtifactChanged{Kind: "file", Path: n, Op: "changed"})
		add("thread/thr_"+n, turn, event.TurnFailed{Outcome: belay.Failed, Reason: long})
	}
	if n := len(text(row)); n > 128<<10 {
		t.Errorf("the row has %d bytes", n)
	}
	if row.Counts.Tasks != 2000 || row.Counts.Files != 2000 || row.Tasks[len(row.Tasks)-1].ID != "task_1999" {
		t.Errorf("counts %+v, newest task %s", row.Counts, row.Tasks[len(row.Tasks)-1].ID)
	}
	if !slices.ContainsFunc(row.Threads, func(th view.Thread) bool { return th.ID == "thr_1999" }) {
		t.Error("the newest thread was dropped")
	}
}

func TestTheTurnToSpeakOf(t *testing.T) {
	turn := func(id belay.TurnID, status string, at int) *view.Turn {
		tu := &view.Turn{ID: id, Status: status, Started: t0.Add(time.Duration(at) * time.Hour)}
		if status == view.Ended {
			tu.Ended = tu.Started
		}
		return tu
	}
	for _, c := range []struct {
		turns []*view.Turn
		want  belay.TurnID
	}{
		{[]*view.Turn{turn("a", view.Ended, 1), turn("b", view.Ended, 2)}, "b"},
		{[]*view.Turn{turn("a", view.Running, 1), turn("b", view.Ended, 2)}, "a"},
		{[]*view.Turn{turn("a", view.Running, 2), turn("b", view.Waiting, 1)}, "b"},
	} {
		var s view.Session
		for _, tu := range c.turns {
			s.Threads = append(s.Threads, view.Thread{Turn: tu})
		}
		if got := s.Turn(); got == nil || got.ID != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}

// Guarantee: T58.
func TestWhatProgramsTookIsCounted(t *testing.T) {
	var row view.Session
	for i, p := range []event.Payload{
		event.ProcessStarted{},
		event.ProcessCompleted{Millis: 3000, ProcessUse: event.ProcessUse{CPU: 1500, Peak: 9, Written: 100, Processes: 4}},
		event.ProcessTerminated{Millis: 1000, ProcessUse: event.ProcessUse{CPU: 500, Peak: 3, Together: 12, Written: 10, Throttled: 250, Limit: belay.LimitWall}},
		event.ProcessFailed{Class: "lost"}, // nobody knows what it took
	} {
		view.Apply(&row, store.Record{Position: store.Position(i + 1), Event: event.Envelope{Stream: "thread/thr_1", Seq: int64(i + 1), Time: t0, Data: p}})
	}
	want := view.Programs{Ended: 2, CPU: belay.Duration(2 * time.Second), Time: belay.Duration(4 * time.Second), Written: 110, Peak: 12, Processes: 4, Throttled: belay.Duration(250 * time.Millisecond), Limited: 1}
	if row.Programs != want || len(row.Threads) != 1 || row.Threads[0].Programs != want {
		t.Errorf("got %+v and %+v", row.Programs, row.Threads)
	}
}

func TestWhatABoundaryGivesAllProgramsIsNoted(t *testing.T) {
	var row view.Session
	limits := belay.ProcessLimits{TotalCPU: 1, TotalWritten: 2, TotalTime: 3, SessionCPU: 4, SessionWritten: 5, SessionTime: 6}
	for i, p := range []event.Payload{
		event.PermissionEvaluated{Bounds: &belay.Boundary{Limits: belay.ProcessLimits{TotalCPU: 9}}},
		event.PermissionEvaluated{Bounds: &belay.Boundary{Limits: limits}},
		event.PermissionEvaluated{Tool: "read"}, // starts no programs
	} {
		view.Apply(&row, store.Record{Position: store.Position(i + 1), Event: event.Envelope{Stream: "thread/thr_1", Seq: int64(i + 1), Time: t0, Data: p}})
	}
	if got, want := row.Programs.Limit, (belay.ProgramUse{CPU: 4, Written: 5, Time: 6}); got != want {
		t.Errorf("the session's: %+v", got)
	}
	if got, want := row.Threads[0].Programs.Limit, (belay.ProgramUse{CPU: 1, Written: 2, Time: 3}); got != want {
		t.Errorf("the thread's: %+v", got)
	}
}

func TestHousekeepingDoesntMakeASessionYoung(t *testing.T) {
	var row view.Session
	for i, p := range []event.Payload{event.SessionCreated{}, event.OutputExpired{Digest: "sha256:x"}} {
		view.Apply(&row, store.Record{Position: store.Position(i + 1), Event: event.Envelope{Stream: "session/sess_1", Seq: int64(i + 1), Time: t0.Add(time.Duration(i) * time.Hour), Data: p}})
	}
	if !row.Updated.Equal(t0) || row.Counts.Events != 2 {
		t.Errorf("%+v", row)
	}
}
