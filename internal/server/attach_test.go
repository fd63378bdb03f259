package server

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/auth"
)

// TestInputReachesAProgramsTerminal goes through what a person does there.
// Guarantee: V41.
func TestInputReachesAProgramsTerminal(t *testing.T) {
	x := newProgram(t, true, `trap 'echo interrupted' INT
while read line; do
	case $line in
	size) stty size;;
	sleep) sh -c 'echo asleep; exec sleep 600'; echo left $?;;
	end) exit 7;;
	*) echo "$line" | od -An -tx1;;
	esac
done`)
	at := x.attach(x.owner, "")
	if h := at.hello; h.Input != "open" || !h.Live || h.Rows != 24 || h.Cols != 80 || h.PID == 0 || h.Offset != 0 || h.Session != "s1" {
		t.Errorf("the greeting is %+v", h)
	}
	at.press("size\r")
	at.see(`24 80`)
	at.ask(`{"resize":{"cols":132,"rows":50}}`)
	at.press("size\r")
	at.see(`50 132`)

	// Somebody else sees the same, and the new size.
	second := x.attach(x.token(auth.Viewer, auth.DefaultTenant), "")
	if h := second.hello; h.Input != "read_only" || h.Rows != 50 || h.Cols != 132 {
		t.Errorf("the second greeting is %+v", h)
	}
	at.press("sleep\r")
	at.see(`asleep`)
	at.press("\x03")
	at.see(`(?s)interrupted.*left 130`)
	at.press("a\303")
	at.press("\244b\r") // half a character comes late
	at.see(`61 c3 a4 62 0a`)
	at.press("end\r")
	at.over(websocket.StatusNormalClosure)
	second.over(websocket.StatusNormalClosure)
	for name, one := range map[string]*attached{"who typed": at, "who looked on": second} {
		if !bytes.Equal(one.out, x.kept()) {
			t.Errorf("%s saw %q, and %q was recorded", name, one.out, x.kept())
		}
		if e := one.exit; e == nil || e.Code != 7 || e.Reason != "exited" || e.Position == 0 {
			t.Errorf("%s was told of the end: %+v", name, e)
		}
	}
	typed := 0
	for _, rec := range x.facts() {
		if p, ok := rec.Event.Data.(event.ProcessInput); ok && p.Asked {
			if typed++; !strings.HasPrefix(p.By, "token:tok_") {
				t.Errorf("the input is by %q", p.By)
			}
		}
	}
	if typed < 6 {
		t.Errorf("%d inputs are recorded", typed)
	}
	// It has ended: who comes now sees all of it, and the end at once.
	late := x.attach(x.owner, "?offset=-5")
	late.over(websocket.StatusNormalClosure)
	if kept := x.kept(); late.exit == nil || late.exit.Code != 7 || late.hello.Input != "closed" || late.hello.Live || !bytes.Equal(late.out, kept[len(kept)-5:]) {
		t.Errorf("who came late: %+v %q %+v", late.hello, late.out, late.exit)
	}
}

// TestTwoHundredCutsLoseAndRepeatNothing cuts a connection at random places and
// continues at the byte behind the last one that came.
// Guarantee: V40.
func TestTwoHundredCutsLoseAndRepeatNothing(t *testing.T) {
	x := newProgram(t, false, "while read n; do seq 1 $n; done")
	rnd := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
	feed := x.attach(x.owner, "?offset=1000000000") // it only writes
	var out []byte
	fed := 0
	for cut := range 200 {
		if cut%4 == 0 {
			n := 1 + rnd.IntN(4_000)
			feed.press(fmt.Sprintf("%d\n", n))
			for i := 1; i <= n; i++ {
				fed += len(fmt.Sprintln(i))
			}
		}
		at := x.attach(x.owner, fmt.Sprintf("?offset=%d", len(out)))
		for want := min(rnd.IntN(20_000), fed-len(out)); len(at.out) < want; {
			if !at.next() {
				t.Fatal(at.err)
			}
		}
		at.c.CloseNow() //nolint:errcheck // cut
		out = append(out, at.out[:rnd.IntN(len(at.out)+1)]...)
	}
	feed.ask(`{"eof":true}`)
	last := x.attach(x.owner, fmt.Sprintf("?offset=%d", len(out)))
	last.over(websocket.StatusNormalClosure)
	out = append(out, last.out...)
	kept := x.kept()
	if len(out) != fed || !bytes.Equal(out, kept) || len(last.gaps) > 0 {
		t.Errorf("%d bytes came and %d are kept, of %d that were printed; gaps %v", len(out), len(kept), fed, last.gaps)
	}
}

