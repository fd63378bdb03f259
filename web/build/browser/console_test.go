package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// asking is a model that changes a file, runs a command, and asks.
const asking = `
steps:
  - text: I'll look at the queue first.
    calls:
      - {tool: read, args: {path: queue.go}}
  - text: "The loop holds **no lock**."
    calls:
      - {tool: edit, args: {path: queue.go, old: "return q.items[0]", new: "q.mu.Lock()\n\tdefer q.mu.Unlock()\n\treturn q.items[0]"}}
  - calls:
      - {tool: exec, args: {command: "git push origin main"}}
  - calls:
      - {tool: ask_user, args: {question: "Which database may I drop?", options: [staging, none]}}
  - text: All done.
    calls:
      - {tool: complete_task, args: {summary: The queue has a lock.}}
`

// TestAPersonGetsInAndAnswers goes the way of a new user: the address of belay console,
// the list, each kind of question; and the page says when the server is gone.
// Guarantee: V45, V46.
func TestAPersonGetsInAndAnswers(t *testing.T) {
	p := browse(t)
	s := serve(t, asking)
	address := s.run("console", "--role", "owner")
	p.open(address)
	p.shows("nothing ran today")
	p.expect("location.hash === ''")
	_, code, _ := strings.Cut(address, "#code=")
	if status := s.do("/v1/login", `{"code":"`+code+`"}`, nil); status != http.StatusUnauthorized {
		t.Errorf("the code counts twice: %d", status)
	}
	session := s.submit(`{"text":"The test TestQueue fails one time in twenty."}`)
	p.shows("Review")
	p.expect("document.title.startsWith('(1)')")
	p.shows("edit: queue.go") // in words, not as the model wrote it
	p.shoot("overview")
	p.press("Sessions")
	p.shows("The test TestQueue fails")
	p.shoot("sessions")

	p.press("Approvals")
	p.shows("asked by rule")
	p.shoot("approval-edit")
	p.press("Why?")
	p.shows("The gate said ask")
	p.press("Allow once")
	p.shows("Allowed once: edit queue.go")
	p.press("The next one")
	p.shows("git push origin main")
	if b, err := os.ReadFile(filepath.Join(s.dir, "ws", "queue.go")); err != nil || !strings.Contains(string(b), "q.mu.Lock()") {
		t.Errorf("the edit that was allowed: %s %v", b, err)
	}
	p.shoot("approval-command")
	p.press("Deny…")
	p.expect("document.activeElement.tagName === 'TEXTAREA'")
	p.js("document.execCommand('insertText', false, 'not today')")
	p.press("Deny it")
	p.shows("Denied: git push origin main")
	p.press("The next one")
	p.shows("Which database may I drop?")
	if facts := s.run("events", session); !strings.Contains(facts, "not today") {
		t.Errorf("the facts lack what was said:\n%s", facts)
	}
	p.press("staging")
	p.shows("Nothing waits for you.")
	p.shows("by console on ") // whoever decided has a name
	p.expect("!document.body.innerText.includes('token:tok_') && !document.body.innerText.includes('{\"')")
	if n := s.open(); n != 0 {
		t.Errorf("%d questions are open", n)
	}

	s.kill()
	began := time.Now()
	p.shows("Stale since")
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("it says so after %s", d)
	}
	s.start(strings.TrimPrefix(s.url, "http://"))
	p.expect("!document.body.innerText.includes('Stale since')")
	p.press("Sessions")
	p.expect("document.querySelector('.row .status.ok')")
	p.press("Sign out")
	p.shows("belay console")
	p.clean(s)
}

// talking is a model that says what no page should take for its own, and then speaks for a while.
const talking = `
steps:
  - text: |
      # A heading
      The loop holds **no lock**, see [the page](https://example.org/q) or [this](javascript:alert(1)).
      <script>document.title = "taken"</script> <img src=x onerror="document.title='taken'">
      ![far](https://example.org/p.png) left‮right

      | a | b |
      | --- | --- |
      | 1 | 2 |
    calls:
      - {tool: read, args: {path: queue.go}}
  - text: one two three four five six seven eight nine ten
    chunks: 10
    chunkDelay: 100ms
    calls:
      - {tool: complete_task, args: {summary: Read.}}
  - text: never ends
    chunks: 1000
    chunkDelay: 1s
    delay: 60s
`

// TestASessionIsAConversation reads what an agent says as it says it, sends more, lets it
// wait, and stops it.
// Guarantee: V46, V47.
func TestASessionIsAConversation(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, talking)
	p.open(s.run("console", "--role", "owner"))
	p.press("Sessions")
	p.shows("No sessions here.")
	session := s.submit(`{"text":"Look at the queue."}`)
	p.press("Look at the queue.")
	p.shows("no lock")
	p.expect("document.querySelector('.said strong')?.innerText === 'A heading'")
	p.expect("document.querySelector('.said table')")
	p.shows("(javascript:alert(1))")
	p.shows("<script>")
	p.shows("⟨U+202E⟩")
	p.shows("one two three four five six seven eight nine ten")
	p.expect("document.querySelectorAll('.said img, .said script').length === 0 && document.title !== 'taken'")
	p.expect("document.querySelector('.said a').innerText === 'the page (example.org)'")
	p.shows("completed")
	p.js("document.querySelector('.call').click()")
	p.shows("func (q *Q) pop() int {")
	p.shoot("session")

	p.js("document.querySelector('.composer textarea').focus()")
	p.js("document.execCommand('insertText', false, 'And more?')")
	p.press("Send")
	p.expect("document.querySelector('.composer textarea').value === ''")
	p.shows("And more?")
	p.press("Stop")
	p.shows("cancelled")
	p.press("Events")
	p.shows("turn.submitted")
	if facts := s.run("events", session); strings.Count(facts, "turn.submitted") != 2 {
		t.Errorf("the turn was submitted other than once:\n%s", facts)
	}
	s.do("/v1/commands/delete_session", `{"sessionId":"`+session+`"}`, nil)
	p.open(s.url + "/sessions/" + session) // whether the page saw it go or not
	p.shows("there is no session")
	p.clean(s)
}

