package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/tool/exec"
)

// programRig is a server whose session s1 runs a program in the background, while
// its turn waits for an answer.
type programRig struct {
	*rig
	world   *world
	owner   string
	run     belay.RunID
	process belay.ProcessID
}

// newProgram starts a program; tty gives it a terminal.
func newProgram(t *testing.T, tty bool, command string, change ...func(*Config)) *programRig {
	t.Helper()
	if tty {
		_, err := os.Stat("/dev/ptmx")
		needs.Facility(t, "pty", err == nil, "no pseudo-terminal can be opened")
	}
	w := newWorld(t)
	w.tools = exec.Tools(exec.Config{Environ: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, Grace: 500 * time.Millisecond})
	args, err := json.Marshal(struct {
		Command string `json:"command"`
		After   int    `json:"background_after"`
		TTY     bool   `json:"tty"`
	}{command, 0, tty})
	if err != nil {
		t.Fatal(err)
	}
	change = append(change, func(c *Config) { c.Drain = 100 * time.Millisecond })
	r := w.serve(t, fmt.Sprintf("steps:\n  - calls:\n      - {tool: exec, args: %s}\n  - calls:\n      - {tool: ask_user, args: {question: 'Enough?'}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n", args), change...)
	x := &programRig{rig: r, world: w, owner: r.token(auth.Owner, auth.DefaultTenant)}
	x.run = r.command("submit_turn", x.owner, `{"text":"go","sessionId":"s1","turnId":"t1","settings":{"allow":["exec"]}}`).told(t).Run
	x.begin()
	var th sessions.ThreadShown
	if a := r.command("get_thread_read", x.owner, `{"sessionId":"s1"}`); json.Unmarshal(a.body, &th) != nil || len(th.Processes) != 1 {
		t.Fatalf("no program runs: %s", a.body)
	}
	x.process = th.Processes[0].ID
	return x
}

// begin waits until the turn asks what it ends with, and allows what it asks before.
func (x *programRig) begin() {
	x.t.Helper()
	for {
		x.until(x.owner, x.run, "waiting")
		var open approvals.ActionsShown
		if a := x.do("GET", "/v1/actions", x.owner, ""); json.Unmarshal(a.body, &open) != nil {
			x.t.Fatalf("%s", a.body)
		}
		i := slices.IndexFunc(open.Actions, func(a app.Action) bool { return a.Kind == "permission" })
		if i < 0 && len(open.Actions) > 0 {
			return
		}
		if i >= 0 {
			x.command("respond_action", x.owner, fmt.Sprintf(`{"actionId":%q,"decision":"allow","version":%q}`, open.Actions[i].ID, open.Actions[i].Version))
		}
	}
}

func (x *programRig) path(query string) string {
	return "/v1/sessions/s1/processes/" + string(x.process) + "/attach" + query
}

// dial attaches; the answer is what a refusal says.
func (r *rig) dial(path string, header http.Header, offers ...string) (*websocket.Conn, answer) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	o := &websocket.DialOptions{HTTPHeader: header, Subprotocols: offers, HTTPClient: r.client, Host: header.Get("Host")}
	c, resp, err := websocket.Dial(ctx, r.url+path, o)
	if err == nil {
		c.SetReadLimit(1 << 20)
		r.t.Cleanup(func() { c.CloseNow() }) //nolint:errcheck // it may be closed
		return c, answer{status: resp.StatusCode, header: resp.Header}
	}
	if resp == nil {
		r.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header}
	var b bytes.Buffer
	b.ReadFrom(resp.Body) //nolint:errcheck // what there is, is looked at
	a.body = b.Bytes()
	if resp.Header.Get("Content-Type") == input.ProblemMedia {
		if err := json.Unmarshal(a.body, &a.Problem); err != nil {
			r.t.Fatalf("%s: %v", a.body, err)
		}
	}
	return nil, a
}

// attached is a client of a test.
type attached struct {
	t     *testing.T
	c     *websocket.Conn
	out   []byte
	hello client.Attached
	exit  *client.Exit
	errs  []client.Refusal
	gaps  []client.Gap
	err   error
}

