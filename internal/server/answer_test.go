package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/tool"
)

// question submits work that asks and returns the question.
func question(t *testing.T, r *rig, owner string) (app.Result, app.Action) {
	t.Helper()
	told := r.command("submit_turn", owner, `{"text":"go","sessionId":"s1","turnId":"t1"}`).told(t)
	r.until(owner, told.Run, "waiting")
	var all approvals.ActionsShown
	if err := json.Unmarshal(r.do("GET", "/v1/actions?sessionId=s1", owner, "").body, &all); err != nil || len(all.Actions) != 1 {
		t.Fatalf("questions %+v, %v", all, err)
	}
	return told, all.Actions[0]
}

// Guarantee: G61, X8.
func TestOnlyTheSeenVersionIsAnswered(t *testing.T) {
	r := newRig(t, asks)
	owner, approver := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Approver, auth.DefaultTenant)
	told, q := question(t, r, owner)
	if q.Kind != "question" || q.Thread != told.Thread || q.Turn != "t1" || q.Version == "" || q.Until.IsZero() {
		t.Fatalf("the question is %+v", q)
	}
	preview := func(id belay.ActionID) (a answer, p approvals.PreviewShown) {
		a = r.do("GET", "/v1/actions/"+string(id)+"/preview", owner, "")
		json.Unmarshal(a.body, &p) //nolint:errcheck // what isn't there is missed below
		return a, p
	}
	if a, p := preview(q.ID); a.status != 200 || p.Version != q.Version || p.Shows != "text" || !strings.Contains(p.Text, "Which colour?") {
		t.Errorf("its preview: %d %s", a.status, a.body)
	}
	if a, _ := preview("act_none"); a.Code != belay.CodeUnknownAction || a.Field != "path id" {
		t.Errorf("a preview of nothing: %d %s", a.status, a.body)
	}
	respond := func(decision, version, message string) answer {
		return r.command("respond_action", approver, fmt.Sprintf(`{"actionId":%q,"decision":%q,"version":%q,"message":%q}`, q.ID, decision, version, message))
	}
	if a := respond("answer", "0123456789ab", "red"); a.Code != belay.CodeConflict || a.Field != "version" || !strings.Contains(a.Detail, q.Shown) {
		t.Errorf("another version: %d %s", a.status, a.body)
	}
	if a := respond("allow", q.Version, ""); a.Code != belay.CodeBadCommand {
		t.Errorf("a question is no permission: %d %s", a.status, a.body)
	}
	if a := r.command("resolve_permission", approver, fmt.Sprintf(`{"actionId":%q,"decision":"deny"}`, q.ID)); a.Code != belay.CodeBadState {
		t.Errorf("resolve_permission of a question: %d %s", a.status, a.body)
	}
	respond("answer", q.Version, "red").told(t)
	if out := r.until(owner, told.Run, "ended"); out.Outcome != belay.Completed {
		t.Errorf("%+v", out)
	}
	if a, _ := preview(q.ID); a.Code != belay.CodeAlreadyAnswered {
		t.Errorf("a preview of what was answered: %d %s", a.status, a.body)
	}
	if a := respond("answer", q.Version, "blue"); a.Code != belay.CodeAlreadyAnswered {
		t.Errorf("a second answer: %d %s", a.status, a.body)
	}
}

// TestARefusalIsRefusedAgain tells a refused command again under its key.
// Guarantee: V6.
func TestARefusalIsRefusedAgain(t *testing.T) {
	r := newRig(t, asks)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	told, q := question(t, r, owner)
	r.command("respond_action", owner, fmt.Sprintf(`{"actionId":%q,"decision":"answer","message":"red"}`, q.ID)).told(t)
	r.until(owner, told.Run, "ended")
	body := `{"sessionId":"s1","turnId":"t1"}`
	for range 3 {
		if a := r.command("interrupt_turn", owner, body, "Idempotency-Key", "stop"); a.Code != belay.CodeBadState {
			t.Fatalf("a turn that has ended: %d %s", a.status, a.body)
		}
	}
	if a := r.command("interrupt_turn", owner, `{"sessionId":"s1"}`, "Idempotency-Key", "stop"); a.Code != belay.CodeIDConflict || a.Field != "header Idempotency-Key" {
		t.Errorf("another body under the key: %d %s", a.status, a.body)
	}
}

