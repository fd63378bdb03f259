package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/auth"
)

// get reads a route that answers.
func get[T any](t *testing.T, r *rig, token, path string) (out T) {
	t.Helper()
	a := r.do("GET", path, token, "")
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, a.status, a.body, err)
	}
	return out
}

// TestUseAndDecisionsAreTheFacts of the caller's tenant, until their session is deleted.
// Guarantee: V50.
func TestUseAndDecisionsAreTheFacts(t *testing.T) {
	r := newRig(t, asks)
	owner, viewer := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Viewer, auth.DefaultTenant)
	asked, q := question(t, r, owner)
	r.command("respond_action", owner, `{"actionId":"`+string(q.ID)+`","decision":"answer","message":"red"}`).told(t)
	r.until(owner, asked.Run, "ended")
	by := func(what string) sessions.UsageShown {
		return get[sessions.UsageShown](t, r, viewer, "/v1/usage?by="+what)
	}
	for what, of := range map[string]string{"day": time.Now().UTC().Format(time.DateOnly), "session": "s1", "model": "scripted", "outcome": "completed"} {
		u := by(what)
		if len(u.Rows) != 1 || u.Rows[0].Of != of || u.Stale || u.Total.Requests != 2 || u.Total.Turns != 1 || u.Total.Calls != 2 {
			t.Errorf("by %s: %+v", what, u)
		}
		if u.Total.Cost.State() != "unknown" || u.Total.Cost.Unpriced == 0 {
			t.Errorf("by %s a cost that nothing told: %+v", what, u.Total.Cost)
		}
	}
	if u := by("tool"); len(u.Rows) != 2 || u.Rows[0].Calls+u.Rows[1].Calls != 2 {
		t.Errorf("by tool: %+v", u)
	}
	decided := get[approvals.ActionsShown](t, r, viewer, "/v1/actions?state=decided")
	if len(decided.Actions) != 0 || len(decided.Decided) != 1 || decided.Decided[0].ID != q.ID || decided.Decided[0].Decision != "answer" || decided.Decided[0].Message != "red" || !strings.HasPrefix(decided.Decided[0].By, "token:") {
		t.Errorf("decided: %+v", decided)
	}
	verdicts := get[policies.DecisionsListed](t, r, viewer, "/v1/decisions?limit=1")
	if len(verdicts.Decisions) != 1 || verdicts.Next == 0 || verdicts.Decisions[0].Rule != "builtin/complete" || !strings.Contains(verdicts.Decisions[0].What, "Done.") {
		t.Errorf("verdicts: %+v", verdicts)
	}
	if v := get[policies.DecisionsListed](t, r, viewer, fmt.Sprintf("/v1/decisions?before=%d", verdicts.Next)); len(v.Decisions) != 1 || v.Next != 0 || v.Decisions[0].Tool != "ask_user" {
		t.Errorf("the one before: %+v", v)
	}
	var rules policies.RulesListed
	if err := json.Unmarshal(r.command("list_rules", viewer, "{}").body, &rules); err != nil || len(rules.Rules) < 10 {
		t.Fatalf("rules: %v", err)
	}
	for _, rule := range rules.Rules {
		if want := map[string]int{"builtin/complete": 1, "builtin/ask-user": 1}[rule.Rule]; rule.Hits.Allow != want || want > 0 && rule.Hits.Last.IsZero() {
			t.Errorf("%s has %+v", rule.Rule, rule.Hits)
		}
	}
	for _, path := range []string{"/v1/usage?by=nothing", "/v1/usage?from=yesterday", "/v1/usage?zone=soon", "/v1/programs?status=odd", "/v1/actions?state=odd", "/v1/decisions?before=-1", "/v1/sessions?outcome=odd", "/v1/sessions?before=here"} {
		if a := r.do("GET", path, viewer, ""); a.status != http.StatusBadRequest || a.Hint == "" || !strings.HasPrefix(a.Field, "query ") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	other := r.token(auth.Owner, "other")
	if u := get[sessions.UsageShown](t, r, other, "/v1/usage"); len(u.Rows) != 0 || u.Total.Requests != 0 {
		t.Errorf("another tenant sees %+v", u)
	}
	if d := get[approvals.ActionsShown](t, r, other, "/v1/actions?state=decided"); len(d.Decided) != 0 {
		t.Errorf("another tenant sees %+v", d)
	}
	if a := r.command("delete_session", owner, `{"sessionId":"s1"}`); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if u := by("session"); len(u.Rows) != 0 {
		t.Errorf("of a deleted session: %+v", u)
	}
	if d := get[policies.DecisionsListed](t, r, viewer, "/v1/decisions"); len(d.Decisions) != 0 {
		t.Errorf("of a deleted session: %+v", d)
	}
}

