package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/builtin"
)

// sample is a value of the right shape for a field, and one of a wrong shape.
func sample(t reflect.Type) (right, wrong string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Time]() {
		return `"2030-01-02T03:04:05Z"`, `7`
	}
	if t == reflect.TypeFor[input.Base64]() {
		return `"eHg="`, `"x"`
	}
	if t == reflect.TypeFor[json.RawMessage]() { // any value is right
		return "{}", ""
	}
	switch t.Kind() {
	case reflect.Struct:
		optional := func(f input.Field) bool { return !f.Required }
		return body(slices.DeleteFunc(input.Fields(t), optional), nil), `"x"`
	case reflect.Slice:
		return "[]", `{}`
	case reflect.Map:
		return "{}", `[]`
	case reflect.Bool:
		return "true", `"true"`
	case reflect.Int, reflect.Int64:
		return "1", `1.5`
	}
	return `"x"`, `7`
}

// body is an object with a right value for every field but those that are given.
func body(fields []input.Field, other map[string]string) string {
	var parts []string
	for _, f := range fields {
		value, _ := sample(f.Of)
		if v, ok := other[f.Name]; ok {
			value = v
		}
		if value != "" {
			parts = append(parts, `"`+f.Name+`":`+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestEveryFieldOfEveryCommandIsHeldToItsType sends, over HTTP, each command
// with each field missing, of a wrong type, misspelt and twice; and each body
// that isn't JSON with one meaning.
// Guarantee: V5.
func TestEveryFieldOfEveryCommandIsHeldToItsType(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	refused := func(c app.Command, what, field, body string) {
		t.Helper()
		a := r.command(c.Name, owner, body)
		if a.status != http.StatusBadRequest || a.Code != belay.CodeBadCommand || field != "*" && a.Field != field || a.Hint == "" {
			t.Errorf("%s, %s: %d %s, want 400 bad_command at %q", c.Name, what, a.status, a.body, field)
		}
	}
	for _, c := range builtin.Commands() {
		if c.Later == "" {
			fields := input.Fields(c.In)
			refused(c, "an unknown field", "nobodyKnowsThis", body(append(fields, input.Field{Name: "nobodyKnowsThis", Of: reflect.TypeFor[string]()}), nil))
			for _, f := range fields {
				right, wrong := sample(f.Of)
				if wrong != "" {
					refused(c, f.Name+" of a wrong type", f.Name, body(fields, map[string]string{f.Name: wrong}))
				}
				refused(c, f.Name+" twice", f.Name, strings.TrimSuffix(body(fields, nil), "}")+`,"`+f.Name+`":`+right+"}")
				upper := strings.ToUpper(f.Name[:1]) + f.Name[1:]
				refused(c, f.Name+" misspelt", upper, strings.TrimSuffix(body(fields, map[string]string{f.Name: ""}), "}")+comma(len(fields) > 1)+`"`+upper+`":`+right+"}")
				if f.Required {
					refused(c, f.Name+" missing", f.Name, body(fields, map[string]string{f.Name: ""}))
				}
				if f.Of.Kind() == reflect.Int64 {
					refused(c, f.Name+" huge", f.Name, body(fields, map[string]string{f.Name: "9" + strings.Repeat("9", 17)}))
					refused(c, f.Name+" beyond all bounds", "*", body(fields, map[string]string{f.Name: "1e999999999"}))
				}
			}
		}
		for what, bad := range map[string]string{
			"nothing but space": "  \n", "not JSON": "hello", "cut": `{"a":`, "two values": `{} {}`, "a comment": "{} // x", "half a surrogate": `{"a":"\ud800"}`,
			"no UTF-8": "{\"a\":\"\xff\"}", "deep": strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "a key twice": `{"a":1,"a":1}`, "a byte order mark": "\ufeff{}",
		} {
			refused(c, what, "*", bad)
		}
	}
}

func comma(want bool) string {
	if want {
		return ","
	}
	return ""
}

// Guarantee: V5.
func TestABodyIsBounded(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	for _, c := range []struct {
		name, command, body string
		status              int
		code                belay.Code
		field               string
	}{
		{"a body that is too large", "pin_context", `{"text":"` + strings.Repeat("x", app.MaxBody) + `"}`, 413, belay.CodeTooLarge, "body"},
		{"a text that is too long", "submit_turn", `{"text":"` + strings.Repeat("x", app.MaxText+1) + `"}`, 413, belay.CodeTooLarge, "text"},
		{"an object that is cut", "submit_turn", `{`, 400, belay.CodeBadCommand, "body"},
		{"settings that are cut", "submit_turn", `{"settings":{"mode":"plan",}}`, 400, belay.CodeBadCommand, "settings"},
		{"a NUL character", "submit_turn", `{"text":"a\u0000b"}`, 400, belay.CodeBadCommand, "text"},
		{"an empty text", "submit_turn", `{"text":" \n"}`, 400, belay.CodeBadCommand, "text"},
		{"a file without a name", "submit_turn", `{"text":"x","attachments":[{"name":" ","content":""}]}`, 400, belay.CodeBadCommand, "attachments[0].name"},
		{"a file that isn't base64", "submit_turn", `{"text":"x","attachments":[{"name":"a","content":"%"}]}`, 400, belay.CodeBadCommand, "attachments[0].content"},
		{"a file that no model takes", "submit_turn", `{"text":"x","attachments":[{"name":"a","content":""},{"name":"b","content":"AAEC"}]}`, 400, belay.CodeUsage, "attachments[1]"},
		{"too many files", "submit_turn", `{"text":"x","attachments":[` + strings.Repeat(`{"name":"a","content":""},`, 16) + `{"name":"a","content":""}]}`, 413, belay.CodeTooLarge, "attachments"},
		{"a bad id", "submit_turn", `{"text":"x","turnId":"../../etc"}`, 400, belay.CodeBadID, "turnId"},
		{"a long id", "submit_turn", `{"text":"x","sessionId":"` + strings.Repeat("s", 129) + `"}`, 400, belay.CodeBadID, "sessionId"},
		{"the system's session", "submit_turn", `{"text":"x","sessionId":"sess_runtime"}`, 409, belay.CodeBadState, "sessionId"},
		{"a word that isn't one", "submit_turn", `{"text":"x","queue":"jump"}`, 400, belay.CodeBadCommand, "queue"},
		{"a priority that isn't one", "submit_turn", `{"text":"x","priority":"9"}`, 400, belay.CodeBadCommand, "priority"},
		{"a mode that isn't one", "submit_turn", `{"text":"x","settings":{"mode":"yolo"}}`, 400, belay.CodeUsage, "settings.mode"},
		{"a setting that isn't one", "submit_turn", `{"text":"x","settings":{"baseUrl":"http://x"}}`, 400, belay.CodeBadCommand, "settings.baseUrl"},
		{"a list with a number", "submit_turn", `{"text":"x","settings":{"allow":["a",1]}}`, 400, belay.CodeBadCommand, "settings.allow[1]"},
		{"a folder that isn't its", "submit_turn", `{"text":"x","workspace":"/etc"}`, 403, belay.CodeForbidden, "workspace"},
		{"a session that isn't there", "get_session", `{"sessionId":"s9"}`, 404, belay.CodeNotFound, "sessionId"},
		{"a position before the first", "get_session", `{"sessionId":"s1","after":-5}`, 400, belay.CodeBadCursor, "after"},
		{"a channel that isn't there", "ack_events", `{"channelId":"c9","position":1}`, 404, belay.CodeNotFound, "channelId"},
		{"the beginning of an id", "get_session", `{"sessionId":"s"}`, 404, belay.CodeNotFound, "sessionId"},
		{"an action that isn't there", "respond_action", `{"actionId":"act_1","decision":"deny"}`, 404, belay.CodeUnknownAction, "actionId"},
		{"a decision that isn't one", "respond_action", `{"actionId":"act_1","decision":"maybe"}`, 400, belay.CodeBadCommand, "decision"},
		{"an answer that says nothing", "respond_action", `{"actionId":"act_1","decision":"answer","message":" "}`, 400, belay.CodeBadCommand, "message"},
		{"a prefix without one", "respond_action", `{"actionId":"act_1","decision":"allow","scope":"prefix"}`, 400, belay.CodeBadCommand, "prefix"},
		{"a prefix beside a count", "respond_action", `{"actionId":"act_1","decision":"allow","scope":"count","count":2,"prefix":"git"}`, 400, belay.CodeBadCommand, "prefix"},
		{"a count of none", "respond_action", `{"actionId":"act_1","decision":"allow","scope":"count"}`, 400, belay.CodeBadCommand, "count"},
		{"a count for the session", "respond_action", `{"actionId":"act_1","decision":"allow","scope":"session","count":2}`, 400, belay.CodeBadCommand, "count"},
		{"no time", "resolve_permission", `{"actionId":"act_1","decision":"allow","scope":"until"}`, 400, belay.CodeBadCommand, "until"},
		{"a time that isn't one", "resolve_permission", `{"actionId":"act_1","decision":"allow","scope":"until","until":"tomorrow"}`, 400, belay.CodeBadCommand, "until"},
		{"a scope that isn't one", "respond_action", `{"actionId":"act_1","decision":"allow","scope":"always"}`, 400, belay.CodeBadCommand, "scope"},
		{"a scope of a no", "respond_action", `{"actionId":"act_1","decision":"deny","scope":"session"}`, 400, belay.CodeBadCommand, "scope"},
		{"a grant that isn't there", "revoke_grant", `{"sessionId":"s9","grantId":"evt_1"}`, 404, belay.CodeNotFound, "sessionId"},
		{"a command that isn't one", "rm_rf", `{}`, 404, belay.CodeNotFound, "path name"},
		{"a session for both", "get_tool_inventory", `{"sessionId":"s1","workspace":"/x"}`, 400, belay.CodeBadCommand, "workspace"},
	} {
		if a := r.command(c.command, owner, c.body); a.status != c.status || a.Code != c.code || a.Field != c.field || a.Hint == "" {
			t.Errorf("%s: %d %.300s; want %d %s at %q, and what to do", c.name, a.status, a.body, c.status, c.code, c.field)
		}
	}
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
	}{
		{"GET", "/v1/commands/get_session", "", nil, 405},
		{"PUT", "/v1/runs", "{}", nil, 405},
		{"DELETE", "/v1/actions", "", nil, 405},
		{"GET", "/v2/actions", "", nil, 404},
		{"GET", "/v1/runs/" + strings.Repeat("r", 200), "", nil, 400},
		{"GET", "/v1/actions?after=-1", "", nil, 400},
		{"GET", "/v1/actions?after=x", "", nil, 400},
		{"GET", "/v1/actions?sessionId=a%20b", "", nil, 400},
		{"GET", "/v1/actions?sessionId=s9", "", nil, 404},
		{"GET", "/v1/sessions/s9", "", nil, 404},
		{"GET", "/v1/threads/t9/events", "", nil, 404},
		{"GET", "/v1/sessions/s9/read/queue_snapshot", "", nil, 404},
		{"GET", "/v1/sessions?limit=0", "", nil, 400},
		{"GET", "/v1/sessions?status=sleeping", "", nil, 400},
		{"GET", "/v1/sessions?archived=maybe", "", nil, 400},
		{"GET", "/v1/search", "", nil, 400},
		{"GET", "/v1/stream?since=x", "", nil, 400},
		{"POST", "/v1/commands/submit_turn", `{"text":"x"}`, []string{"Belay-Channel", "c9"}, 404},
		{"POST", "/v1/runs", `{"agentId":"","sessionKey":"k","message":"x"}`, nil, 400},
		{"POST", "/v1/runs", `{"agentId":"default","message":"x"}`, nil, 400},
		{"POST", "/v1/runs", `{"agentId":"default","sessionKey":"a b","message":"x"}`, nil, 400},
		{"POST", "/v1/runs", `{"agentId":"default","sessionKey":"k","message":" "}`, nil, 400},
		{"POST", "/v1/runs", `{}`, []string{"Content-Encoding", "gzip"}, 415},
		{"POST", "/v1/runs", `{}`, []string{"Idempotency-Key", strings.Repeat("k", 129)}, 400},
		{"POST", "/v1/runs", `{}`, []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 400},
	} {
		a := r.do(c.method, c.path, owner, c.body, c.header...)
		if a.status != c.status || a.Code == "" || a.Hint == "" {
			t.Errorf("%s %.60s: %d %s; want a problem of status %d that says what to do", c.method, c.path, a.status, a.body, c.status)
		}
	}
}

// TestEveryRouteTakesItsQueryAlone: of each route that isn't a probe's, a parameter
// that it doesn't know is refused, and so is one that is said twice.
func TestEveryRouteTakesItsQueryAlone(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	for _, pattern := range []string{"POST /v1/commands/submit_turn", "POST /v1/commands/get_session", "POST /v1/runs", "GET /v1/runs/r1", "GET /v1/actions", "GET /v1/channels", "GET /v1/openapi.json",
		"GET /v1/stream", "GET /v1/sessions", "GET /v1/search", "GET /v1/sessions/s1", "GET /v1/sessions/s1/events", "GET /v1/sessions/s1/read/queue_snapshot", "GET /v1/sessions/s1/processes/p1/attach"} {
		method, path, _ := strings.Cut(pattern, " ")
		a := r.do(method, path+"?dryRun=true", owner, "{}")
		if a.status != 400 || a.Code != belay.CodeUsage || a.Field != "query dryRun" || a.Hint == "" {
			t.Errorf("%s: %d %s", pattern, a.status, a.body)
		}
	}
	if a := r.do("GET", "/v1/actions?after=1&after=2", owner, ""); a.Field != "query after" {
		t.Errorf("said twice: %d %s", a.status, a.body)
	}
	if a := r.do("GET", "/v1/sessions?tag=a&tag=b&limit=3&archived=false&status=waiting&after=0", owner, ""); a.status != 200 {
		t.Errorf("all that a list takes: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/healthz?from=probe", "/readyz?from=probe", "/metrics?from=probe"} {
		if a := r.do("GET", path, owner, ""); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// FuzzDecode holds what is taken against what is meant: a body that is taken
// spells nothing but fields of its type, and reads the same when it is written
// again.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"text":"x"}`, `{"text":"x","settings":{"allow":["a"],"share":true}}`, `{"Text":"x"}`, `{"text":"\ud83d\ude00"}`, `{"text":"x","text":"y"}`, `[]`, `{"text":1e400}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in turns.SubmitTurn
		err := input.Decode(body, &in)
		if err != nil {
			if p := input.ProblemOf(err); p.Status >= 500 {
				t.Fatalf("%q is the server's fault: %v", body, err)
			}
			return
		}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var again turns.SubmitTurn
		if err := input.Decode(raw, &again); err != nil || !reflect.DeepEqual(in, again) {
			t.Fatalf("%q becomes %+v, and again %+v (%v)", body, in, again, err)
		}
	})
}

// TestARefusalSaysHowToMendIt: what is wrong with a body in each way has its own
// remedy.
func TestARefusalSaysHowToMendIt(t *testing.T) {
	for body, want := range map[string]string{
		`{"text":"a","text":"b"}`:             "keep one of the two: which one counts would depend on who reads it",
		`{"text":`:                            "send one JSON object; bytes count from 0",
		`{"text":"\ud800"}`:                   `send UTF-8; what \u writes must be whole characters`,
		strings.Repeat("[", 70):               "nest less deeply, and write numbers that others can hold",
		`{"text":[]}`:                         "send a text",
		`{}`:                                  "it is a text",
		`{"text":"x","settings":{"allow":0}}`: "send a list",
	} {
		if p := input.ProblemOf(input.Decode([]byte(body), new(turns.SubmitTurn))); p.Code != belay.CodeBadCommand || p.Hint != want {
			t.Errorf("%.40s: %s, hint %q; want %q", body, p.Detail, p.Hint, want)
		}
	}
	if p := input.ProblemOf(input.Decode([]byte(`{"actionId":"a","decision":"allow","until":"tomorrow"}`), new(approvals.RespondAction))); p.Field != "until" || p.Hint != input.ExampleTime {
		t.Errorf("a time: %+v", p)
	}
}

// deadlines is a connection's answer that notes until when it may be read and written.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error  { d.read = at; return nil }
func (d *deadlines) SetWriteDeadline(at time.Time) error { d.write = at; return nil }

// TestALargeBodyHasTime to arrive over a slow connection, and its answer has time after that.
func TestALargeBodyHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			length int64
			read   bool
			within time.Duration
		}{{app.MaxBody, false, answerWithin}, {app.MaxBody + 1, true, documentWithin}, {-1, false, answerWithin}} {
			r := httptest.NewRequest(http.MethodPost, "/v1/commands/submit_turn", nil)
			r.ContentLength = c.length
			d, until := &deadlines{ResponseRecorder: httptest.NewRecorder()}, time.Time{}
			within(answerWithin, func(_ http.ResponseWriter, r *http.Request) { until, _ = r.Context().Deadline() })(d, r)
			if want := time.Now().Add(c.within); !d.write.Equal(want) || !until.Equal(want) || d.read.Equal(want) != c.read {
				t.Errorf("%d bytes: read until %s, written until %s, done until %s; want %s", c.length, d.read, d.write, until, want)
			}
		}
	})
}