// Guarantee: X8.
func TestOnlyWhoMayAnswerMayWiden(t *testing.T) {
	r := newRig(t, once)
	operator, owner := r.token(auth.Operator, auth.DefaultTenant), r.token(auth.Owner, auth.DefaultTenant)
	for _, c := range []struct {
		settings, field string
	}{
		{`{"allow":["todo"]}`, "settings.allow"}, {`{"mode":"auto"}`, "settings.mode"}, {`{"mode":"accept_edits"}`, "settings.mode"},
		{`{"mode":"on_failure"}`, "settings.mode"}, {`{"mode":"bypass"}`, "settings.mode"},
	} {
		body := `{"text":"go","settings":` + c.settings + `}`
		if a := r.command("submit_turn", operator, body); a.Code != belay.CodeForbidden || a.Field != c.field {
			t.Errorf("operator, %s: %d %s", c.settings, a.status, a.body)
		}
		if a := r.command("submit_turn", owner, body); a.status != 200 {
			t.Errorf("owner, %s: %d %s", c.settings, a.status, a.body)
		}
		for command, of := range map[string]string{"run_agents": `"agents":["reviewer"]`, "call_tool": `"tool":"todo"`} {
			if a := r.command(command, operator, `{`+of+`,"settings":`+c.settings+`}`); a.Code != belay.CodeForbidden || a.Field != c.field {
				t.Errorf("operator, %s with %s: %d %s", command, c.settings, a.status, a.body)
			}
		}
	}
	for _, mode := range []string{"plan", "never", "untrusted", "default"} {
		if a := r.command("submit_turn", operator, `{"text":"go","settings":{"mode":"`+mode+`"}}`); a.status != 200 {
			t.Errorf("operator, mode %s: %d %s", mode, a.status, a.body)
		}
	}
	r.command("submit_turn", owner, `{"text":"go","sessionId":"narrow","settings":{"mode":"plan"}}`).told(t)
	if a := r.command("submit_turn", operator, `{"text":"go","sessionId":"narrow","settings":{"mode":"default"}}`); a.Code != belay.CodeForbidden {
		t.Errorf("operator, from plan to default: %d %s", a.status, a.body)
	}
}

// TestSettingsChangeInARunningTurn gives a turn that waits another mode: the session has
// it, and the turn's thread too. Who may not widen may not do it so either.
func TestSettingsChangeInARunningTurn(t *testing.T) {
	r := newRig(t, asks)
	operator, owner := r.token(auth.Operator, auth.DefaultTenant), r.token(auth.Owner, auth.DefaultTenant)
	question(t, r, owner)
	if a := r.command("update_thread", operator, `{"sessionId":"s1","settings":{"mode":"accept_edits"}}`); a.Code != belay.CodeForbidden || a.Field != "settings.mode" {
		t.Errorf("operator: %d %s", a.status, a.body)
	}
	if a := r.command("update_thread", owner, `{"sessionId":"s1","settings":{"mode":"yolo"}}`); a.Code != belay.CodeUsage || a.Field != "settings.mode" {
		t.Errorf("no mode: %d %s", a.status, a.body)
	}
	told := r.command("update_thread", owner, `{"sessionId":"s1","settings":{"mode":"plan","effort":"low"}}`).told(t)
	if told.Turn != "t1" {
		t.Errorf("the answer is %+v", told)
	}
	after := fmt.Sprintf("?after=%d", told.Position)
	if b := r.do("GET", "/v1/sessions/s1"+after, owner, "").body; !strings.Contains(string(b), `"mode":"plan"`) {
		t.Errorf("the session is %s", b)
	}
	if b := r.do("GET", "/v1/threads/"+string(told.Thread)+"/events"+after+"&types=thread.updated", owner, "").body; !strings.Contains(string(b), `"rules":`) {
		t.Errorf("the thread's facts are %s", b)
	}
}

