package transfer

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
)

// TestWhatASessionFromOutsideCouldDo: each way to act without asking is a
// reason to ask a person first.
// Guarantee: X20.
func TestWhatASessionFromOutsideCouldDo(t *testing.T) {
	const s, th = belay.StreamID("session/sess_1"), belay.StreamID("thread/thr_1")
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
	} {
		folded := map[belay.StreamID]engine.Folded{}
		for stream, facts := range c.facts {
			var d core.Decider = session.New(stream)
			if stream.Kind() == belay.KindThread {
				d = thread.New(stream)
			}
			for i, p := range facts {
				d.Apply(event.Envelope{Stream: stream, Seq: int64(i + 1), IDs: belay.IDs{Session: "sess_1"}, Data: p})
			}
			folded[stream] = engine.Folded{Decider: d}
		}
		if got := strings.Join(risks(folded, c.rests), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
