package browser

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestNoTextBecomesAnythingElse: what agents, tools and people say is text, whatever is in
// it and however long it is.
// Guarantee: V48.
func TestNoTextBecomesAnythingElse(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/hostile/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	script := "steps:\n"
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		script += fmt.Sprintf("  - text: %q\n    calls:\n      - {tool: exec, args: {command: \"cat hostile/%s\"}}\n", strings.ReplaceAll(string(b), "\x00", ""), filepath.Base(f))
	}
	table := "|a|b|\n|-|-|\n" + strings.Repeat("|one|two|\n", 5000)
	script += fmt.Sprintf("  - text: %q\n    calls:\n      - {tool: exec, args: {command: \"head -c 10485760 /dev/zero | tr '\\\\0' x; echo the end\"}}\n  - text: That was all.\n    calls:\n      - {tool: complete_task, args: {summary: %q}}\n", table, "<b>done</b> \u202e")
	p := browse(t)
	s := serve(t, script)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.MkdirAll(filepath.Join(s.dir, "ws", "hostile"), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, "ws", "hostile", filepath.Base(f)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	session := s.submit(`{"text":"<img src=x onerror=\"document.title='taken'\"> \u202e Go.","settings":{"allow":["exec"]}}`)
	p.open(s.url + "/sessions/" + session)
	p.expect("document.querySelector('.turn_end')")
	p.expect("document.querySelector('.said')")
	p.js("[...document.querySelectorAll('.call')].forEach(c => c.getAttribute('aria-expanded') === 'true' || c.click())")
	const safe = "'SPAN P STRONG EM S UL OL LI BLOCKQUOTE TABLE THEAD TBODY TR TH TD CODE PRE BR HR A DIV BUTTON SVG PATH CIRCLE RECT LINE POLYLINE B TIME DETAILS SUMMARY DL DT DD H3'.split(' ')"
	harmless := func(where string) {
		t.Helper()
		for what, script := range map[string]string{
			"elements":         "[...document.querySelectorAll('.rope *, .inspector .shown *')].map(x => x.tagName.toUpperCase()).filter(x => !" + safe + ".includes(x))",
			"attributes":       "[...document.querySelectorAll('.rope *, .inspector .shown *')].flatMap(x => [...x.attributes].map(a => a.name)).filter(a => a.startsWith('on') || a === 'style' || a === 'srcdoc')",
			"addresses":        "[...document.querySelectorAll('.rope a[href], .inspector .shown a[href]')].map(a => a.getAttribute('href')).filter(h => !/^(https?:\\/\\/|mailto:|\\/sessions\\/)/.test(h))",
			"links":            "[...document.querySelectorAll('.rope a[target]')].filter(a => !a.rel.includes('noopener') || !a.innerText.includes('(' + new URL(a.href).host + ')')).map(a => a.outerHTML)",
			"unseen letters":   "[...document.querySelector('.rope').innerText].filter(c => /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]/u.test(c)).map(c => c.codePointAt(0).toString(16))",
			"too much at once": "[document.querySelectorAll('*').length].filter(n => n > 12000)",
		} {
			if found, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]any](script)); err != nil || len(found) > 0 {
				t.Errorf("%s: %s: %.300v %v", where, what, found, err)
			}
		}
	}
	harmless("the conversation")
	p.shows("⟨U+202E⟩")
	p.shoot("hostile")
	p.press("Inspect exec")
	for _, view := range []string{"Input", "Output", "Raw", "Why"} {
		p.js(fmt.Sprintf("[...document.querySelectorAll('.inspector nav button')].find(b => b.innerText === %q).click()", view))
		p.expect("document.querySelector('.inspector .shown').childElementCount > 0")
		harmless(view)
	}
	// the line of ten megabytes, a part at a time, and its end by its words
	p.js("[...document.querySelectorAll('.tool_call .knot')].filter(k => k.getAttribute('aria-label') === 'Inspect exec').at(-1).click()")
	p.js("[...document.querySelectorAll('.inspector nav button')].find(b => b.innerText === 'Output').click()")
	p.shows("More")
	p.fill("Find", "the end")
	p.js("document.querySelector('.inspector .say').requestSubmit()")
	p.expect("document.querySelector('.inspector pre').innerText.includes('the end')")
	p.letters("gs")
	p.expect("document.querySelector('.row .status.ok')")
	if title := p.js("document.title"); title != "Sessions · Belay" {
		t.Errorf("the title is %v", title)
	}
	if mb := p.heap(); mb > 60 {
		t.Errorf("the heap has %.0f MB", mb)
	}
	p.clean(s)
}

