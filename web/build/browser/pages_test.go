package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// locking is a model that runs programs, changes a file twice and ends.
const locking = `
steps:
  - calls:
      - {tool: exec, args: {command: "echo hello of a program; exit 3"}}
  - calls:
      - {tool: read, args: {path: queue.go}}
  - calls:
      - {tool: edit, args: {path: queue.go, old: "return q.items[0]", new: "q.mu.Lock()\n\treturn q.items[0]"}}
  - text: All done.
    calls:
      - {tool: complete_task, args: {summary: The queue has a lock.}}
`

// TestPagesShowWhatTheServerHas: each page beside those of the other tests, by the palette
// and by letters; what is known of a call; many sessions at once.
// Guarantee: V46, V50, V52.
func TestPagesShowWhatTheServerHas(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, locking)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	session := s.submit(`{"text":"Lock the queue.","settings":{"allow":["exec","edit"]}}`)
	p.keys("gs")
	p.expect("document.querySelector('.row .status.ok')")
	p.press("Lock the queue.")
	p.shows("hello of a program")

	// the inspector
	p.press("Inspect exec")
	for view, shows := range map[string]string{"Decision": "grant/exec", "Input": `"command": "echo hello of a program; exit 3"`, "Raw": "tool.result", "Why": "Facts", "Boundary": "level", "Cost": "processors"} {
		p.js(fmt.Sprintf("[...document.querySelectorAll('.inspector nav button')].find(b => b.innerText === %q).click()", view))
		p.expect(fmt.Sprintf("document.querySelector('.inspector').innerText.includes(%q)", shows))
	}
	p.js("[...document.querySelectorAll('.inspector nav button')].find(b => b.innerText === 'Why').click()")
	p.expect("document.querySelector('.inspector .chain, .inspector .points')")
	p.shoot("inspector")
	p.open(s.url + "/sessions/" + session + "?item=" + "turn_end/none")
	p.shows("No fact about it is near")
	p.press("Close the inspector")

	p.keys("2")
	p.expect("document.querySelectorAll('.gantt rect').length >= 4")
	p.shoot("timeline")
	p.press("As a table")
	p.shows("edit")
	p.keys("4")
	p.shows("q.mu.Lock()")
	p.expect("document.querySelectorAll('.diff .add').length > 1")
	p.shoot("changes")
	p.keys("5")
	p.shows("Shortened at")
	p.keys("6")
	p.shows("exit 3")

	p.palette("program")
	p.expect("document.title === 'Programs · Belay'")
	p.shows("exit 3")
	p.shoot("programs")
	p.js("document.querySelector('#page .rows a.main').click()")
	p.expect("document.querySelector('.output')?.innerText.includes('hello of a program')")
	p.keys("gc")
	p.shows("Recorded cost")
	p.shows("unknown")
	p.press("Tool")
	p.shows("exec")
	p.shoot("costs")
	p.js("window.kept = []; (real => { URL.createObjectURL = (b) => (b.text().then((t) => kept.push(t)), real(b)) })(URL.createObjectURL.bind(URL))")
	p.press("CSV")
	p.expect("/^exec,/m.test(kept[0] ?? '')")
	p.keys("gh")
	p.shows("sandbox")
	p.shows("views_lag")
	p.shoot("health")
	p.keys("ge")
	p.shows("New sessions")
	p.shows("compact-at")
	p.press("Dense")
	p.expect("document.documentElement.dataset.dense === 'true'")
	p.shoot("settings")

	p.keys("gs")
	p.press("New")
	p.expect("document.querySelector('dialog')")
	p.accessible("a new session")
	p.press("Close")
	p.press("Change Lock the queue.")
	p.press("Export")
	p.expect("kept[1]?.length > 1000")
	p.press("Close")
	p.expect("!document.querySelector('dialog')")
	p.at(390, 844, "light")
	p.press("More")
	p.accessible("more pages")
	p.press("Close")
	p.at(1600, 900, "light")
	p.expect("(x => x && (x.click(), true))(document.querySelector('.bulk input'))")
	p.fill("Tag for all of them", "urgent")
	p.keys("\r")
	p.expect("document.querySelector('.row .tag')?.innerText === 'urgent'")
	p.expect("(x => x && (x.checked || x.click(), x.checked))(document.querySelector('.bulk input'))")
	p.expect("(x => x && (x.click(), true))([...document.querySelectorAll('.bulk button')].find(b => b.innerText === 'Archive'))")
	p.shows("1 done.")
	p.shows("No sessions here.")
	var all struct{ Total int }
	if s.do("/v1/sessions?archived=true", "", &all); all.Total != 1 {
		t.Errorf("%d sessions are archived", all.Total)
	}
	p.press("Archived")
	p.press("Change Lock the queue.")
	p.press("Delete…")
	p.accessible("a session's end")
	p.press("Delete for good")
	p.shows("The session is deleted.")
	if status := s.do("/v1/sessions/"+session, "", nil); status != http.StatusNotFound && status != http.StatusGone {
		t.Errorf("the deleted session: %d", status)
	}
	p.clean(s)
}

