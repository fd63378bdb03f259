package transfer

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
)

// TestWhatASessionFromOutsideCouldDo: each way to act without asking is a
// reason to ask a person first.
// Guarantee: X20.
func TestWhatASessionFromOutsideCouldDo(t *testing.T) {
	const s, th, task1 = belay.StreamID("session/sess_1"), belay.StreamID("thread/thr_1"), belay.StreamID("task/task_1")
	created := func(b belay.Settings) event.Payload { return event.SessionCreated{Workspace: "/w", Settings: b} }
	for _, c := range []struct {
		what  string
		facts map[belay.StreamID][]event.Payload
		rests bool
		want  string
	}{
		{"nothing", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{Mode: belay.ModeDefault})}}, true, ""},
		{"work goes on", nil, false, "has work that hasn't ended"},
		{"it edits", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{Mode: belay.ModeAcceptEdits})}}, true, "runs in mode accept_edits"},
		{"a mode nobody knows", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{Mode: "bypass"})}}, true, "runs in mode bypass"},
		{"a setting", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{Allow: []string{"exec"}})}}, true, "may use exec without asking"},
		{"a grant", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{}),
			event.PolicyChanged{Kind: "grant", Op: "granted", Tool: "write", Tier: "user", Scope: "session"}}}, true, "may use write without asking"},
		{"an answer for the session", map[belay.StreamID][]event.Payload{th: {
			event.PolicyChanged{Kind: "grant", Op: "granted", Tool: "exec", Tier: "user", Scope: "session"}}}, true, "may use exec without asking"},
		{"a worktree", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{}),
			event.SessionUpdated{Worktree: &belay.Worktree{Repository: "/r", Path: "/p"}}}}, true, "works in a worktree of /r"},
		{"an answer for all its agents", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{}),
			event.PolicyChanged{Kind: "grant", Op: "granted", Grant: "evt_1", Thread: "thr_1", Tool: "exec", Tier: "user", Scope: "session"}}}, true, "may use exec without asking"},
		{"an agent that can be told more", map[belay.StreamID][]event.Payload{s: {created(belay.Settings{}),
			event.SubagentSpawned{Thread: "thr_2", Task: "task_2", Agent: "general", Rules: belay.Ref{Digest: "sha256:1"}}, event.SubagentCompleted{}}}, true, "has agents that keep the rules of where it comes from"},
		{"a turn that is paused", map[belay.StreamID][]event.Payload{th: {
			event.TurnSubmitted{Rules: belay.Ref{Digest: "sha256:1"}}, event.ThreadUpdated{Pause: &event.Pause{Op: event.Paused}}}}, true, "has turns that haven't ended"},
		{"a task that waits for another", map[belay.StreamID][]event.Payload{task1: {
			event.TaskCreated{}, event.TaskQueued{Reason: "blocked", Turn: "turn_1", Rules: &belay.Ref{Digest: "sha256:1"}}}}, true, "has tasks that haven't begun"},
	} {
		folded := map[belay.StreamID]engine.Folded{}
		for stream, facts := range c.facts {
			var d core.Decider = session.New(stream)
			switch stream.Kind() {
			case belay.KindThread:
				d = thread.New(stream)
			case belay.KindTask:
				d = task.New(stream)
			}
			for i, p := range facts {
				d.Apply(event.Envelope{Stream: stream, Seq: int64(i + 1), IDs: belay.IDs{Session: "sess_1", Turn: "turn_1", Subagent: "sub_1"}, Data: p})
			}
			folded[stream] = engine.Folded{Decider: d}
		}
		if got := strings.Join(risks(folded, c.rests), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
