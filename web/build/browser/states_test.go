package browser

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestPlainHTTPInANetwork: without the locks and the clipboard that browsers keep for safe
// addresses each tab has one stream, and from the fifth on it asks.
// Guarantee: V53.
func TestPlainHTTPInANetwork(t *testing.T) {
	t.Parallel()
	p := browse(t, chromedp.Flag("host-resolver-rules", "MAP desk.test 127.0.0.1"))
	s := serve(t, locking)
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	name := "desk.test:" + at.Port()
	s.kill()
	s.flags = []string{"--host", name, "--origin", "http://" + name}
	s.start(at.Host)
	p.open("http://" + name + "/" + s.run("console", "--role", "owner")[len(s.url)+1:])
	p.shows("nothing ran today")
	if p.js("isSecureContext") != false {
		t.Fatal("the address counts as safe")
	}
	session := s.submit(`{"text":"Session one.","settings":{"allow":["exec","edit"]}}`)
	p.open("http://" + name + "/sessions/" + session)
	p.shows("Session one.")
	p.press("Copy the session's id")
	p.shows("Copied the session's id.")
	var tabs []*page
	for range 5 {
		tab := p.beside("http://" + name + "/sessions/" + session)
		tab.shows("Session one.")
		tabs = append(tabs, tab)
	}
	for _, tab := range tabs[3:] {
		tab.shows("asks every ten seconds")
	}
	eventually(t, func() bool { return s.streams() == 4 }, func() string { return fmt.Sprintf("%d streams", s.streams()) })
	s.submit(`{"sessionId":"` + session + `","text":"Once more."}`)
	for _, tab := range append(tabs, p) {
		tab.shows("Once more.")
	}
	p.clean(s)
}

// TestTheServerComesBackOtherwise: as another build, of which the page offers to load its
// own; put back to a backup, of which the page shows what there is; after ten seconds
// without a network as if nothing had been. Without scripts the page says so.
// Guarantee: V49.
func TestTheServerComesBackOtherwise(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, stepping)
	w := s.wire()
	p.open(w.url + "/" + s.run("console", "--role", "owner")[len(s.url)+1:])
	p.shows("nothing ran today")
	first := s.submit(`{"text":"The first one."}`)
	eventually(t, func() bool { return s.ended(first) }, func() string { return "the turn hasn't ended" })
	p.open(w.url + "/sessions/" + first)
	p.shows("The first one.")

	w.stall(10 * time.Second)
	s.submit(`{"sessionId":"` + first + `","text":"Through the cut."}`)
	p.shows("Through the cut.")
	eventually(t, func() bool { return s.ended(first) }, func() string { return "the turn hasn't ended" })
	p.expect("document.querySelectorAll('.turn_end').length === 2")

	backup := s.dir + "/backup"
	s.run("store", "backup", backup)
	lost := s.submit(`{"sessionId":"` + first + `","text":"What will be lost."}`)
	p.shows("What will be lost.")
	eventually(t, func() bool { return s.ended(lost) }, func() string { return "the turn hasn't ended" })
	s.kill()
	if err := os.Rename(s.dir+"/.local/state/belay", s.dir+"/.local/state/before"); err != nil {
		t.Fatal(err)
	}
	s.run("store", "restore", backup)
	b, err := os.ReadFile(s.dir + "/.local/state/before/tokens.json")
	if err == nil {
		err = os.WriteFile(s.dir+"/.local/state/belay/tokens.json", b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.start(strings.TrimPrefix(s.url, "http://"))
	p.expect("!document.body.innerText.includes('What will be lost.')")
	p.expect("document.querySelectorAll('.turn_end').length === 2")
	s.submit(`{"sessionId":"` + first + `","text":"Afterwards."}`)
	p.shows("Afterwards.")

	// another build: its page is another one
	p.fill("Message", "a draft")
	s.kill()
	s.program = s.another()
	s.start(strings.TrimPrefix(s.url, "http://"))
	p.shows("The server is another build now.")
	p.accessible("another build")
	p.press("Load its page")
	p.shows("Meetings")
	p.expect("document.querySelector('.composer textarea')?.value === 'a draft'")
	p.clean(s)

	if _, err := chromedp.Run(p.ctx, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}); err != nil {
		t.Fatal(err)
	}
	p.open(w.url + "/sessions")
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.textContent"))
	if err != nil || !strings.Contains(text, "JavaScript") {
		t.Errorf("without scripts it says %q, %v", text, err)
	}
}

