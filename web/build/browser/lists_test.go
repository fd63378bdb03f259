package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// row is the row of a list that has a text.
func row(text string) string {
	return fmt.Sprintf("[...document.querySelectorAll('#page .row')].find(r => r.innerText.includes(%q))", text)
}

// TestSessionsAreFilteredFoldedAndCounted: by what the server knows, each outcome among it;
// forks and agents are under the session that they come from.
// Guarantee: V46.
func TestSessionsAreFilteredFoldedAndCounted(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, locking)
	other := filepath.Join(s.dir, "ws", "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	first := s.submit(`{"text":"Lock the queue.","settings":{"allow":["exec","edit"]}}`)
	second := s.submit(`{"text":"Elsewhere.","workspace":"` + other + `","settings":{"allow":["exec","edit"]}}`)
	eventually(t, func() bool { return s.ended(first) && s.ended(second) }, func() string { return "the turns haven't ended" })
	s.run("sessions", "tag", second, "urgent")
	s.fails(5, "run", "--budget", "1calls", "--allow", "exec", "--approvals", "deny", "Too much.")
	var fork struct{ SessionID string }
	s.do("/v1/commands/fork_session", `{"sessionId":"`+first+`"}`, &fork)

	p.keys("gs")
	p.expect("document.querySelector('#page .rows')?.getAttribute('aria-label') === 'Sessions'")
	p.expect("document.querySelectorAll('#page .row').length === 3") // the fork is folded
	p.press("1 fork of Lock the queue.")
	p.expect("document.querySelectorAll('#page .row').length === 4 && document.querySelector('.row.child a[href$=\"" + fork.SessionID + "\"]')")
	p.expect("document.querySelector('.fold').getAttribute('aria-expanded') === 'true'")

	p.choose("Outcome", "budget")
	p.expect("document.querySelectorAll('#page .row').length === 1 && " + row("Too much."))
	for _, outcome := range p.js("[...document.querySelector('select[aria-label=Outcome]').options].map(o => o.value)").([]any) {
		p.choose("Outcome", outcome.(string))
		p.expect("document.querySelector('#page .rows, #page .empty') && !document.querySelector('.skeleton')")
		p.expect("!document.body.innerText.includes('Try again')")
	}
	p.choose("Outcome", "")
	p.choose("With tag", "urgent")
	p.expect("document.querySelectorAll('#page .row').length === 1 && " + row("Elsewhere."))
	p.choose("With tag", "")
	p.choose("Of folder", other)
	p.expect("document.querySelectorAll('#page .row').length === 1 && " + row("Elsewhere."))
	p.shoot("sessions-filtered")
	p.choose("Of folder", "")
	p.expect("document.querySelectorAll('#page .row').length >= 3")

	// rows are as high as a pointer or a finger needs
	high := "Math.max(...[...document.querySelectorAll('#page .row')].map(r => Math.round(r.getBoundingClientRect().height)))"
	p.expect(high + " === 32")
	p.js("document.documentElement.dataset.dense = true")
	p.expect(high + " === 26")
	p.at(390, 844, "light")
	p.expect(high + " >= 44 && " + high + " <= 46")
	p.clean(s)
}

// TestTheFrameSaysWhatWaits: the tab's icon counts open questions; a screen reader hears of
// a new one at once, and of all else in a line every five seconds.
// Guarantee: V46.
func TestTheFrameSaysWhatWaits(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, locking)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	p.expect("document.querySelector('link[rel=icon]').getAttribute('href') === '/icon.svg'")
	const live = "[role=status], [role=alert], [role=log], [aria-live]"
	p.js("window.lines = []; new MutationObserver(() => (text => text && text !== lines.at(-1)?.[1] && lines.push([performance.now(), text]))(document.querySelector('[role=status]').innerText)).observe(document.querySelector('[role=status]'), {childList: true, characterData: true, subtree: true})")
	for i := range 3 {
		id := s.submit(fmt.Sprintf(`{"text":"Turn %d.","settings":{"allow":["exec","edit"]}}`, i))
		eventually(t, func() bool { return s.ended(id) }, func() string { return "the turn hasn't ended" })
	}
	s.submit(`{"text":"Go."}`)
	p.shows("Review")
	p.expect("document.querySelector('[role=alert]').innerText === '1 question waits for you.'")
	p.expect("decodeURIComponent(document.querySelector('link[rel=icon]').href).includes('>1</text>')")
	p.expect("lines.length >= 1 && /turns? ended/.test(lines[0][1])")
	for _, keys := range []string{"gs", "ga", "gp", "gc", "go"} {
		p.letters(keys)
		p.expect("!document.querySelector('.skeleton')")
		p.expect("document.querySelectorAll('" + live + "').length === 2")
	}
	p.letters("ga")
	p.press("Copy the id")
	p.expect("lines.some(l => l[1].includes('Copied'))")
	if least := p.js("Math.min(1e9, ...lines.slice(1).map((l, i) => l[0] - lines[i][0]))").(float64); least < 4900 {
		t.Errorf("two lines within %v", time.Duration(least)*time.Millisecond)
	}
	p.press("Deny…")
	p.press("Deny it")
	p.expect("document.querySelector('link[rel=icon]').getAttribute('href') === '/icon.svg'")

	// what the page's head offers is in the palette
	p.letters("gs")
	p.expect("document.title === 'Sessions · Belay'")
	p.palette("failed")
	p.expect("location.search === '?outcome=failed'")
	p.clean(s)
}