// attach attaches with a token and reads the greeting.
func (x *programRig) attach(token, query string) *attached {
	x.t.Helper()
	c, a := x.dial(x.path(query), bearerOf(token), client.AttachProtocol)
	if c == nil {
		x.t.Fatalf("not attached: %d %s", a.status, a.body)
	}
	at := &attached{t: x.t, c: c}
	at.until(func() bool { return at.hello.Process != "" })
	return at
}

func bearerOf(token string) http.Header {
	return http.Header{"Authorization": {"Bearer " + token}}
}

// next takes one frame; false: it is over, and err says why.
func (at *attached) next() bool {
	at.t.Helper()
	ctx, cancel := context.WithTimeout(at.t.Context(), time.Minute)
	defer cancel()
	kind, data, err := at.c.Read(ctx)
	if err != nil {
		at.err = err
		return false
	}
	if kind == websocket.MessageBinary {
		at.out = append(at.out, data...)
		return true
	}
	var m client.Frame
	if err := json.Unmarshal(data, &m); err != nil {
		at.t.Fatalf("%s: %v", data, err)
	}
	switch {
	case m.Hello != nil:
		at.hello = *m.Hello
	case m.Truncated != nil:
		at.gaps = append(at.gaps, *m.Truncated)
	case m.Exit != nil:
		at.exit = m.Exit
	case m.Error != nil:
		at.errs = append(at.errs, *m.Error)
	}
	return true
}

func (at *attached) until(is func() bool) {
	at.t.Helper()
	for !is() {
		if !at.next() {
			at.t.Fatalf("it ended with %v; %q, errors %v", at.err, at.out, at.errs)
		}
	}
}

// see waits until the program has printed something.
func (at *attached) see(pattern string) {
	at.t.Helper()
	re := regexp.MustCompile(pattern)
	at.until(func() bool { return re.Match(at.out) })
}

// refusal waits for an error.
func (at *attached) refusal(code belay.Code) {
	at.t.Helper()
	n := len(at.errs)
	at.until(func() bool { return len(at.errs) > n })
	if got := at.errs[n]; got.Code != code || got.Detail == "" {
		at.t.Errorf("got %+v, want %s", got, code)
	}
}

func (at *attached) send(kind websocket.MessageType, text string) {
	at.t.Helper()
	if err := at.c.Write(at.t.Context(), kind, []byte(text)); err != nil {
		at.t.Fatal(err)
	}
}

func (at *attached) press(keys string) { at.t.Helper(); at.send(websocket.MessageBinary, keys) }
func (at *attached) ask(frame string)  { at.t.Helper(); at.send(websocket.MessageText, frame) }

// over reads to the end and holds how the connection was closed.
func (at *attached) over(want websocket.StatusCode) {
	at.t.Helper()
	for at.next() {
	}
	if got := websocket.CloseStatus(at.err); got != want {
		at.t.Errorf("closed with %d (%v), want %d; errors %v", got, at.err, want, at.errs)
	}
}

// facts are those of the program, the oldest first.
func (x *programRig) facts() (all []store.Record) {
	x.t.Helper()
	for rec, err := range x.opened[auth.DefaultTenant].Scan(x.t.Context(), 0) {
		if err != nil {
			x.t.Fatal(err)
		}
		if rec.Event.IDs.Process == x.process {
			all = append(all, rec)
		}
	}
	return all
}

// kept is the output of the program as the facts have it.
func (x *programRig) kept() []byte {
	x.t.Helper()
	var all []event.Envelope
	for _, rec := range x.facts() {
		all = append(all, rec.Event)
	}
	k := exec.KeptOf(all)
	var out []byte
	for int64(len(out)) < k.Total {
		b, at, err := k.Window(func(d belay.Digest, offset, n int64) ([]byte, error) {
			whole, err := x.opened[auth.DefaultTenant].Get(x.t.Context(), d)
			return whole[offset:min(offset+n, int64(len(whole)))], err
		}, int64(len(out)), 1<<20)
		if err != nil || at != int64(len(out)) || len(b) == 0 {
			x.t.Fatalf("the output from %d on: %d bytes from %d, %v", len(out), len(b), at, err)
		}
		out = append(out, b...)
	}
	return out
}