// another makes another build of the program, whose page is another one.
func (s *server) another() string {
	s.t.Helper()
	b, err := os.ReadFile(belay)
	if err != nil {
		s.t.Fatal(err)
	}
	had, has := []byte(`title:"Sessions"`), []byte(`title:"Meetings"`)
	if bytes.Count(b, had) != 1 {
		s.t.Fatalf("the page has %s %d times", had, bytes.Count(b, had))
	}
	if err := os.WriteFile(s.dir+"/another", bytes.Replace(b, had, has, 1), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return s.dir + "/another"
}

// TestACrowd: very many sessions, questions and programs are as quick as a few. In CI
// there are fewer; the sizes are printed.
// Guarantee: V50.
func TestACrowd(t *testing.T) {
	t.Parallel()
	sessions, asks, programs := 200, 40, 20
	if os.Getenv("BELAY_CONSOLE") == "full" {
		sessions, asks, programs = 10_000, 1_000, 500
	}
	p := browse(t)
	s := serve(t, locking)
	ran := s.submit(`{"text":"Ran a program.","settings":{"allow":["exec","edit"]}}`)
	eventually(t, func() bool { return s.ended(ran) }, func() string { return "the turn hasn't ended" })
	asked := s.submit(`{"text":"Asks for it."}`)
	eventually(t, func() bool { return s.open() == 1 }, func() string { return "nothing is asked" })
	s.kill()
	s.many(ran, "copies", strconv.Itoa(programs-1))
	s.many(asked, "copies", strconv.Itoa(asks-1))
	s.start("127.0.0.1:0")
	quiet := s.submit(`{"text":"Nothing.","settings":{"mode":"plan"}}`)
	eventually(t, func() bool { return s.ended(quiet) }, func() string { return "the turn hasn't ended" })
	s.kill()
	s.many(quiet, "copies", strconv.Itoa(sessions-programs-asks-1))
	s.start("127.0.0.1:0")
	p.open(s.run("console", "--role", "owner"))
	shown := func(what, then string) {
		t.Helper()
		began := time.Now()
		p.expect(then)
		t.Logf("%s after %s, %v elements", what, time.Since(began).Round(time.Millisecond), p.js("document.querySelectorAll('*').length"))
	}
	shown("the overview", fmt.Sprintf("document.body.innerText.includes('Needs you %d')", asks))
	p.accessible("the overview of many")
	p.keys("ga")
	shown("the questions", fmt.Sprintf("document.body.innerText.includes('%d open') && document.querySelector('.question .answer')", asks))
	p.read()
	p.keys("a")
	shown("one fewer", fmt.Sprintf("document.body.innerText.includes('%d open')", asks-1))
	p.keys("gs")
	shown("the sessions", fmt.Sprintf("document.querySelector('h1 + .muted')?.innerText === '%d' && document.querySelector('#page .row')", sessions))
	p.shoot("crowd")
	p.fill("Search", "Ran a program")
	p.keys("\r")
	shown("those that were searched for", fmt.Sprintf("document.querySelector('h1 + .muted')?.innerText === '%d' && document.querySelector('#page .row')", programs))
	p.open(s.url + "/programs")
	shown("the programs", "document.querySelectorAll('#page .rows .row').length >= 20")
	if n := p.js("document.querySelectorAll('*').length").(float64); n > 12_000 {
		t.Errorf("%v elements", n)
	}
	p.clean(s)
}