// TestRulesAreRehearsed: the page says of other rules what the command says of them, and
// what an owner may not do without a right isn't done.
// Guarantee: V46.
func TestRulesAreRehearsed(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, asking)
	p.open(s.run("console", "--role", "operator"))
	s.submit(`{"text":"Go.","settings":{"allow":["edit"]}}`)
	p.shows("Review")
	p.press("Rules")
	p.shows("1 hit")
	p.shoot("rules-list")
	p.press("Judge a call")
	p.js("[...document.querySelectorAll('button')].find(b => b.innerText === 'Judge').click()")
	p.shows("builtin/ask-network")
	p.press("Decisions")
	p.shows("the command can reach the network")
	p.press("Rehearse and save")
	rules := filepath.Join(s.dir, "next.yaml")
	text := "version: 1\nrules:\n  - id: no-push\n    verdict: deny\n    reason: not here\n    when: {tool: exec, command: {program: git, prefix: push}}\n    examples: [git push]\n"
	if err := os.WriteFile(rules, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var replayed struct{ Changed, Decisions int }
	if err := json.Unmarshal([]byte(s.run("policy", "replay", "--json", "--counts", "--rules", rules)), &replayed); err != nil || replayed.Changed == 0 {
		t.Fatalf("%+v %v", replayed, err)
	}
	p.expect("document.querySelector('textarea')")
	p.js("document.querySelector('textarea').select()")
	p.js(fmt.Sprintf("document.execCommand('insertText', false, %q)", text))
	p.js("[...document.querySelectorAll('button')].find(b => b.innerText === 'Rehearse').click()")
	p.shows(fmt.Sprintf("%d of %d recorded calls would be decided otherwise", replayed.Changed, replayed.Decisions))
	p.shoot("rules")
	p.press("Access")
	p.shows("The list of tokens is an owner's.")
	p.expect("document.querySelector('main .button').getAttribute('aria-disabled') === 'true'")
	p.open(s.run("console", "--role", "owner"))
	p.press("Access")
	p.press("New token")
	p.accessible("a new token")
	p.press("Make it")
	p.shows("It is shown this once")
	p.expect("/^belay_/.test(document.querySelector('dialog pre').innerText)")
	p.press("Close")
	p.shows("operator")
	p.shows("create_token")
	p.expect("(x => x && (x.click(), true))([...document.querySelectorAll('.row')].find(r => r.innerText.includes('this page'))?.querySelector('a'))")
	p.shows("by console on ")
	p.expect("document.querySelectorAll('[aria-label=\"What callers asked for\"] .row').length === 2") // it logged in, and made a token
	p.shoot("access")
	p.clean(s)
}

// TestQuestionsAreAnsweredByKeys alone; what somebody else answers leaves the page, and a
// viewer sees everything and changes nothing.
// Guarantee: V46.
func TestQuestionsAreAnsweredByKeys(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, asking)
	session := s.submit(`{"text":"Go."}`)
	p.open(s.run("console", "--role", "viewer"))
	p.shows("Review")
	p.keys("ga")
	p.shows("asked by rule")
	p.expect("[...document.querySelectorAll('.answer .button')].filter(b => b.getAttribute('aria-disabled') === 'true' && b.title.includes('approver')).length === 5")
	p.read()
	p.keys("a")
	p.shoot("approval-viewer")
	p.press("Sign out")
	p.shows("belay console")
	if n := s.open(); n != 1 {
		t.Errorf("a viewer answered: %d questions are open", n)
	}

	p.open(s.run("console", "--role", "approver"))
	p.shows("Review")
	p.keys("ga")
	p.shows("asked by rule")
	p.read()
	p.keys("w")
	p.shows("The gate said ask")
	p.keys("?")
	p.expect("document.querySelector('dialog[open]')")
	p.shoot("keys")
	p.keys("a") // not while a dialog is open
	p.keys(kb.Escape)
	p.expect("!document.querySelector('dialog')")
	p.read()
	p.keys("a")
	p.shows("Allowed once: ")
	p.press("The next one")
	p.shows("asked by rule builtin/ask-network")
	p.read()
	p.keys("d")
	p.expect("document.activeElement.tagName === 'TEXTAREA'")
	p.keys("asd not a key")
	p.keys(kb.Tab)
	p.expect("document.activeElement.innerText === 'Deny it'")
	p.keys(kb.Enter)
	p.shows("Which database may I drop?")
	if facts := s.run("events", session); strings.Count(facts, "action.resolved") != 2 || !strings.Contains(facts, "asd not a key") {
		t.Errorf("two answers, by keys:\n%s", facts)
	}
	var all struct{ Actions []struct{ ActionID string } }
	s.do("/v1/actions", "", &all)
	s.run("answer", all.Actions[0].ActionID, "none")
	p.shows("Nothing waits for you.")
	p.keys("gs")
	p.expect("document.querySelector('.row .status.ok')")
	p.expect("document.title === 'Sessions · Belay'")
	p.keys("j")
	p.keys(kb.Enter)
	p.expect("document.querySelector('.composer textarea')")
	p.clean(s)
}
