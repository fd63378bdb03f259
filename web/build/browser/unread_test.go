package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const pushing = `
steps:
  - when: {contains: Push}
    calls:
      - {tool: exec, args: {command: git push origin main}}
  - when: {contains: Remove}
    calls:
      - {tool: exec, args: {command: rm -rf ../other}}
  - when: {contains: Write}
    calls:
      - {tool: exec, args: {command: "git push origin a b c d e f g h i j k l m n o p q r s t u v w x y z LONG"}}
  - text: That was it.
    repeat: 1000
`

// read looks at the question of the page as a person does: from its beginning to its
// answers, for as long as it takes until letters answer it.
func (p *page) read() {
	p.t.Helper()
	p.expect("document.querySelector('#page article.question .answer .actions')")
	p.wait(`(async q => { q.contains(document.activeElement) || q.focus({preventScroll: true}); q.scrollIntoView({block: 'start'}); await frames(); q.querySelector('.answer .actions').scrollIntoView({block: 'nearest'}) })(document.querySelector('#page article.question'))`)
	p.expect("document.querySelector('#page article.question[data-answerable]')")
}

// wait runs a script until it is done; frames() are done when what was scrolled is known.
func (p *page) wait(script string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Evaluate[any]("var frames = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 250))); "+script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
}

// answers is how often the page answered a question.
func (p *page) answers() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if strings.HasSuffix(r, "/respond_action") {
			n++
		}
	}
	return n
}

// TestWhatNobodyReadIsNotAnswered: a letter answers the question that has the focus and was
// on the screen for a second, from its beginning to its answers; once, however long it is
// held; what destroys something takes a second key. After an answer the page says what it
// allowed, and stays.
// Guarantee: V46.
func TestWhatNobodyReadIsNotAnswered(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, pushing)
	n := 0
	ask := func(text string) (session, action string) {
		t.Helper()
		n++
		session = s.submit(fmt.Sprintf(`{"text":%q,"workspace":%q}`, text, s.folder(fmt.Sprintf("asks-%d", n))))
		var all struct{ Actions []struct{ ActionID string } }
		eventually(t, func() bool { s.do("/v1/actions?sessionId="+session, "", &all); return len(all.Actions) == 1 }, func() string { return s.run("events", session) })
		return session, all.Actions[0].ActionID
	}
	none := func(want int, what string) {
		t.Helper()
		p.js("1") // what it asked for is heard
		if n, open := p.answers(), s.open(); n != want {
			t.Fatalf("%s: %d answers, not %d; %d questions are open", what, n, want, open)
		}
	}
	// a person's key, at once or after a while
	const key = "(document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true})), true)"
	const later = "new Promise(done => setTimeout(done, 1500))"
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")

	_, first := ask("Push it.")
	_, second := ask("Push that.")
	// a key that was meant for something else, in the moment in which the question comes
	p.js("new MutationObserver((_, o) => { if (document.querySelector('.question .answer')) { o.disconnect(); " + key + " } }).observe(document.body, {childList: true, subtree: true})")
	p.keys("ga")
	p.expect("document.querySelector('.question .answer')")
	none(0, "a key before anybody could read it")
	p.read()
	p.js("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true, repeat: true}))")
	none(0, "a key that is held")
	p.js("document.activeElement.blur()")
	p.keys("a")
	p.shows("Letters answer the question that has the focus")
	none(0, "a question without the focus")
	p.read()
	p.keys("aa")
	p.shows("Allowed once: git push origin main")
	p.keys("a")
	eventually(t, func() bool { return s.open() == 1 }, func() string { return "nothing was answered" })
	none(1, "a key, twice, and once more after the answer")
	p.press("The next one")
	p.expect(fmt.Sprintf("[%q, %q].some(id => location.pathname.endsWith(id))", first, second))
	p.read()
	p.keys("a")
	p.shows("Nothing waits for you.")
	p.shows("Allowed once: git push origin main")
	none(2, "the next one")

	session, _ := ask("Write it.")
	p.open(s.url + "/approvals")
	p.at(1600, 330, "light")
	p.shows("LONG")
	p.expect("document.querySelector('.question .answer')")
	p.wait(later)
	p.keys("a")
	none(2, "a question whose end nobody saw")
	p.read()
	p.js("document.querySelector('main').scrollTop = 0")
	p.expect("!document.querySelector('.question[data-answerable]')")
	p.keys("a")
	none(2, "a question whose end is out of sight again")
	p.at(1600, 900, "light")
	p.open(s.url + "/sessions/" + session)
	p.read()
	p.keys("a")
	p.shows("Allowed once: git push origin a b c")
	p.expect("!document.querySelector('article.question')")
	none(3, "a question in its conversation")

	session, _ = ask("Remove it.")
	p.open(s.url + "/approvals")
	p.read()
	p.shoot("question-destructive")
	p.read()
	p.keys("a")
	p.shows("Look twice: rm")
	p.keys("a")
	p.expect("document.activeElement.innerText === 'Yes, allow once'")
	none(3, "what destroys something, and the same key again")
	p.keys(kb.Enter)
	p.shows("Allowed once: rm -rf ../other")
	eventually(t, func() bool { return s.ended(session) }, func() string { return s.run("events", session) })
	none(4, "what destroys something, and a second key")
	p.clean(s)
}
