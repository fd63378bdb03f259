package server

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/policy"
)

// TestACallIsJudgedWithoutBeingMade asks what the rules make of calls: nothing is
// recorded, and nothing runs.
func TestACallIsJudgedWithoutBeingMade(t *testing.T) {
	r := newRig(t, once)
	viewer, owner := r.token(auth.Viewer, auth.DefaultTenant), r.token(auth.Owner, auth.DefaultTenant)
	told := r.command("submit_turn", owner, `{"text":"go","sessionId":"s1"}`).told(t)
	r.until(owner, told.Run, "ended")
	st := r.opened[auth.DefaultTenant]
	before, err := st.Head(t.Context(), told.Thread.Stream())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body string
		want policy.Decision
	}{
		{`{"tool":"complete_task","args":{"summary":"x"}}`, policy.Allow},
		{`{"tool":"complete_task","sessionId":"s1"}`, policy.Allow},
		{`{"tool":"complete_task","sessionId":"s1","threadId":"` + string(told.Thread) + `","after":1}`, policy.Allow},
	} {
		a := r.command("evaluate_permission", viewer, c.body)
		var out policies.PermissionShown
		if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK || out.Decision != c.want || out.Rule != "builtin/complete" || out.Reason == "" || len(out.Matched) == 0 {
			t.Errorf("%s: %d %s (%v)", c.body, a.status, a.body, err)
		}
	}
	for _, c := range []struct {
		body, field string
		code        belay.Code
	}{
		{`{"tool":"no_such_tool"}`, "tool", belay.CodeNotFound},
		{`{"tool":"complete_task","sessionId":"s9"}`, "sessionId", belay.CodeNotFound},
		{`{"tool":"complete_task","sessionId":"s1","threadId":"thr_9"}`, "threadId", belay.CodeNotFound},
		{`{"tool":"complete_task","threadId":"thr_9"}`, "threadId", belay.CodeBadCommand},
		{`{"tool":"complete_task","sessionId":"s1","workspace":"/x"}`, "workspace", belay.CodeBadCommand},
		{`{"tool":"complete_task","args":"{}"}`, "args", belay.CodeBadCommand},
	} {
		if a := r.command("evaluate_permission", viewer, c.body); a.Code != c.code || a.Field != c.field {
			t.Errorf("%s: %d %s, want %s at %s", c.body, a.status, a.body, c.code, c.field)
		}
	}
	if after, err := st.Head(t.Context(), told.Thread.Stream()); err != nil || after != before {
		t.Errorf("the thread went on: %v, %v (%v)", before, after, err)
	}
}
