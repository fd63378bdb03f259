package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/belay-run/belay/internal/auth"
)

// TestARoleSeesEveryPageAndIsRefusedNothing: a viewer and an approver look at every page
// and use all that can be used there; what they may not do is shown, can't be used and says
// why, so that the server has nothing to refuse.
// Guarantee: V46.
func TestARoleSeesEveryPageAndIsRefusedNothing(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, slowly)
	runs := s.submit(fmt.Sprintf(`{"text":"Make the file.","settings":{"mode":"accept_edits"},"workspace":%q}`, s.workspace("one")))
	second := s.submit(fmt.Sprintf(`{"text":"May I?","workspace":%q}`, s.workspace("other")))
	var programs struct {
		Programs []struct{ ProcessID, Command, CallID string }
	}
	eventually(t, func() bool {
		s.do("/v1/programs?sessionId="+runs, "", &programs)
		return s.open() == 1 && len(programs.Programs) == 3
	}, func() string { return s.run("events", second) })
	s.do("/v1/commands/submit_turn", `{"sessionId":"`+runs+`","text":"Later.","queue":"enqueue"}`, nil)
	one := programs.Programs[0]
	session := "/sessions/" + runs

	// the pages, and what on them is not for a viewer, not for an approver
	const answers = "Allow once, Allow for this session…, Allow more…, Change…, Deny…"
	pages := []struct{ path, viewer, approver string }{
		{"/", "", ""},
		{"/sessions", "New", "New"},
		{"/sessions?new=1", "New, Begin", "New, Begin"},
		{session, "Stop, Send, Fork: begin, Drop: , Edit: ", "Stop, Send, Fork: begin"},
		{session + "?item=tool_call/" + one.CallID, "Stop", "Stop"},
		{session + "?tab=timeline", "Stop", "Stop"}, {session + "?tab=events", "Stop", "Stop"}, {session + "?tab=changes", "Stop", "Stop"}, {session + "?tab=context", "Stop", "Stop"}, {session + "?tab=programs", "Stop", "Stop"},
		{"/approvals", answers, ""},
		{"/programs", "", ""},
		{"/programs/" + one.ProcessID + "?session=" + runs, "Send, End of input, End…", "Send, End of input, End…"},
		{"/policies", "", ""}, {"/policies?view=log", "", ""}, {"/policies?view=try", "", ""}, {"/policies?view=edit", "Save the rule", "Save the rule"}, {"/policies?view=suggest", "", ""},
		{"/costs", "", ""}, {"/health", "", ""},
		{"/access", "New token", "New token"},
		{"/settings", "", ""},
	}
	for _, role := range []auth.Role{auth.Viewer, auth.Approver} {
		p.open(s.run("console", "--role", string(role)))
		p.expect("document.querySelector('#page h1')")
		for _, at := range pages {
			refused := map[auth.Role]string{auth.Viewer: at.viewer, auth.Approver: at.approver}[role]
			p.open(s.url + at.path)
			p.expect("document.querySelector('#page')?.innerText.length > 20 && !document.querySelector('#page [aria-busy=true]')")
			for name := range strings.SplitSeq(refused, ", ") {
				p.expect(fmt.Sprintf("%q === '' || [...document.querySelectorAll('.button')].some(b => [b.innerText.trim(), b.getAttribute('aria-label')].some(t => t?.startsWith(%q)) && b.getAttribute('aria-disabled') === 'true' && /role|owner/.test(b.title))", name, name))
			}
			if role == auth.Approver && at.path == "/approvals" {
				continue // an approver may answer
			}
			// all that can be used is used, and every form is sent; one after another, as what
			// the first one opens has more of it
			p.js("document.querySelectorAll('#page textarea, #page input:not([type=checkbox], [type=search], [type=number])').forEach(x => { if (x.disabled) return; x.focus(); document.execCommand('insertText', false, 'x') })")
			for range 2 {
				p.js("document.querySelectorAll('#page .button, #page .call, #page .knot, #page .pick, dialog .button').forEach(b => b.isConnected && b.getAttribute('aria-disabled') !== 'true' && !b.closest('a') && b.click())")
				p.js("document.querySelectorAll('#page form').forEach(f => f.requestSubmit())")
			}
			p.js("document.querySelectorAll('#page select').forEach(x => { if (x.disabled) return; x.selectedIndex = (x.selectedIndex + 1) % x.options.length; x.dispatchEvent(new Event('change', {bubbles: true})) })")
			if found, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string]("[...document.querySelectorAll('[aria-disabled=true], select:disabled, input:disabled, textarea:disabled, button:disabled')].filter(b => !b.title).map(b => b.outerHTML)")); err != nil || len(found) > 0 {
				t.Errorf("%s as %s: what can't be used says why: %s %v", at.path, role, found, err)
			}
		}
		p.open(s.url + "/")
		p.press("Sign out")
		p.shows("belay console")
	}
	if n := s.open(); n != 1 {
		t.Errorf("%d questions are open", n)
	}
	for line := range strings.Lines(s.errs.String()) {
		var e struct{ Msg, Principal, Command, Code string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Msg == "command" && e.Code == "forbidden" {
			t.Errorf("the page asked for what its role may not do: %s", line)
		}
	}
	p.clean(s)
}