// TestAnAttachmentRefusesWithACode asks for what can't be.
// Guarantee: V41.
func TestAnAttachmentRefusesWithACode(t *testing.T) {
	x := newProgram(t, false, "while read x; do echo heard $x; done; echo over; sleep 600")
	at := x.attach(x.owner, "")
	for frame, code := range map[string]belay.Code{
		`{"resize":{"cols":1`:                       belay.CodeBadCommand,
		`{"resize":{"cols":80,"rows":"24"}}`:        belay.CodeBadCommand,
		`{"close":true}`:                            belay.CodeBadCommand,
		`{}`:                                        belay.CodeBadCommand,
		`{"eof":true,"eof":true}`:                   belay.CodeBadCommand,
		`{"resize":{"cols":80,"rows":24}}`:          belay.CodeBadState, // it has no terminal
		`{"eof":true,"resize":{"cols":1,"rows":1}}`: belay.CodeBadCommand,
	} {
		at.ask(frame)
		at.refusal(code)
	}
	at.press("a\x00b\n")
	at.refusal(belay.CodeBadCommand)
	at.press("a\xff\xfeb\n")
	at.refusal(belay.CodeBadCommand)
	at.press("still here\n")
	at.see("heard still here\n")
	viewer := x.attach(x.token(auth.Approver, auth.DefaultTenant), "")
	viewer.press("x\n")
	viewer.refusal(belay.CodeForbidden)
	viewer.ask(`{"resize":{"cols":80,"rows":24}}`)
	viewer.refusal(belay.CodeForbidden)
	viewer.ask(`{"eof":true}`)
	viewer.refusal(belay.CodeForbidden)
	quiet := x.attach(x.owner, "?readOnly=true")
	quiet.press("x\n")
	quiet.refusal(belay.CodeForbidden)

	at.ask(`{"eof":true}`)
	at.press("after the end\n")
	at.refusal(belay.CodeBadState)
	at.see("over\n")
	if closed := x.attach(x.owner, ""); closed.hello.Input != "closed" {
		t.Errorf("after the end of its input: %+v", closed.hello)
	}
	if bytes.Contains(x.kept(), []byte("heard x")) {
		t.Error("who may only read has written")
	}
	big := x.attach(x.owner, "")
	big.press(strings.Repeat("x", maxFrame+1))
	big.over(websocket.StatusMessageTooBig)
	at.c.Close(websocket.StatusNormalClosure, "") //nolint:errcheck // it is over
}

