package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// slowly is a model that changes a file in each turn and takes its time.
const slowly = `
steps:
  - calls:
      - {tool: exec, args: {command: 'echo up; while read x; do echo heard $x; done', background_after: 0}}
  - calls:
      - {tool: exec, args: {command: 'sleep 1000', background_after: 0}}
  - calls:
      - {tool: write, args: {path: made.txt, content: "one\n"}}
  - calls:
      - {tool: exec, args: {command: 'until test -e go.txt; do sleep 0.05; done'}}
  - text: Turn over.
    calls:
      - {tool: complete_task, args: {summary: Turn over.}}
`

// TestASessionIsLedFromThePage: messages that wait are edited, put first and dropped; the
// model and the mode change; programs have input and an end; a session goes on from a turn,
// in another one or without what came after: by keys.
// Guarantee: V46.
func TestASessionIsLedFromThePage(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, slowly)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	p.keys("gs")
	p.press("New")
	p.fill("What to do", "Make the file.")
	p.choose("Mode", "accept_edits")
	p.press("Begin")
	p.shows("up")
	session := p.js("location.pathname.split('/')[2]").(string)
	p.expect("document.querySelector('select[aria-label=Mode]').value === 'accept_edits'")

	// a question about the program that waits
	for _, text := range []string{"second", "third", "fourth"} {
		p.fill("Message", text)
		p.choose("What becomes of it", "enqueue")
		p.press("Send")
		p.expect("document.querySelector('.composer textarea').value === ''")
		p.expect(fmt.Sprintf("[...document.querySelectorAll('.queued')].some(q => q.innerText.includes(%q))", text))
	}
	p.shoot("queue")
	queued := func(want ...string) {
		t.Helper()
		p.expect(fmt.Sprintf("[...document.querySelectorAll('.queued .what')].map(x => x.innerText).join() === %q", strings.Join(want, ",")))
	}
	queued("second", "third", "fourth")
	p.enter("Next: fourth")
	queued("fourth", "second", "third")
	p.enter("Drop: second")
	queued("fourth", "third")
	p.enter("Edit: third")
	queued("fourth")
	p.expect("document.activeElement.tagName === 'TEXTAREA' && document.activeElement.value === 'third'")
	p.keys(", otherwise" + kb.Enter)
	queued("fourth", "third, otherwise")
	p.enter("Drop: fourth")
	queued("third, otherwise")
	p.enter("Drop: third, otherwise")
	queued()

	p.tab("Model")
	p.keys("other" + kb.Tab)
	p.expect("document.activeElement.getAttribute('aria-label') === 'Mode'")
	p.keys("p") // plan
	eventually(t, func() bool {
		facts := s.run("events", session, "--json")
		return strings.Contains(facts, `"mode":"plan"`) && strings.Contains(facts, `"model":"other"`)
	}, func() string { return s.run("events", session, "--json") })

	// the program that reads
	p.letters("6")
	p.enter("echo up")
	p.expect("document.querySelector('.output')?.innerText.includes('up')")
	p.tab("Input")
	p.keys("me" + kb.Enter)
	p.expect("document.querySelector('.output')?.innerText.includes('heard me')")
	p.tab("Find in the output")
	p.keys("heard")
	p.expect("!document.querySelector('.output').innerText.includes('up')")
	p.enter("End of input")
	p.shows("exit 0")
	p.letters("gr")
	p.enter("sleep 1000")
	p.enter("End…")
	p.enter("End it now")
	p.expect("document.querySelector('.bar .status.failed, .bar .status.muted')")
	p.shoot("program")

	// on from a turn
	if err := os.WriteFile(filepath.Join(s.dir, "ws", "go.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return s.ended(session) }, func() string { return "the turn hasn't ended" })
	p.open(s.url + "/sessions/" + session)
	p.choose("Mode", "accept_edits")
	p.expect("document.querySelector('select[aria-label=Mode]').value === 'accept_edits' && document.querySelector('.turn_end')")
	p.fill("Message", "Again.")
	p.press("Send")
	const ended = "[...document.querySelectorAll('.turn_end')].filter(x => /^(completed|failed)/.test(x.innerText.trim()))"
	p.expect(ended + ".length === 2")
	first := "x.getAttribute('aria-label')?.startsWith('Go on from here') && x.closest('.turn_end').innerText.trim().startsWith('completed')"
	p.tabs(first)
	p.keys(kb.Enter)
	p.enter("Show what would be taken back")
	p.shows("Turns")
	p.shoot("rewind")
	p.enter("Take it back")
	p.expect("!document.querySelector('dialog')")
	if facts := s.run("events", session); !strings.Contains(facts, "history.rollback") {
		t.Errorf("nothing was taken back:\n%s", facts)
	}
	p.tabs(first)
	p.keys(kb.Enter)
	p.enter("Fork here")
	p.expect(fmt.Sprintf("location.pathname.startsWith('/sessions/') && !location.pathname.endsWith(%q)", session))
	p.shows("Make the file.")
	p.shows("A fork of another session")
	p.clean(s)
}

// TestEachFlowByKeysAlone: a session is begun, led, found and managed without a mouse.
// Guarantee: V46.
func TestEachFlowByKeysAlone(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, locking)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	p.palette("new session")
	p.expect("document.querySelector('dialog textarea')")
	p.tab("What to do")
	p.keys("Lock the queue.")
	p.enter("Begin")
	p.expect("location.pathname.startsWith('/sessions/')")
	p.expect("document.querySelector('.question')?.innerText.includes('q.mu.Lock()')")
	p.read()
	p.keys("e")
	p.tab("The call's arguments")
	p.keys(kb.Tab)
	p.read()
	p.keys("s")
	p.shows("this would have")
	p.expect("document.activeElement.innerText === 'Allow them'")
	p.keys(kb.Enter)
	p.expect("document.querySelector('.turn_end')")

	p.keys("n") // what failed: exec, with exit 3
	p.expect("document.activeElement.closest('.item')?.innerText.includes('exec')")
	p.keys(kb.Enter) // the knot: the inspector
	p.expect("document.querySelector('.inspector')")
	p.keys(kb.Escape)
	p.expect("!document.querySelector('.inspector')")
	p.tab("Message")
	p.keys("And once more.")
	p.keys(kb.Enter)
	p.expect("document.querySelectorAll('.rope .user_message').length === 2")
	p.shows("And once more.")

	p.letters("gs")
	p.expect("document.title === 'Sessions · Belay'")
	p.keys("/")
	p.expect("document.activeElement.type === 'search'")
	p.js("document.activeElement.select()") // the browser's remote control types the slash, too
	p.keys("queue")
	p.keys(kb.Enter)
	p.expect("location.search.includes('q=queue')")
	p.shows("Lock the queue.")
	p.enter("Change Lock the queue.")
	p.expect("document.querySelector('dialog')")
	p.tab("Title")
	p.keys("Named by keys")
	p.enter("Save")
	p.expect("!document.querySelector('dialog')")
	p.expect("document.activeElement.getAttribute('aria-label')?.startsWith('Change ')") // what had the focus has it again
	p.keys("gp")
	p.shows("Rehearse and save")
	p.enter("Judge a call")
	p.tab("Command, path")
	p.enter("Judge")
	p.shows("builtin/ask-network")
	p.keys("gt")
	p.enter("New token")
	p.tab("Name")
	p.keys("for once")
	p.enter("Make it")
	p.shows("It is shown this once")
	p.keys(kb.Escape)
	p.expect("!document.querySelector('dialog')")
	p.expect("document.querySelector('[aria-label=\"Revoke for once\"]')")
	p.enter("Revoke for once")
	p.shows("revoked")
	p.keys("ge")
	p.shows("New sessions")
	p.enter("Dark")
	p.expect("document.documentElement.dataset.theme === 'dark'")
	p.clean(s)
}