// TestWhatGoesWrongIsSaid: codes and tokens that don't count, what isn't there, what another
// tenant has, a clock that is wrong, a page without scripts.
// Guarantee: V45, V46.
func TestWhatGoesWrongIsSaid(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, talking)
	for code, says := range map[string]string{"AAAAAAAAAAAAAAAAAAAAAA": "each counts once", "x": "each counts once", "": "belay console"} {
		p.open("about:blank")
		p.open(s.url + "/#code=" + code)
		p.shows(says)
		p.expect("location.hash === ''")
	}
	p.fill("Or paste a token", "belay_nothing")
	p.press("Sign in")
	p.shows("not known here")
	p.accessible("a token that isn't known")
	p.open("about:blank")
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	session := s.submit(`{"text":"Look."}`)
	for address, says := range map[string]string{
		"/sessions/sess_nothing": "there is no session",
		"/approvals/act_nothing": "nothing waits, or waited, under this id", "/programs/proc_nothing": "proc_nothing", "/sessions/" + session + "?item=tool_call/nothing&of=why": "No fact about it is near",
		"/sessions?before=nonsense": "before", "/costs?days=x": "Costs", "/policies?view=log&before=x": "before", "/sessions/" + session + "?tab=events&before=x": "cursor",
	} {
		p.open(s.url + address)
		p.shows(says)
		p.accessible(address)
	}
	p.open(s.url + "/sessions/sess_nothing")
	p.shows("All sessions")
	p.shoot("nothing")

	// another tenant's session and content aren't there
	other := s.run("token", "create", "--role", "owner", "--tenant", "other")
	if status := s.as(other, "/v1/sessions/"+session); status != http.StatusNotFound {
		t.Errorf("another tenant's session: %d", status)
	}

	// a clock that is an hour off
	for _, off := range []string{"-3600e3", "3600e3"} {
		p.open(s.url + "/")
		p.shows("Today")
		p.js("(d => { Date.now = () => d() + " + off + " })(Date.now)")
		p.keys("gs")
		p.expect("document.querySelector('#page .row')")
		p.press("Look.")
		p.shows("The loop holds")
	}

	// the token is revoked while a message is on its way
	p.js("(real => { window.fetch = async (...a) => { if (String(a[0]).endsWith('/submit_turn')) await new Promise(go => { window.go = go }); return real(...a) } })(window.fetch)")
	p.fill("Message", "half a sentence")
	p.press("Send")
	p.expect("window.go")
	var mine struct{ TokenID string }
	token := p.js("localStorage.getItem('belay.token')").(string)
	s.asInto(token, "/v1/caller", &mine)
	s.run("token", "revoke", mine.TokenID)
	p.js("go()")
	p.shows("the token was revoked")
	p.accessible("signed out")
	p.open(s.run("console", "--role", "operator"))
	p.shows("Today")
	p.open(s.url + "/sessions/" + session)
	p.expect("document.querySelector('.composer textarea')?.value === 'half a sentence'")
	if facts := s.run("events", session); strings.Contains(facts, "half a sentence") {
		t.Errorf("it was sent all the same:\n%s", facts)
	}
	p.clean(s)
}

// as is the status of a read with a token.
func (s *server) as(token, path string) int { return s.asInto(token, path, nil) }

func (s *server) asInto(token, path string, out any) int {
	was := s.token
	defer func() { s.token = was }()
	s.token = token
	return s.do(path, "", out)
}