// TestWhoMayBeAttached tries every role, both tenants and what a browser sends.
// Guarantee: V42.
func TestWhoMayBeAttached(t *testing.T) {
	x := newProgram(t, false, "cat", func(c *Config) { c.Origins = []string{"https://console.example.org"} })
	theirs := x.token(auth.Owner, "other")
	for _, role := range auth.Roles {
		at := x.attach(x.token(role, auth.DefaultTenant), "")
		if may := at.hello.Input == "open"; may != role.May(auth.Work) {
			t.Errorf("%s is told that the input is %s", role, at.hello.Input)
		}
		at.c.CloseNow() //nolint:errcheck // seen
	}
	own := strings.TrimPrefix(x.url, "http://")
	port := own[strings.LastIndex(own, ":"):]
	other := strings.TrimSuffix(x.owner, x.owner[len(x.owner)-4:]) + "AAAA"
	with := func(token string, more ...string) http.Header {
		h := bearerOf(token)
		if token == "" {
			h = http.Header{}
		}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	for _, c := range []struct {
		name   string
		path   string
		header http.Header
		offers []string
		status int
		code   belay.Code
	}{
		{"a page, the token among the offers", "", with("", "Origin", x.url), []string{client.AttachProtocol, "bearer." + x.owner}, 101, ""},
		{"a page that is named", "", with("", "Origin", "https://console.example.org", "Sec-Fetch-Site", "cross-site"), []string{"bearer." + x.owner, client.AttachProtocol}, 101, ""},
		{"no token", "", with(""), []string{client.AttachProtocol}, 401, belay.CodeUnauthorized},
		{"another token", "", with(other), []string{client.AttachProtocol}, 401, belay.CodeUnauthorized},
		{"another token among the offers", "", with(""), []string{client.AttachProtocol, "bearer." + other}, 401, belay.CodeUnauthorized},
		{"no token among the offers", "", with(""), []string{client.AttachProtocol, "bearer."}, 401, belay.CodeUnauthorized},
		{"two tokens among the offers", "", with(""), []string{client.AttachProtocol, "bearer." + x.owner, "bearer." + other}, 401, belay.CodeUnauthorized},
		{"a token in two places", "", with(x.owner), []string{client.AttachProtocol, "bearer." + x.owner}, 401, belay.CodeUnauthorized},
		{"a token in the query", x.path("?token=" + x.owner + "&access_token=" + x.owner), with(""), []string{client.AttachProtocol}, 401, belay.CodeUnauthorized},
		{"a page of another site", "", with(x.owner, "Origin", "https://attacker.example"), []string{client.AttachProtocol}, 403, belay.CodeOrigin},
		{"a page of another site, the token among the offers", "", with("", "Origin", "https://attacker.example"), []string{client.AttachProtocol, "bearer." + x.owner}, 403, belay.CodeOrigin},
		{"a sandboxed frame", "", with(x.owner, "Origin", "null"), []string{client.AttachProtocol}, 403, belay.CodeOrigin},
		{"rebinding", "", with(x.owner, "Host", "attacker.example"+port, "Origin", "http://attacker.example"+port), []string{client.AttachProtocol}, 421, belay.CodeHost},
		{"no protocol", "", with(x.owner), nil, 400, belay.CodeUsage},
		{"another protocol", "", with(x.owner), []string{"belay.v2"}, 400, belay.CodeUsage},
		{"another tenant", "", with(theirs), []string{client.AttachProtocol}, 404, belay.CodeNotFound},
		{"no such session", "/v1/sessions/s2/processes/" + string(x.process) + "/attach", with(x.owner), []string{client.AttachProtocol}, 404, belay.CodeNotFound},
		{"no such program", "/v1/sessions/s1/processes/proc_none/attach", with(x.owner), []string{client.AttachProtocol}, 404, belay.CodeNotFound},
		{"no offset", x.path("?offset=x"), with(x.owner), []string{client.AttachProtocol}, 400, belay.CodeUsage},
	} {
		if c.path == "" {
			c.path = x.path("")
		}
		conn, a := x.dial(c.path, c.header, c.offers...)
		if a.status != c.status || a.Code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.status, a.body, c.status, c.code)
		}
		said := fmt.Sprint(a.header, string(a.body))
		if strings.Contains(said, x.owner) || conn != nil && conn.Subprotocol() != client.AttachProtocol {
			t.Errorf("%s: the answer has the token, or another protocol: %s", c.name, said)
		}
		if conn != nil {
			conn.CloseNow() //nolint:errcheck // it isn't needed
		}
	}
	// Elsewhere an offer is no token.
	if a := x.do("GET", "/v1/actions", "", "", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Protocol", "bearer."+x.owner); a.status != http.StatusUnauthorized {
		t.Errorf("an offer on another route: %d", a.status)
	}
	if a := x.do("GET", x.path(""), x.owner, ""); a.status != http.StatusBadRequest || a.Field != "header Upgrade" {
		t.Errorf("no WebSocket: %d %s", a.status, a.body)
	}
}

// TestAnAttachmentEndsWithItsToken revokes the token of one who is attached.
// Guarantee: V41.
func TestAnAttachmentEndsWithItsToken(t *testing.T) {
	x := newProgram(t, false, "cat")
	x.s.pace.beat = 50 * time.Millisecond
	text, made, err := x.tokens.Create("", auth.Operator, auth.DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	at, stays := x.attach(text, ""), x.attach(x.owner, "")
	at.press("hello\n")
	at.see("hello\n")
	if _, err := x.tokens.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	at.over(client.CloseToken)
	if len(at.errs) != 1 || at.errs[0].Code != belay.CodeUnauthorized {
		t.Errorf("it was told %v", at.errs)
	}
	stays.press("world\n")
	stays.see("hello\nworld\n")
	// A token is looked at before each input too.
	x.s.pace.beat = time.Hour
	text, made, err = x.tokens.Create("", auth.Operator, auth.DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	at = x.attach(text, "")
	if _, err := x.tokens.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	at.press("not any more\n")
	at.refusal(belay.CodeUnauthorized)
	stays.press("end\n")
	stays.see("hello\nworld\nend\n")
}

// TestAnAttachmentEndsByItself leaves one alone, and ends the server.
func TestAnAttachmentEndsByItself(t *testing.T) {
	x := newProgram(t, false, "cat")
	x.s.pace.beat, x.s.pace.idle = 20*time.Millisecond, 200*time.Millisecond
	x.attach(x.owner, "").over(client.CloseIdle)
	x.s.pace = usualPace
	at := x.attach(x.owner, "")
	done := make(chan struct{})
	go func() { defer close(done); x.stop() }()
	for at.next() {
	}
	switch code := websocket.CloseStatus(at.err); {
	case at.exit == nil && code == websocket.StatusGoingAway:
	case at.exit != nil && code == websocket.StatusNormalClosure && at.exit.Reason == "shutdown": // the program ended first, with its session
	default:
		t.Errorf("closed with %d (%v) after %+v", code, at.err, at.exit)
	}
	<-done
}
