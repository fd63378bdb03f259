package kill

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store/sqlite"
)

// stages are the points of a fetch as its far end sees them.
var stages = []string{"asked", "redirected", "begun", "halfway"}

// farPage is a far end with one page, behind a redirect, in two pieces.
type farPage struct {
	*httptest.Server
	mu   sync.Mutex
	gets int         // of the page
	stop string      // the stage at which the process dies
	kill chan func() // how it dies
}

func newFarPage(t *testing.T) *farPage {
	f := &farPage{kill: make(chan func(), 1)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *farPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/page" {
		f.at("asked", r)
		http.Redirect(w, r, "/there", http.StatusFound)
		return
	}
	f.mu.Lock()
	f.gets++
	f.mu.Unlock()
	f.at("redirected", r)
	w.Header().Set("Content-Type", "text/plain")
	for n, stage := range []string{"begun", "halfway"} {
		fmt.Fprint(w, strings.Repeat("a line of the page\n", 1100)+fmt.Sprintf("that was piece %d\n", n+1))
		w.(http.Flusher).Flush()
		f.at(stage, r)
	}
}

// at kills the process if this is the stage, once.
func (f *farPage) at(stage string, r *http.Request) {
	f.mu.Lock()
	hit := f.stop == stage
	if hit {
		f.stop = ""
	}
	f.mu.Unlock()
	if hit {
		(<-f.kill)()
		<-r.Context().Done() // it answers a process that lives no more
	}
}

// TestKillInAFetch kills the process at its points while it reads a page in two pieces,
// and at each stage of the request: the page is read in the end, each call ends once,
// and no more requests are made than attempts were announced.
// Guarantee: O3.
func TestKillInAFetch(t *testing.T) {
	life := func(what string, at int, stage string) (hit bool) {
		m, far := newMachine(t), newFarPage(t)
		defer m.discard()
		far.stop = stage
		config, script := filepath.Join(m.dir, ".config", "belay"), filepath.Join(m.dir, "fetch.yaml")
		url := far.URL + "/page"
		steps := fmt.Sprintf("steps:\n  - calls: [{tool: web_fetch, args: {url: %s}}]\n  - calls: [{tool: web_fetch, args: {url: %s, page: 2}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n", url, url)
		err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "belay.yaml"), []byte("web-reach: loopback\n"), 0o600), os.WriteFile(script, []byte(steps), 0o600),
			os.WriteFile(filepath.Join(config, "policy.yaml"), []byte("version: 1\nrules:\n  - {id: page, verdict: allow, when: {tool: web_fetch, host: [127.0.0.1], taint: [none, any]}}\n"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		var env []string
		if at > 0 {
			env = []string{fmt.Sprintf("%s=%d", killAt, at)}
		}
		e := m.runWith(func(p *os.Process) { far.kill <- func() { p.Kill() } }, env, "run", "--script", script, "--approvals", "deny", "read it") //nolint:errcheck // it is not there any more
		if hit = e.killed; hit {
			e = m.run(nil, "sessions", "resume", "--last", "--approvals", "deny")
		}
		if e.exit != 0 {
			t.Errorf("%s: exit %d\n%s", what, e.exit, e.out)
			return hit
		}
		m.fetched(what, far.gets)
		return hit
	}
	for _, stage := range stages {
		if !life("killed when "+stage, 0, stage) {
			t.Errorf("nothing was killed when the request was %s", stage)
		}
	}
	first, step := stride(t, 8)
	killed := 0
	for at := accepted + first; life(fmt.Sprint("killed at ", at), at, ""); at += step {
		killed++
	}
	if killed < 24/step {
		t.Errorf("only %d points", killed)
	}
}

// fetched holds the facts of a life against what a fetch promises.
func (m *machine) fetched(what string, gets int) {
	m.t.Helper()
	if e := m.run(nil, "verify"); e.exit != 0 {
		m.t.Errorf("%s: verify exits %d:\n%s", what, e.exit, e.out)
	}
	db, err := sqlite.Open(m.t.Context(), m.store, sqlite.Options{ReadOnly: true})
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	starts, completed := 0, 0
	ends, pieces := map[belay.CallID]int{}, ""
	for r, err := range db.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		switch p := r.Event.Data.(type) {
		case event.ToolStarted:
			if p.Name == "web_fetch" {
				starts++
				ends[r.Event.IDs.Call] += 0
			}
		case event.ToolResult:
			if p.Name != "web_fetch" {
				continue
			}
			ends[r.Event.IDs.Call]++
			text := []byte(p.Output.Text)
			if p.Output.Ref != nil {
				if text, err = db.Get(m.t.Context(), p.Output.Ref.Digest); err != nil {
					m.t.Fatal(err)
				}
			}
			pieces += string(text)
		case event.ToolFailed:
			if p.Final {
				m.t.Errorf("%s: a fetch failed: %+v", what, p.Problem)
			}
		case event.TurnCompleted:
			completed++
		}
	}
	for call, n := range ends {
		if n != 1 {
			m.t.Errorf("%s: %s ended %d times", what, call, n)
		}
	}
	if completed != 1 || len(ends) != 2 || gets > starts || !strings.Contains(pieces, "that was piece 1\n") || !strings.Contains(pieces, "that was piece 2") {
		m.t.Errorf("%s: %d turns completed, %d calls, %d requests in %d attempts; read: %.300q", what, completed, len(ends), gets, starts, pieces)
	}
}