// palette goes where a text leads.
func (p *page) palette(text string) {
	p.t.Helper()
	p.js("dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true}))")
	p.expect("document.activeElement.role === 'combobox'")
	p.keys(text)
	p.expect("document.querySelector('[role=option][aria-selected=true]')?.innerText.toLowerCase().includes(" + fmt.Sprintf("%q", text) + ")")
	p.shoot("palette")
	p.keys("\r")
}

// TestARuleIsSavedAsItWasRehearsed, and not before; by keys.
// Guarantee: V51.
func TestARuleIsSavedAsItWasRehearsed(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, locking)
	s.submit(`{"text":"Go."}`)
	p.open(s.run("console", "--role", "owner"))
	p.shows("Review")
	p.keys("gp")
	p.enter("Rehearse and save")
	p.tab("A file of rules")
	text := "version: 1\nrules:\n  - id: echoes\n    verdict: allow\n    reason: they only print\n    when: {tool: exec, command: {program: echo}}\n"
	p.keys(text)
	p.expect("[...document.querySelectorAll('button')].find(b => b.innerText === 'Save the rule').title === 'Rehearse it first.'")
	p.tab("How the rules count")
	p.enter("Rehearse")
	p.shows("recorded calls would be decided otherwise")
	p.enter("Save the rule")
	p.shows("It counts from the next turn on.")
	p.shoot("rules-saved")
	if b, err := os.ReadFile(filepath.Join(s.dir, ".config/belay/policy.d/echoes.yaml")); err != nil || string(b) != text {
		t.Errorf("%s %v", b, err)
	}
	p.press("Rules")
	p.shows("user/echoes")

	// what an answer for the session would have covered is said before it is given
	p.press("Approvals")
	p.expect("(x => x && (x.click(), true))(document.querySelector('#page .row.on a.main'))")
	p.expect("location.pathname.startsWith('/approvals/')")
	p.press("Allow for this session")
	p.shows("this would have answered")
	p.shoot("approval-session")
	p.press("Allow them")
	p.shows("Decided")
	p.shows("for session")
	p.clean(s)
}

var streams = regexp.MustCompile(`(?m)^belay_streams (\d+)`)

// TestTabsShareTheirStreams: eight tabs on three sessions take four streams; when the tab
// that leads is closed, another one goes on and nothing is missed.
// Guarantee: V53.
func TestTabsShareTheirStreams(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, locking)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	var sessions []string
	for i := range 3 {
		sessions = append(sessions, s.submit(fmt.Sprintf(`{"text":"Session %d.","settings":{"allow":["exec","edit"]}}`, i)))
	}
	var tabs []*page
	for i := range 7 {
		tab := p.beside(s.url + "/sessions/" + sessions[i%3])
		tab.shows(fmt.Sprintf("Session %d.", i%3))
		tabs = append(tabs, tab)
	}
	most := 0
	settled := func() bool {
		n := s.streams()
		most = max(most, n)
		return n == 4
	}
	what := func() string { return fmt.Sprintf("%d streams, at most %d", s.streams(), most) }
	eventually(t, settled, what)
	p.open("about:blank") // the tab that led is gone
	s.submit(`{"sessionId":"` + sessions[0] + `","text":"Once more."}`)
	for i, tab := range tabs {
		if i%3 == 0 {
			tab.shows("Once more.")
			tab.expect("document.querySelectorAll('.rope .user_message').length === 2")
		}
	}
	eventually(t, settled, what)
	if most > 4 {
		t.Errorf("%d streams at once", most)
	}
	p.clean(s)
}

// streams is how many streams the server has.
func (s *server) streams() int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	m := streams.FindSubmatch(b)
	if m == nil {
		s.t.Fatalf("no figure of streams: %s", b)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// eventually waits until something holds.
func eventually(t *testing.T, holds func() bool, what func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal(what())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