// TestRequestsAreAudited looks for the record of what was done,
// what was refused, and of strangers, of whom one in a second is enough.
// Guarantee: V9.
func TestRequestsAreAudited(t *testing.T) {
	r := newRig(t, once)
	owner, viewer := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Viewer, auth.DefaultTenant)
	told := r.command("submit_turn", owner, `{"text":"my s3cr3t-of-a-test is out"}`).told(t)
	r.until(owner, told.Run, "ended")
	r.command("interrupt_turn", owner, fmt.Sprintf(`{"sessionId":%q}`, told.Session))
	r.command("create_job", owner, `{}`)
	r.command("get_session", owner, `{}`)
	r.command("submit_turn", viewer, `{"text":"x"}`)
	for range 30 {
		r.do("GET", "/v1/actions", "belay_wrong", "")
	}
	got := map[string]int{}
	st := r.opened[auth.DefaultTenant]
	for rec, err := range st.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := event.Encode(rec.Event.Data)
		if err != nil || strings.Contains(string(raw), "s3cr3t") || strings.Contains(string(raw), owner) || strings.Contains(string(raw), "belay_wrong") {
			t.Errorf("a fact tells what it must not: %s, %v", raw, err)
		}
		if m, ok := rec.Event.Data.(event.ChannelMessage); ok && m.Kind == "audit" && rec.Event.IDs.Session == belay.SystemSession {
			who, _, _ := strings.Cut(m.Principal, ":")
			got[who+" "+m.Command+" "+m.Code]++
		}
	}
	for line, want := range map[string]int{
		"token submit_turn accepted": 1, "token interrupt_turn bad_state": 1, "token create_job unavailable": 1, "token get_session bad_command": 1,
		"token POST /v1/commands/submit_turn forbidden": 1,
	} {
		if got[line] != want {
			t.Errorf("%q is written down %d times, want %d: %v", line, got[line], want, got)
		}
	}
	if n := got["address GET /v1/actions unauthorized"]; n < 1 || n > 10 {
		t.Errorf("30 strangers are written down %d times", n)
	}
}

// note is a tool that is asked for, and keeps what it was called with.
type note struct{ said chan string }

func (note) Spec() tool.Spec {
	return tool.Spec{Name: "note", Doc: "Note it.", Input: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`), Effect: belay.AtMostOnce, Access: belay.Write}
}

func (n note) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	n.said <- string(c.Args)
	return tool.Result{Text: "noted"}, nil
}

// TestWhoChangesACallGivesWork: an approver allows or denies a call as it is; an operator
// changes it, and doesn't allow it thereby; an owner does both at once.
// Guarantee: G63, X8.
func TestWhoChangesACallGivesWork(t *testing.T) {
	w := newWorld(t)
	said := make(chan string, 3)
	w.tools = []tool.Tool{note{said}}
	r := w.serve(t, "steps:\n  - calls:\n      - {tool: note, args: {text: theirs}}\n  - calls:\n      - {tool: note, args: {text: again}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n")
	owner, operator, approver := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Operator, auth.DefaultTenant), r.token(auth.Approver, auth.DefaultTenant)
	told, q := question(t, r, operator)
	answers := func(token, command, args string) answer {
		t.Helper()
		body := fmt.Sprintf(`{"actionId":%q,"decision":"allow","version":%q,"args":%s}`, q.ID, q.Version, args)
		return r.command(command, token, strings.Replace(body, `,"args":}`, "}", 1))
	}
	next := func(than belay.ActionID) app.Action {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			var all approvals.ActionsShown
			if err := json.Unmarshal(r.do("GET", "/v1/actions?sessionId=s1", owner, "").body, &all); err == nil && len(all.Actions) == 1 && all.Actions[0].ID != than {
				return all.Actions[0]
			}
		}
		t.Fatal("nothing else is asked")
		return app.Action{}
	}
	for _, c := range []struct {
		name, token, command, args, field string
	}{
		{"an approver who changes it", approver, "respond_action", `{"text":"mine"}`, "args"},
		{"an approver who changes it otherwise", approver, "resolve_permission", `{"text":"mine"}`, "args"},
		{"an operator who allows it", operator, "respond_action", "", ""},
		{"an operator who allows it as it is", operator, "respond_action", `{"text":"theirs"}`, ""},
		{"an operator who resolves it", operator, "resolve_permission", `{"text":"mine"}`, ""},
	} {
		if a := answers(c.token, c.command, c.args); a.status != 403 || a.Code != belay.CodeForbidden || a.Field != c.field || a.Hint == "" {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
	}
	answers(operator, "respond_action", `{"text":"mine"}`).told(t)
	changed := next(q.ID)
	if !strings.Contains(changed.Shown, "mine") || len(said) > 0 {
		t.Errorf("what is asked then is %q, and %d calls ran", changed.Shown, len(said))
	}
	q = changed
	answers(approver, "respond_action", "").told(t)
	if got := <-said; got != `{"text":"mine"}` {
		t.Errorf("it ran with %s", got)
	}
	q = next(q.ID)
	answers(owner, "respond_action", `{"text":"both"}`).told(t)
	if got := <-said; got != `{"text":"both"}` {
		t.Errorf("it ran with %s", got)
	}
	r.until(owner, told.Run, "ended")
}