// committing is a model whose agent has another one commit.
const committing = `
steps:
  - when: {contains: PART commit}
    text: I will commit it now.
    calls: [{tool: list, args: {path: .}}]
  - when: {tool: list}
    calls: [{tool: exec, args: {command: git commit -m main}}]
  - when: {tool: exec}
    calls: [{tool: complete_task, args: {summary: committed}}]
  - when: {tool: spawn_agent}
    calls: [{tool: complete_task, args: {summary: all is done}}]
  - calls: [{tool: spawn_agent, args: {task: PART commit, name: keeper}}]
`

// TestAQuestionSaysWhoAsksAndWhatChanged: agents from the first to the asker, what led to
// it, and how a request differs from the one that was read; the overview answers, opens and
// explains.
// Guarantee: V46.
func TestAQuestionSaysWhoAsksAndWhatChanged(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, committing)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	session := s.submit(`{"text":"Have it committed.","settings":{"tools":"coding,group:agents"}}`)
	p.press("Why Have it committed.")
	p.shows("Facts")
	p.shoot("overview-why")
	p.press("Open Have it committed.")
	p.expect(fmt.Sprintf("location.pathname.endsWith(%q) && location.search.includes('item=tool_call')", session))
	p.js("(real => { window.fetch = async (...a) => { const r = await real(...a); if (!String(a[0]).includes('/preview')) return r; window.fetch = real; return new Response(JSON.stringify({...await r.json(), version: '000000000000', line: 'git commit -m other'}), r) } })(window.fetch)")
	p.letters("ga")
	p.shows("git commit -m other")
	p.expect("[...document.querySelectorAll('.lineage li')].map(x => x.innerText.split(' ')[0]).join() === 'the,keeper'")
	p.expect("document.querySelector('.led')?.innerText.includes('I will commit it now.')")
	p.press("Allow once")
	p.shows("This request changed while you were reading")
	p.expect("document.querySelector('.changed pre .del').innerText.includes('-git commit -m other') && document.querySelector('.changed pre .add').innerText.includes('+git commit -m main')")
	p.shoot("question-differs")
	p.press("I read it")

	// what a grant would have covered is there before the grant can be given
	p.js("(real => { window.held = []; window.fetch = (...a) => String(a[0]).includes('rehearse_grant') ? new Promise(go => held.push(() => go(real(...a)))) : real(...a) })(window.fetch)")
	p.press("Allow for this session")
	p.expect("held.length === 1 && [...document.querySelectorAll('button')].find(b => b.innerText === 'Allow them').getAttribute('aria-disabled') === 'true'")
	p.js("held[0](); 0")
	p.shows("this would have answered")
	p.press("Allow them")
	p.shows("Nothing waits for you.")
	p.letters("gs")
	p.press("1 agent of Have it committed.")
	p.expect("document.querySelector('.row.agent')")
	p.clean(s)
}

// TestASuggestedRuleIsRehearsedAndSaved, and costs are of a range of days.
// Guarantee: V51.
func TestASuggestedRuleIsRehearsedAndSaved(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, "steps:\n  - calls:\n      - "+commit+"\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n")
	for range 3 {
		s.run("run", "--approvals", "deny", "Push it.")
	}
	p.open(s.run("console", "--role", "owner"))
	p.shows("Today")
	p.letters("gp")
	p.press("Suggestions")
	p.shows("would have allowed")
	p.press("Rehearse it")
	p.expect("location.search === '?view=edit' && document.querySelector('textarea').value.includes('git')")
	p.exactly("Rehearse")
	p.expect("document.querySelector('[aria-label^=\"Calls that would be decided otherwise\"] .row')")
	p.shoot("suggestion")
	p.press("Save the rule")
	p.shows("It counts from the next turn on.")
	if files, err := os.ReadDir(filepath.Join(s.dir, ".config/belay/policy.d")); err != nil || len(files) != 1 {
		t.Errorf("%v %v", files, err)
	}
	p.press("Rules")
	p.shows("no hit in the range")

	p.letters("gc")
	p.shows("Recorded cost")
	today := time.Now().Format(time.DateOnly)
	p.js(fmt.Sprintf("for (const i of document.querySelectorAll('input[type=date]')) { i.value = %q; i.dispatchEvent(new Event('change', {bubbles: true})) }", today))
	p.expect(fmt.Sprintf("location.search.includes('from=%s') && location.search.includes('to=%s')", today, today))
	p.expect("document.querySelector('table') && document.querySelector('thead th').innerText === 'Hour'")
	p.shoot("costs-range")
	p.open(s.url + "/costs?from=2001-01-01&to=2001-01-02")
	p.shows("Nothing was used in this time.")
	p.open(s.url + "/costs?from=2001-01-03&to=2001-01-02")
	p.shows("The range ends before it begins.")
	if own := strings.Join(p.requests, "\n"); !strings.Contains(own, "to=") {
		t.Error("no request has an end of its range")
	}
	p.clean(s)
}
