package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked is a question of a kind, and two ways to give the same answer.
type asked struct {
	name  string
	calls string   // of the model
	flags []string // of belay run
	page  func(p *page)
	cli   []string // ID stands for the question
}

const (
	commit = `{tool: exec, args: {command: "git commit -m main"}}`
	write  = `{tool: write, args: {path: new/a.txt, content: hello}}`
)

var questions = []asked{
	{"once", commit, nil, func(p *page) { p.press("Allow once"); p.press("Yes, allow once") }, []string{"approve", "ID"}},
	{"session", commit, nil, func(p *page) { p.press("Allow for this session"); p.shows("this would have"); p.press("Allow them") }, []string{"approve", "ID", "--session"}},
	{"prefix", commit, nil, func(p *page) {
		p.press("Allow more")
		p.fill("Beginning", "git commit")
		p.shows("this would have")
		p.exactly("Allow")
	}, []string{"approve", "ID", "--prefix", "git commit"}},
	{"folder", write, nil, func(p *page) {
		p.press("Allow more")
		p.fill("Beginning", "new")
		p.shows("this would have")
		p.exactly("Allow")
	}, []string{"approve", "ID", "--prefix", "new"}},
	{"count", commit, nil, func(p *page) {
		p.press("Allow more")
		p.choose("What is allowed", "count")
		p.fill("Calls", "3")
		p.shows("this would have")
		p.exactly("Allow")
	}, []string{"approve", "ID", "--count", "3"}},
	{"until", commit, nil, func(p *page) {
		p.press("Allow more")
		p.choose("What is allowed", "until")
		p.fill("Hours", "2")
		p.shows("this would have")
		p.exactly("Allow")
	}, []string{"approve", "ID", "--for", "2h"}},
	{"edit", write, nil, func(p *page) {
		p.press("Change")
		p.fill("The call's arguments", `{"path":"new/b.txt","content":"other"}`)
		p.press("Allow the changed call")
	}, []string{"approve", "ID", "--args", `{"path":"new/b.txt","content":"other"}`}},
	{"deny", commit, nil, func(p *page) { p.press("Deny…"); p.fill("What the agent is told", "not today"); p.press("Deny it") }, []string{"deny", "ID", "-m", "not today"}},
	{"choice", `{tool: ask_user, args: {question: "Which one?", options: [staging, none]}}`, nil, func(p *page) { p.press("staging") }, []string{"answer", "ID", "staging"}},
	{"words", `{tool: ask_user, args: {question: "Which one?"}}`, nil, func(p *page) { p.fill("Answer", "the old one"); p.exactly("Answer") }, []string{"answer", "ID", "the old one"}},
	{"form", `{tool: mcp__forms__ask, args: {}}`, []string{"--allow", "mcp__forms__ask"}, func(p *page) {
		p.fill("Name", "Ada")
		p.fill("age", "30")
		p.choose("colour", "blue")
		p.expect("(x => x && (x.click(), x.checked))([...document.querySelectorAll('.check')].find(l => l.innerText.trim().startsWith('sure'))?.querySelector('input'))")
		p.exactly("Answer")
	}, []string{"answer", "ID", `{"name":"Ada","age":30,"colour":"blue","sure":true}`}},
	{"decline", `{tool: mcp__forms__ask, args: {}}`, []string{"--allow", "mcp__forms__ask"}, func(p *page) { p.press("Decline") }, []string{"deny", "ID"}},
	{"budget", commit, []string{"--budget", "1calls", "--allow", "exec"}, func(p *page) { p.press("Raise it"); p.press("Yes, raise it") }, []string{"approve", "ID"}},
	{"continue", `{tool: read, args: {path: none}}
  - calls:
      - {tool: grep, args: {pattern: "("}}
  - calls:
      - {tool: nothing, args: {}}`, nil, func(p *page) { p.press("Go on") }, []string{"approve", "ID"}},
}