// TestContentIsReadByItsFact alone: in parts, from a text on, by nobody else.
// Guarantee: V52.
func TestContentIsReadByItsFact(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	long := strings.Repeat("a line of a long text, ä İ\n", 6000) + "here is the Needle in it\n" + strings.Repeat("more\n", 100)
	told := r.command("submit_turn", owner, mustJSON(t, map[string]string{"sessionId": "s1", "text": long})).told(t)
	r.until(owner, told.Run, "ended")
	r.command("submit_turn", owner, `{"sessionId":"s2","text":"hello"}`).told(t)
	page := get[read.Page](t, r, owner, "/v1/sessions/s1/events?types=turn.submitted")
	ref := page.Events[0].Data.(event.TurnSubmitted).Text.Ref
	if ref == nil {
		t.Fatalf("the text isn't kept beside the fact: %+v", page.Events[0].Data)
	}
	path := "/v1/content/" + string(ref.Digest) + "?session=s1"
	var whole strings.Builder
	for offset := int64(0); ; {
		c := get[storage.ContentShown](t, r, owner, fmt.Sprintf("%s&offset=%d", path, offset))
		whole.WriteString(c.Text)
		if offset = c.Next; offset == 0 {
			break
		}
	}
	if whole.String() != long {
		t.Errorf("%d bytes of %d", whole.Len(), len(long))
	}
	c := get[storage.ContentShown](t, r, owner, path+"&find="+url.QueryEscape("the needle"))
	if c.Found == nil || *c.Found != int64(strings.Index(long, "the Needle")) || !strings.HasPrefix(c.Text, "here is the Needle") {
		t.Errorf("found: %+v", c)
	}
	if c = get[storage.ContentShown](t, r, owner, path+"&find=needle&offset="+fmt.Sprint(*c.Found+6)); c.Found != nil || c.Text != "" {
		t.Errorf("found behind it: %+v", c)
	}
	if c = get[storage.ContentShown](t, r, owner, path+"&offset=70000&find="+url.QueryEscape("ä İ\n")); c.Found == nil || (*c.Found+6)%29 != 0 || *c.Found < 70000 { // a line has 29 bytes
		t.Errorf("found: %+v", c)
	}
	for name, a := range map[string]answer{
		"another session": r.do("GET", strings.Replace(path, "s1", "s2", 1), owner, ""), "an unknown session": r.do("GET", strings.Replace(path, "s1", "s9", 1), owner, ""),
		"another tenant": r.do("GET", path, r.token(auth.Owner, "other"), ""), "another content": r.do("GET", strings.Replace(path, string(ref.Digest), string(belay.DigestOf(nil)), 1), owner, ""),
	} {
		if a.status != http.StatusNotFound || a.Code != belay.CodeNotFound {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestContentOfADeletedSessionIsNotRead, though another session's is the same.
func TestContentOfADeletedSessionIsNotRead(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	long := mustJSON(t, strings.Repeat("a line of a long text\n", 4000))
	path := ""
	for _, s := range []string{"s1", "s2"} {
		told := r.command("submit_turn", owner, `{"sessionId":"`+s+`","text":`+long+`}`).told(t)
		r.until(owner, told.Run, "ended")
		path = "/v1/content/" + string(get[read.Page](t, r, owner, "/v1/sessions/"+s+"/events?types=turn.submitted").Events[0].Data.(event.TurnSubmitted).Text.Ref.Digest) + "?session="
		if a := r.do("GET", path+s, owner, ""); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if a := r.command("delete_session", owner, `{"sessionId":"s1"}`); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for s, want := range map[string]int{"s1": http.StatusNotFound, "s2": http.StatusOK} {
		if a := r.do("GET", path+s, owner, ""); a.status != want {
			t.Errorf("%s: %d %s", s, a.status, a.body)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAListGoesOnWhereItStopped, and a window has what has the words.
func TestAListGoesOnWhereItStopped(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	for i := range 3 {
		told := r.command("submit_turn", owner, fmt.Sprintf(`{"sessionId":"s%d","text":"Find the zebra %d."}`, i, i)).told(t)
		r.until(owner, told.Run, "ended")
	}
	seen := map[belay.SessionID]bool{}
	for next := ""; ; {
		l := get[read.Sessions](t, r, owner, "/v1/sessions?limit=1&q=zebra&outcome=completed&before="+url.QueryEscape(next))
		if len(l.Sessions) != 1 || l.Total != 3 || seen[l.Sessions[0].ID] {
			t.Fatalf("a part: %+v", l)
		}
		seen[l.Sessions[0].ID] = true
		if next = l.Next; next == "" {
			break
		}
	}
	if len(seen) != 3 {
		t.Errorf("seen: %v", seen)
	}
	p := get[read.Page](t, r, owner, "/v1/sessions/s1/story?q=ZEBRA+1.")
	if len(p.Items) != 1 || p.Items[0].Kind != "user_message" || p.MoreOlder {
		t.Errorf("items with the words: %+v", p)
	}
	if p = get[read.Page](t, r, owner, "/v1/sessions/s1/events?q=okapi"); len(p.Events) != 0 {
		t.Errorf("facts without them: %+v", p.Events)
	}
}