// enter presses Enter on what has a label or a text, once it is there.
func (p *page) enter(what string) {
	p.t.Helper()
	p.expect(fmt.Sprintf("[...document.querySelectorAll('button, a')].some(x => x.offsetParent && x.getAttribute('aria-disabled') !== 'true' && [x.getAttribute('aria-label'), x.innerText].some(t => t?.trim().startsWith(%q)))", what))
	p.tab(what)
	p.keys(kb.Enter)
}

// tab presses Tab until what has a label or a text has the focus.
func (p *page) tab(what string) {
	p.t.Helper()
	p.tabs(fmt.Sprintf("[x.getAttribute('aria-label'), x.labels?.[0]?.innerText, x.innerText].some(t => t?.trim().startsWith(%q))", what))
	p.js("document.activeElement.select?.()")
}

// tabs presses Tab until something holds of x, which has the focus. Several are pressed
// at once; those behind it don't count.
func (p *page) tabs(holds string) {
	p.t.Helper()
	p.js("window.reached?.(); (is => { const on = (e) => e.key === 'Tab' && is(document.activeElement) && e.preventDefault(); addEventListener('keydown', on, true); window.reached = () => is(document.activeElement) && (removeEventListener('keydown', on, true), true) })(x => " + holds + ")")
	for range 15 {
		if p.js("reached()") == true {
			return
		}
		p.keys(strings.Repeat(kb.Tab, 10))
	}
	p.t.Fatalf("Tab leads to nothing with %s; the page shows\n%s", holds, p.js("document.body.innerText"))
}
