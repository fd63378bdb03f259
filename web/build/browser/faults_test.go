package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// answered has the page get another answer to requests whose address ends so; "" ends that.
func (p *page) answered(end string, status int, body string) {
	p.t.Helper()
	p.js(fmt.Sprintf("window.real ??= window.fetch; window.fetch = !%q ? real : async (...a) => String(a[0]).split('?')[0].endsWith(%q) ? new Response(%q, {status: %d}) : real(...a); 0", end, end, body, status))
}

// TestWhatGoesWrongIsShownInItsPlace: what is refused isn't shown as if it counted, nor is
// what was written for it lost; an answer that isn't the server's takes no more than its
// page; and looking for something doesn't leave a list that was filtered.
// Guarantee: V46.
func TestWhatGoesWrongIsShownInItsPlace(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, "steps: [{text: Said., repeat: 100}]")
	session := s.submit(`{"text":"Go."}`)
	eventually(t, func() bool { return s.ended(session) }, func() string { return s.run("events", session) })
	p.open(s.run("console"))
	p.shows("Needs you")

	p.open(s.url + "/sessions?status=ended")
	p.expect("document.querySelector('.row .main')")
	p.keys("/")
	p.expect("document.activeElement.type === 'search' && location.search === '?status=ended'")
	p.open(s.url + "/costs?by=model")
	p.shows("24 hours")
	p.keys("/")
	p.expect("document.activeElement.role === 'combobox' && location.pathname + location.search === '/costs?by=model'")
	p.keys(kb.Escape)

	const no = `{"status": 400, "code": "bad_command", "detail": "it may not be so", "title": "no", "type": "x"}`
	p.open(s.url + "/sessions/" + session)
	p.expect("document.querySelector('select[aria-label=Mode]')")
	mode := p.js("document.querySelector('select[aria-label=Mode]').value")
	p.answered("/update_thread", 400, no)
	p.choose("Mode", "plan")
	p.shows("it may not be so")
	p.expect(fmt.Sprintf("document.querySelector('select[aria-label=Mode]').value === %q", mode))

	p.keys("gs")
	p.press("New")
	p.fill("What to do", "Much that was thought of.")
	p.answered("/submit_turn", 400, no)
	p.press("Begin")
	p.expect("document.querySelector('dialog .told')?.innerText.includes('it may not be so')")
	p.accessible("a dialog with what went wrong")
	p.keys(kb.Escape)
	p.expect("!document.querySelector('dialog')")
	p.press("New")
	p.expect("document.querySelector('dialog textarea').value === 'Much that was thought of.'")
	p.keys(kb.Escape)

	for _, bad := range []string{"<html>a proxy</html>", `{"sessions": 5}`, `{"sessions": [{}]}`, `{"sessions": [null]}`} {
		p.answered("/v1/sessions", 200, bad)
		p.letters("gc")
		p.expect("document.title === 'Costs · Belay'")
		p.keys("gs")
		p.expect("document.querySelector('#page .empty .button') && document.querySelector('.rail a')")
		p.answered("", 0, "")
		p.press("Try again")
		p.expect("document.querySelector('.row .main')")
	}
	p.answered("/v1/actions", 200, `{"actions": 5}`)
	p.letters("ga")
	p.expect("document.querySelector('#page .empty .button') && document.querySelector('.rail a')")
	p.answered("", 0, "")
	p.press("Try again")
	p.shows("Nothing waits for you.")
	p.clean(s)
}
