package server

import (
	"encoding/base64"
	"fmt"
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

// Files go with a text to the model, and are kept with the turn. A submission that is
// repeated with another file isn't the same.
func TestFilesAreSentAlongWithAText(t *testing.T) {
	seen := func(pattern string) string {
		return "  - when: {matches: '" + pattern + "'}\n    calls: [{tool: complete_task, args: {summary: seen}}]\n"
	}
	r := newRig(t, "images: true\nfiles: true\nsteps:\n"+seen("attached: a.txt, 8 bytes:\\nof words$")+seen(`\[image/png dot.png\]`)+seen(`\[application/pdf paper.pdf\]`))
	owner := r.token(auth.Owner, auth.DefaultTenant)
	file := func(name, content string) string {
		return `{"name":"` + name + `","content":"` + base64.StdEncoding.EncodeToString([]byte(content)) + `"}`
	}
	const dot = "\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
	body := func(turn string, files ...string) string {
		return `{"sessionId":"s1","turnId":"` + turn + `","text":"look","attachments":[` + strings.Join(files, ",") + `]}`
	}
	text, picture, paper := file("a.txt", "of words"), file("dot.png", dot), file("paper.pdf", "%PDF-1.4")
	for i, files := range [][]string{{text}, {text, picture}, {text, paper}} {
		told := r.command("submit_turn", owner, body(fmt.Sprintf("t%d", i), files...)).told(t)
		r.until(owner, told.Run, "ended")
	}
	a := r.do("GET", "/v1/sessions/s1/events?types=turn.submitted,turn.completed", owner, "")
	for want, n := range map[string]int{`"name":"a.txt"`: 3, `"media":"image/png"`: 1, `"media":"application/pdf"`: 1, `"text":"seen"`: 3} {
		if strings.Count(string(a.body), want) != n {
			t.Errorf("the facts haven't %d times %s: %s", n, want, a.body)
		}
	}
	if again := r.command("submit_turn", owner, body("t1", text, picture)).told(t); !again.Repeated {
		t.Errorf("told again: %+v", again)
	}
	if a := r.command("submit_turn", owner, body("t1", text, file("dot.png", "other words"))); a.status != http.StatusConflict || a.Code != belay.CodeIDConflict {
		t.Errorf("with another file: %d %s", a.status, a.body)
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
