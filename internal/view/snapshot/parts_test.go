package snapshot_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/view/snapshot"
)

// told folds facts twice, once saved and loaded after each, and holds every
// snapshot on the way against the standard.
type told struct {
	t     *testing.T
	f     *snapshot.Fold
	saved *snapshot.Fold
	seq   map[belay.StreamID]int64
	now   time.Time
}

func newTold(t *testing.T) *told {
	return &told{t: t, f: snapshot.New("rt_1", "sess_1"), saved: snapshot.New("rt_1", "sess_1"), seq: map[belay.StreamID]int64{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// of are the ids of the thread's turn, and perhaps of a call.
func of(call string) belay.IDs {
	return belay.IDs{Thread: "thr_1", Turn: "turn_1", Task: "task_1", Run: "run_1", Call: belay.CallID(call)}
}

func (w *told) add(ids belay.IDs, facts ...event.Payload) *snapshot.Session {
	w.t.Helper()
	s := ids.Thread.Stream()
	if ids.Thread == "" {
		s = "session/sess_1"
	}
	for _, p := range facts {
		w.seq[s]++
		ids.Session = "sess_1"
		e := event.Envelope{Stream: s, Seq: w.seq[s], Time: w.now, IDs: ids, Data: p}
		w.f.Apply(e)
		w.saved.Apply(e)
		raw, err := w.saved.Save()
		if err != nil {
			w.t.Fatal(err)
		}
		if w.saved, err = snapshot.Load(raw); err != nil {
			w.t.Fatal(err)
		}
	}
	w.now = w.now.Add(time.Second)
	out := w.f.Done(true)
	whole := encoded(w.t, out)
	again, err := snapshot.Load(must(w.saved.Save()))
	if err != nil {
		w.t.Fatal(err)
	}
	if kept := encoded(w.t, again.Done(true)); !bytes.Equal(kept, whole) {
		w.t.Fatalf("kept after each fact it is\n%s\nfolded at once\n%s", kept, whole)
	}
	if len(out.Threads) > 0 {
		if err := eventtest.InvalidSnapshot(whole); err != nil {
			w.t.Fatalf("%v\n%s", err, whole)
		}
	}
	return out
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestWhatAModelIsGivenIsTold: items, omissions and taint of the newest turn, what
// a person cleared, compactions and rollbacks.
// Guarantee: L21.
func TestWhatAModelIsGivenIsTold(t *testing.T) {
	w := newTold(t)
	s := w.add(of(""), event.ThreadStarted{Kind: "main", Beginning: belay.Beginning{ImportedFrom: &belay.Import{Format: "claude"}}})
	if c := s.Threads[0].Context; c.Status != "unknown" || fmt.Sprint(c.Taint) != "[import:claude]" || c.Compaction.Status != "not_applicable" {
		t.Errorf("before a turn: %+v", c)
	}
	s = w.add(of(""), event.TurnSubmitted{}, event.TurnStarted{}, event.ToolCatalogResolved{Tools: []string{"read", "edit"}},
		event.ContextResolved{Items: []event.ContextItem{{Kind: "instruction", Name: "AGENTS.md"}}, Omitted: []event.ContextOmission{{Kind: "file", Name: "x", Reason: "budget"}}},
		event.ContextResolved{Taint: []string{"web:fetch", "import:claude"}})
	if c := s.Threads[0].Context; c.Status != "resolved" || c.TurnID != "turn_1" || c.Tools != 2 || len(c.Items) != 1 || c.Omitted[0].Reason != "budget" || fmt.Sprint(c.Taint) != "[import:claude web:fetch]" {
		t.Errorf("in a turn: %+v", c)
	}
	s = w.add(of(""), event.ActionResolved{Decision: "allow", Taint: []string{"web:fetch"}}, event.ContextCompactionStarted{Trigger: "threshold", From: 1, To: 9, Tokens: 900})
	if c := s.Threads[0].Context; fmt.Sprint(c.Taint) != "[import:claude]" || c.Compaction.Status != "running" || c.Compaction.Before != 900 {
		t.Errorf("while it is made shorter: %+v", c)
	}
	s = w.add(of(""), event.ContextCompactionFailed{Trigger: "threshold", Problem: event.Problem{Message: "no"}})
	if c := s.Threads[0].Context.Compaction; c.Status != "failed" || c.To != 9 || c.Reason != "no" {
		t.Errorf("when that failed: %+v", c)
	}
	second := of("")
	second.Turn = "turn_2"
	s = w.add(second, event.ContextCompactionCompleted{Trigger: "manual", From: 1, To: 9, TokensBefore: 900, TokensAfter: 90},
		event.TurnCompleted{}, event.TurnStarted{}, event.HistoryRollbackCompleted{Scope: event.ScopeThread, Turns: []belay.TurnID{"turn_1"}})
	if c := s.Threads[0].Context; c.Compaction.After != 90 || c.Compaction.Status != "completed" || c.Rollbacks != 1 || fmt.Sprint(c.Back) != "[turn_1]" || len(c.Items)+len(c.Omitted) != 0 || c.TurnID != "turn_2" {
		t.Errorf("in the next turn: %+v", c)
	}
}

// TestLargeOutputsAreTold: what was kept, what of it was read, and what is gone.
func TestLargeOutputsAreTold(t *testing.T) {
	w := newTold(t)
	a, b := belay.Ref{Digest: belay.DigestOf([]byte("a")), Size: 9000}, belay.Ref{Digest: belay.DigestOf([]byte("b")), Size: 50}
	w.add(of(""), event.ThreadStarted{Kind: "main"}, event.TurnSubmitted{}, event.TurnStarted{})
	w.add(of("call_1"), event.OutputSpilled{Owner: "process", Bytes: 9000, Ref: &a}, event.OutputTruncated{Bytes: 9000, Shown: 400, Ref: &a})
	w.add(of("call_2"), event.OutputSpilled{Owner: "process", Bytes: 50, Ref: &b})
	s := w.add(of("call_3"), event.OutputTruncated{Bytes: 7, Shown: 3}, event.OutputRedacted{Count: 2}, event.OutputExpired{Digest: a.Digest})
	o := s.Outputs
	got := fmt.Sprint(o.Total, o.Shown, o.Bytes, o.Truncated, o.Redacted, o.Expired)
	for _, x := range o.Outputs {
		got += fmt.Sprint("; ", x.CallID, " ", x.Status, " ", x.Read, "/", x.Bytes, " ", x.Whole)
	}
	if want := "3 3 9050 2 2 1; call_1 expired 400/9000 false; call_2 kept 50/50 true; call_3 not_kept 3/7 false"; got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	var many []event.Payload
	for i := range 250 {
		ref := belay.Ref{Digest: belay.DigestOf([]byte(fmt.Sprint(i))), Size: 1}
		many = append(many, event.OutputSpilled{Bytes: 1, Ref: &ref})
	}
	s = w.add(of("call_4"), many...)
	if n := len(s.Outputs.Outputs); n != 200 || s.Outputs.Shown != n || s.Outputs.Total != 253 {
		t.Errorf("of %d outputs %d are shown, %d it says", s.Outputs.Total, n, s.Outputs.Shown)
	}
}

// TestPermissionsAreTold: verdicts, the outcome of questions, grants until they
// are taken back or used up, boundaries and what they stopped.
// Guarantee: L21.
func TestPermissionsAreTold(t *testing.T) {
	w := newTold(t)
	w.add(belay.IDs{}, event.SessionCreated{Workspace: "/w", Settings: belay.Settings{Mode: belay.ModeDefault, Limits: belay.Limits{Steps: 7}}},
		event.PolicyChanged{Kind: "grant", Op: "granted", Tool: "read", Scope: "session"})
	w.add(of(""), event.ThreadStarted{Kind: "main"}, event.TurnSubmitted{}, event.TurnStarted{})
	w.add(of("call_1"), event.PermissionEvaluated{Decision: "ask", Tool: "exec", Rule: "r1"}, event.PermissionResolved{Decision: "allow", By: "user:ada"},
		event.PolicyChanged{Kind: "grant", Op: "granted", Tool: "exec", Scope: "count", Count: 2, By: "user:ada"})
	counted := belay.EventIDOf("thread/thr_1", 6)
	s := w.add(of("call_2"), event.PermissionEvaluated{Decision: "allow", Tool: "exec", Grant: counted}, event.PermissionEvaluated{Decision: "deny", Tool: "rm", ReasonCode: "NO"},
		event.SandboxApplied{Level: "L2", Boundary: "tight", Network: "none"}, event.SandboxViolation{Layer: "landlock", Op: "write", Target: "/etc"})
	p := s.Permission
	if len(p.Grants) != 2 || p.Grants[1].GrantID != counted || p.Grants[1].Used != 1 || p.Grants[1].ThreadID != "thr_1" || p.Grants[0].ThreadID != "" {
		t.Errorf("grants: %+v", p.Grants)
	}
	if p.Allowed != 1 || p.Asked != 1 || p.Denied != 1 || len(p.Recent) != 2 || p.Recent[0].Resolved != "allow" || p.Recent[0].By != "user:ada" || p.Recent[1].Resolved != "" {
		t.Errorf("verdicts: %+v", p)
	}
	if s.Sandbox.Boundary != "tight" || p.Violated != 1 || p.Violations[0].Target != "/etc" || p.Violations[0].CallID != "call_2" {
		t.Errorf("boundary: %+v %+v", s.Sandbox, p.Violations)
	}
	w.add(of(""), event.PolicyChanged{Kind: "grant", Op: "used_up", Grant: counted, Tool: "exec"})
	s = w.add(belay.IDs{}, event.PolicyChanged{Kind: "grant", Op: "revoked", Grant: belay.EventIDOf("session/sess_1", 2), Tool: "read"})
	if len(s.Permission.Grants) != 0 {
		t.Errorf("what was used up and taken back counts yet: %+v", s.Permission.Grants)
	}
	if e := s.Environment; e.Status != "available" || e.Workspace != "/w" || e.Limits.Steps != 7 {
		t.Errorf("environment: %+v", e)
	}
}

// TestProgramsThatOutliveTheirTurn are listed until they end, and their end
// needs no turn.
// Guarantee: L21.
func TestProgramsThatOutliveTheirTurn(t *testing.T) {
	w := newTold(t)
	w.add(belay.IDs{}, event.SessionCreated{Workspace: "/w"})
	w.add(of(""), event.ThreadStarted{Kind: "main"}, event.TurnSubmitted{}, event.TurnStarted{})
	left := of("call_1")
	left.Process = "proc_1"
	s := w.add(left, event.ProcessStarted{PID: 7, Argv: []string{"sleep", "9"}, Cwd: "/w"})
	if p := s.Threads[0].Processes; len(p) != 1 || p[0].Argv[0] != "sleep" || s.Environment.Programs.Running != 1 {
		t.Errorf("it runs: %+v", p)
	}
	s = w.add(of(""), event.TurnCompleted{})
	if len(s.Threads[0].Processes) != 1 {
		t.Errorf("after its turn it is gone")
	}
	s = w.add(left, event.ProcessTerminated{Signal: "SIGTERM", Reason: "cancelled", ProcessUse: event.ProcessUse{Limit: "memory"}})
	if g := s.Environment.Programs; len(s.Threads[0].Processes) != 0 || g.Running != 0 || g.Started != 1 || g.Limited != 1 {
		t.Errorf("it has ended: %+v %+v", s.Threads[0].Processes, g)
	}
}

// TestATurnThatJoinedIsKept: a fold that is saved while a turn is part of the
// running one ends as one that wasn't.
// Guarantee: L20.
func TestATurnThatJoinedIsKept(t *testing.T) {
	w := newTold(t)
	second := of("")
	second.Turn = "turn_2"
	w.add(of(""), event.ThreadStarted{Kind: "main"}, event.TurnSubmitted{}, event.TurnStarted{})
	w.add(second, event.TurnSubmitted{Text: belay.Content{Text: "and this"}}, event.QueueChanged{Op: event.QueueJoined, Turn: "turn_2", Into: "turn_1"})
	w.add(of(""), event.TurnCompleted{})
	s := w.add(second, event.TurnCompleted{})
	if n := len(s.Threads[0].Turns); n != 2 || s.Threads[0].Turns[1].Input != "and this" || s.Threads[0].Turns[1].Into != "turn_1" {
		t.Errorf("%d turns: %+v", n, s.Threads[0].Turns[n-1])
	}
}