// TestAnswersAreTheSameFromPageAndTerminal: a question of each kind that was asked in a
// terminal is answered in the page, and one that was asked in the page's server at a
// terminal, with each scope; the facts are the same.
// Guarantee: V46.
func TestAnswersAreTheSameFromPageAndTerminal(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, "steps: [{text: x}]")
	s.forms()
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	for i, q := range questions {
		if !whole() && (i+p.seed)%3 != 0 { // in CI a third of them, by the seed
			continue
		}
		script := filepath.Join(s.dir, q.name+".yaml")
		if err := os.WriteFile(script, []byte("steps:\n  - calls:\n      - "+q.calls+"\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		left := s.asks(q, script, q.name)
		inPage := s.waiting()
		p.open(s.url + "/approvals/" + inPage.ActionID)
		p.expect("document.querySelector('.question .answer')")
		p.shoot("question-" + q.name)
		q.page(p)
		p.shows("Nothing waits for you.")
		left()

		left = s.asks(q, script, q.name+"2")
		atTerminal := s.waiting()
		p.expect(fmt.Sprintf("document.querySelector('a[href$=%q]')", atTerminal.ActionID)) // the page heard of it
		args := append([]string{}, q.cli...)
		args[1] = atTerminal.ActionID
		s.run(args...)
		p.shows("Nothing waits for you.")
		left()
		a, b := s.decided(inPage.SessionID), s.decided(atTerminal.SessionID)
		if len(a) == 0 || strings.Join(a, "\n") != strings.Join(b, "\n") {
			t.Errorf("%s: in the page\n%s\nat a terminal\n%s", q.name, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
	p.clean(s)
}

// asks runs a turn in a terminal until it asks. The program leaves then, but with a server
// that waits for its answer: it goes on, and is waited for by what is returned.
func (s *server) asks(q asked, script, folder string) func() {
	s.t.Helper()
	args := append([]string{"run", "--script", script, "--workspace", s.workspace(folder)}, q.flags...)
	if !strings.Contains(q.calls, "forms") {
		s.fails(3, append(args, "--approvals", "ask", "Go.")...)
		return func() {}
	}
	cmd := s.command(append(args, "--approvals", "wait", "Go.")...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("%v: %s", err, said.String())
		}
	}
}

// TestAnAnswerIsOfTheRequestThatWasRead: one that somebody changes or answers meanwhile is
// refused and shown, and what was written stays.
// Guarantee: V46.
func TestAnAnswerIsOfTheRequestThatWasRead(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, "steps:\n  - calls:\n      - "+write+"\n  - calls:\n      - "+commit+"\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n")
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	s.submit(`{"text":"Go."}`)
	// what the page read is another version than the one there is
	p.js("(real => { window.fetch = async (...a) => { const r = await real(...a); if (!String(a[0]).includes('/preview')) return r; window.fetch = real; return new Response(JSON.stringify({...await r.json(), version: '000000000000'}), r) } })(window.fetch)")
	p.keys("ga")
	p.shows("new/a.txt")
	p.press("Allow once")
	p.shows("This request changed while you were reading")
	p.expect("[...document.querySelectorAll('.answer .button')].filter(b => b.title === 'Read the changed request first.').length >= 4")
	p.shoot("question-changed")
	if n := s.open(); n != 1 {
		t.Fatalf("%d questions are open", n)
	}
	p.press("I read it")
	p.press("Deny…")
	p.fill("What the agent is told", "it is somebody's")
	p.press("Deny it")
	p.shows("Denied: write new/a.txt")
	p.press("The next one")
	p.shows("git commit -m main")

	// two people answer at once: one of them is told that it is answered
	id := s.waiting().ActionID
	p.press("Deny…")
	p.fill("What the agent is told", "my words")
	s.run("approve", id)
	p.expect("!document.querySelector('.question .answer')")
	p.shows("This question is answered")
	p.shows("Nothing waits for you.")
	p.clean(s)
}

// fill writes a text into the field that has a label.
func (p *page) fill(label, text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('label, [aria-label]')].map(l => l.getAttribute('aria-label')?.startsWith(%q) ? l : l.innerText.trim().startsWith(%q) && l.querySelector('input, textarea')).find(Boolean)", label, label)
	p.expect(fmt.Sprintf("(x => x && (x.focus(), x.select(), document.execCommand('insertText', false, %q), x.value === %q))(%s)", text, text, find))
}

// exactly clicks the button that has a text and no other.
func (p *page) exactly(text string) {
	p.t.Helper()
	p.expect(fmt.Sprintf("(x => x && (x.click(), true))([...document.querySelectorAll('button')].find(b => b.innerText.trim() === %q && b.getAttribute('aria-disabled') !== 'true'))", text))
}

// choose takes one of the choices of the field that has a label.
func (p *page) choose(label, value string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('label, select')].map(l => l.getAttribute('aria-label') === %q ? l : l.innerText.trim().startsWith(%q) && l.querySelector('select')).find(Boolean)", label, label)
	p.expect(fmt.Sprintf("(x => x && (x.value = %q, x.dispatchEvent(new Event('change', {bubbles: true})), x.value === %q))(%s)", value, value, find))
}

