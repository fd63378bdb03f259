package view_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

var t0 = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// writer appends facts to a store, a batch each.
type writer struct {
	t      testing.TB
	st     store.Store
	owner  store.Owner
	epochs map[belay.SessionID]int64
	seqs   map[belay.StreamID]int64
	now    time.Time
}

func newWriter(t testing.TB, st store.Store) *writer {
	return &writer{t: t, st: st, owner: store.ThisProcess(), epochs: map[belay.SessionID]int64{}, seqs: map[belay.StreamID]int64{}, now: t0}
}

// fact is one that a test wants in a log.
type fact struct {
	stream belay.StreamID
	ids    belay.IDs
	data   event.Payload
	after  time.Duration
}

func (w *writer) add(facts ...fact) {
	w.t.Helper()
	for _, f := range facts {
		session, owned := f.ids.Session, f.ids.Session
		if session == belay.SystemSession { // ownership is per stream there
			owned = belay.SessionID(f.stream)
		}
		if w.epochs[owned] == 0 {
			epoch, err := w.st.Claim(w.t.Context(), owned, w.owner, time.Hour)
			if err != nil {
				w.t.Fatal(err)
			}
			w.epochs[owned] = epoch
		}
		w.now = w.now.Add(f.after)
		seq := w.seqs[f.stream]
		e := event.Envelope{Stream: f.stream, Seq: seq + 1, Time: w.now, IDs: f.ids, Version: event.VersionOf(f.data), Data: f.data}
		if _, err := w.st.Append(w.t.Context(), store.Batch{Session: session, Stream: f.stream, After: seq, Epoch: w.epochs[owned], Events: []event.Envelope{e}}); err != nil {
			w.t.Fatal(err)
		}
		w.seqs[f.stream]++
	}
}

func (w *writer) records() []store.Record {
	w.t.Helper()
	var out []store.Record
	for r, err := range w.st.Scan(w.t.Context(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// fold is the plain truth: every fact of a session, in order, on an empty row.
func fold(recs []store.Record) map[belay.SessionID]string {
	rows := map[belay.SessionID]*view.Session{}
	for _, r := range recs {
		id := r.Event.IDs.Session
		if id == belay.SystemSession {
			continue
		}
		if rows[id] == nil {
			rows[id] = &view.Session{}
		}
		view.Apply(rows[id], r)
	}
	out := map[belay.SessionID]string{}
	for id, row := range rows {
		out[id] = text(row)
	}
	return out
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// stored are the rows in the store.
func stored(t testing.TB, st store.Store) map[belay.SessionID]string {
	t.Helper()
	out := map[belay.SessionID]string{}
	for key, data := range st.ViewRows(t.Context(), "sessions/11", "") {
		if key[:2] == "1/" {
			out[belay.SessionID(key[2:])] = string(data)
		}
	}
	return out
}

func say(format string, args ...any) belay.Content {
	return belay.Content{Text: fmt.Sprintf(format, args...)}
}

// a story: one session that is created, works, asks, changes files and ends.
func story() []fact {
	s := belay.IDs{Session: "sess_1"}
	k := belay.IDs{Session: "sess_1", Task: "task_1"}
	run := belay.IDs{Session: "sess_1", Task: "task_1", Run: "run_1"}
	th := belay.IDs{Session: "sess_1", Thread: "thr_1"}
	turn := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Task: "task_1", Run: "run_1"}
	step := turn
	step.Step = "step_1"
	call := step
	call.Call = "call_1"
	act := call
	act.Action = "act_1"
	const session, task, thread = "session/sess_1", "task/task_1", "thread/thr_1"
	usage := belay.Usage{Input: 100, Output: 20, Cached: 50, Reported: true}
	return []fact{
		{session, s, event.SessionCreated{Workspace: "/ws", Title: "fix it", Settings: belay.Settings{Provider: "scripted", Model: "m", Mode: belay.ModeDefault}}, 0},
		{session, s, event.SessionUpdated{Thread: "thr_1", Task: "task_1", Turn: "turn_1"}, 0},
		{task, k, event.TaskCreated{Objective: say("fix the test"), Kind: "agent", Thread: "thr_1"}, 0},
		{task, k, event.TaskStarted{}, 0},
		{task, run, event.TaskAttemptStarted{Number: 1, Thread: "thr_1", Turn: "turn_1"}, 0},
		{thread, th, event.ThreadStarted{Kind: "main", Workspace: "/ws"}, 0},
		{thread, turn, event.TurnSubmitted{Kind: belay.TurnUser, Text: say("fix the test")}, 0},
		{thread, turn, event.TurnStarted{Kind: belay.TurnUser, Completion: belay.CompletionRequired}, time.Second},
		{thread, step, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "scripted"}, 0},
		{thread, step, event.ModelFailed{Attempt: 1, Problem: event.Problem{Class: "transient"}}, 2 * time.Second},
		{thread, step, event.ModelRequested{Attempt: 2, Kind: "normal", Provider: "scripted"}, time.Second},
		{thread, step, event.ModelCompleted{Attempt: 2, Calls: []event.ModelCall{{ID: "call_1", Name: "exec"}}, Usage: usage}, 3 * time.Second},
		{thread, call, event.PermissionEvaluated{Decision: "ask", Tool: "exec"}, 0},
		{thread, act, event.ActionRequired{Kind: "permission", Prompt: say(`exec {"command":"make"}`), Tool: "exec", Until: t0.Add(24 * time.Hour)}, 0},
		{thread, act, event.ActionResolved{Decision: "allow", By: "user:ann"}, time.Hour},
		{thread, call, event.ToolStarted{Name: "exec", Attempt: 1}, 0},
		{thread, turn, event.RunStatus{Status: "running", Phase: "takeover", Epoch: 2}, time.Hour},
		{thread, call, event.ToolStarted{Name: "exec", Attempt: 2}, 0},
		{thread, call, event.ArtifactChanged{Kind: "file", Path: "a.go", Op: "created", Kept: true}, time.Second},
		{thread, call, event.ArtifactChanged{Kind: "plan", Op: "changed", Plan: []event.PlanItem{{ID: "1", Text: "fix", Status: "in_progress"}}}, 0},
		{thread, call, event.ArtifactChanged{Kind: "artifact", Op: "published", Name: "r.md", Version: "1", After: &belay.Ref{Digest: "sha256:r", Size: 3}}, 0},
		{thread, call, event.ToolResult{Name: "exec", Attempt: 2, Output: say("ok")}, time.Second},
		{thread, turn, event.TurnCompleted{Summary: say("fixed"), Stats: event.TurnStats{Steps: 1, Calls: 1}}, 0},
		{task, run, event.TaskAttemptCompleted{Summary: say("fixed")}, 0},
		{task, k, event.TaskCompleted{TaskEnd: event.TaskEnd{Outcome: belay.Completed, Summary: say("fixed")}}, 0},
	}
}
