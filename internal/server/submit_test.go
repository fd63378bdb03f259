package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core/session"
)

// A session that exists is called what the last submission that says so calls
// it, and stays in its folder.
func TestASessionThatExistsTakesATitleAndKeepsItsFolder(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	submit := func(body string) answer { return r.command("submit_turn", owner, `{"sessionId":"s1",`+body+`}`) }
	state := func() *session.State {
		tn, err := r.s.tenant(t.Context(), auth.DefaultTenant)
		if err != nil {
			t.Fatal(err)
		}
		s, err := tn.Session(t.Context(), "s1")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct{ body, want string }{
		{`"text":"first line\nsecond","turnId":"t1"`, "first line"},
		{`"text":"go on","turnId":"t2"`, "first line"},
		{`"text":"go on","turnId":"t3","title":"the zoo"`, "the zoo"},
		{`"text":"go on","turnId":"t3","title":"the zoo"`, "the zoo"}, // told again
		{`"text":"go on","turnId":"t4","title":" the zoo "`, "the zoo"},
	} {
		submit(c.body).told(t)
		if got := state().Title; got != c.want {
			t.Errorf("after %s it is called %q", c.body, got)
		}
	}
	was := state()
	submit(`"text":"go on","turnId":"t5","workspace":"` + was.Workspace + `/."`).told(t) // the same by another name
	for dir, want := range map[string]belay.Code{was.Workspace + "/other": belay.CodeBadState, "/elsewhere": belay.CodeForbidden} {
		a := submit(`"text":"go on","turnId":"t6","workspace":"` + dir + `"`)
		if a.Code != want || a.Field != "workspace" || a.Hint == "" && want == belay.CodeBadState {
			t.Errorf("%s: %d %s", dir, a.status, a.body)
		}
	}
	if a := r.do("GET", "/v1/sessions/s1/events", owner, ""); a.status != http.StatusOK || !strings.Contains(string(a.body), `"t5"`) || strings.Contains(string(a.body), `"t6"`) {
		t.Errorf("of what was refused there is something: %d %s", a.status, a.body)
	}
}

// A text that is much longer than a model reads is taken whole: it is kept, and the
// model is given an excerpt of it, as of one that is given at a terminal.
func TestALongTextIsTaken(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	long := `What is the rule for otters?\n` + strings.Repeat(`\"a line of many\n`, 200_000)
	told := r.command("submit_turn", owner, `{"sessionId":"s1","text":"`+long+`"}`).told(t)
	r.until(owner, told.Run, "ended")
	a := r.do("GET", "/v1/threads/"+string(told.Thread)+"/context?step=1&messages=true", owner, "")
	if a.status != http.StatusOK || len(a.body) > 100_000 || !strings.Contains(string(a.body), "This is too long to be shown: 3200029 bytes, 200001 lines") {
		t.Errorf("%d, %d bytes: %.2000s", a.status, len(a.body), a.body)
	}
}