// waiting is the one question that is open.
func (s *server) waiting() (q struct{ ActionID, SessionID string }) {
	s.t.Helper()
	var all struct {
		Actions []struct{ ActionID, SessionID string }
	}
	eventually(s.t, func() bool { s.do("/v1/actions", "", &all); return len(all.Actions) == 1 }, func() string { return fmt.Sprint(all) })
	return all.Actions[0]
}

// decided are the facts about answers of a session, without what differs anyway.
func (s *server) decided(session string) (facts []string) {
	s.t.Helper()
	for line := range strings.Lines(s.run("events", session, "--json")) {
		var e struct {
			Type    string
			Payload map[string]any
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		switch e.Type {
		case "action.resolved", "permission.resolved", "policy.changed", "tool.args", "budget.changed", "budget.raised":
		default:
			continue
		}
		if e.Payload["op"] == "loaded" || e.Payload["reason"] == "allowed" {
			continue
		}
		for _, k := range []string{"by", "until", "bound", "within", "stands", "grant", "before", "decidedAt", "thread", "taint", "position"} {
			delete(e.Payload, k)
		}
		b, err := json.Marshal(e.Payload)
		if err != nil {
			s.t.Fatal(err)
		}
		facts = append(facts, e.Type+" "+string(b))
	}
	return facts
}

// workspace is a folder below the server's, with the MCP server that asks.
func (s *server) workspace(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, "ws", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err == nil {
		var in []byte
		if in, err = os.ReadFile(self); err == nil {
			err = os.WriteFile(filepath.Join(dir, "forms"), in, 0o755)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// forms gives the server an MCP server that asks: this program.
func (s *server) forms() {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Join(s.dir, ".config", "belay"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf("mcp-servers:\n  forms: {command: ./forms, args: [%s]}\n", asServer)
	if err := os.WriteFile(filepath.Join(s.dir, ".config", "belay", "belay.yaml"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

const asServer = "serve-forms"

// serveForms is an MCP server over standard input and output with one tool, which asks.
func serveForms() {
	in := bufio.NewScanner(os.Stdin)
	var call json.RawMessage
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Params struct{ ProtocolVersion string }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		answer := func(result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result) }
		switch m.Method {
		case "initialize":
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"forms","version":"1"}}`)
		case "tools/list":
			answer(`{"tools":[{"name":"ask","description":"Asks who it is.","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			call = m.ID
			fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Name","description":"as on the door"},"age":{"type":"integer","minimum":1},"colour":{"type":"string","enum":["red","blue"]},"sure":{"type":"boolean"}}}}}`)
		case "":
			if len(m.Result) > 0 {
				text, _ := json.Marshal(string(m.Result))
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`+"\n", call, text)
			}
		default:
			if len(m.ID) > 0 {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
			}
		}
	}
}
