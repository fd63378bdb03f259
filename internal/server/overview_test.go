package server

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/auth"
)

// TestTheOverviewIsTheSessions: what waits, what ended and what went wrong, of the caller's
// tenant and of nobody else's.
// Guarantee: V48.
func TestTheOverviewIsTheSessions(t *testing.T) {
	r := newRig(t, asks)
	mine := r.token(auth.Viewer, auth.DefaultTenant)
	look := func(token string) (o sessions.OverviewShown) {
		t.Helper()
		a := r.do("GET", "/v1/overview", token, "")
		if err := json.Unmarshal(a.body, &o); err != nil || a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return o
	}
	if o := look(mine); o.Questions+o.Runs+o.Day.Sessions+len(o.Trouble) != 0 || o.Needs == nil || o.Running == nil || o.Trouble == nil {
		t.Errorf("an empty store: %+v", o)
	}
	owner := r.token(auth.Owner, auth.DefaultTenant)
	asked, q := question(t, r, owner)
	o := look(mine)
	if o.Questions != 1 || o.Needs[0].Action != q.ID || o.Needs[0].Session != "s1" || o.Needs[0].Prompt != "Which colour?" || !o.Needs[0].Until.Equal(q.Until) || o.Day.Sessions != 1 || len(o.Day.Ends) != 0 {
		t.Errorf("a question: %+v", o)
	}
	if o := look(r.token(auth.Owner, "other")); o.Questions+o.Day.Sessions != 0 {
		t.Errorf("another tenant sees %+v", o)
	}
	r.command("respond_action", owner, `{"actionId":"`+string(q.ID)+`","decision":"answer","message":"red"}`).told(t)
	r.until(owner, asked.Run, "ended")
	if o := look(mine); o.Questions+o.Runs+len(o.Trouble) != 0 || o.Day.Ends[belay.Completed] != 1 {
		t.Errorf("it completed: %+v", o)
	}
	// the script has no more steps: the next turn fails
	next := r.command("submit_turn", owner, `{"sessionId":"s1","text":"more"}`).told(t)
	r.until(owner, next.Run, "ended")
	if o := look(mine); len(o.Trouble) != 1 || o.Trouble[0].Turn != next.Turn || o.Trouble[0].Outcome == belay.Completed || o.Day.Ends[belay.Completed] != 0 || o.Day.Ends[o.Trouble[0].Outcome] != 1 {
		t.Errorf("it failed: %+v", o)
	}
}
