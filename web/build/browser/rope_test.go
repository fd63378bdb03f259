package browser

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tying is a model whose calls a rule, a person and nobody decide about, and one of which is lost.
const tying = `
steps:
  - text: I look at it.
    calls:
      - {tool: read, args: {path: queue.go}}
  - calls:
      - {tool: edit, args: {path: queue.go, old: "return q.items[0]", new: "q.mu.Lock()\n\treturn q.items[0]"}}
  - calls:
      - {tool: exec, args: {command: 'touch began; until test -e go.txt; do sleep 0.05; done'}}
  - text: All done.
    calls:
      - {tool: complete_task, args: {summary: The queue has a lock.}}
    repeat: 2
`

// TestTheRopeSaysWhoDecided: the shape of each knot says its kind and its colour who decided
// about it, in the conversation, the timeline and the inspector; the line is dashed where no
// process drove and frayed where a call was lost; what the timeline shows is in its address.
// Guarantee: V46.
func TestTheRopeSaysWhoDecided(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, tying)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	session := s.submit(`{"text":"Lock the queue.","settings":{"allow":["exec"]}}`)
	p.open(s.url + "/sessions/" + session)
	p.shows("Deny…")
	p.press("Allow once")
	eventually(t, func() bool { _, err := os.Stat(filepath.Join(s.dir, "ws", "began")); return err == nil }, func() string { return "exec hasn't begun" })
	for kind, by := range map[string]string{"user_message": "person", "agent_message": "nobody", "question": "person", "file_change": "person"} {
		p.expect(fmt.Sprintf("document.querySelector('.rope > .%s .shape')?.classList.contains('by-%s')", kind, by))
	}
	const calls = "[...document.querySelectorAll('.rope > .tool_call .shape')].map(x => x.getAttribute('class').split('by-')[1]).join()"
	p.expect(calls + " === 'rule,person,rule'")
	p.expect("new Set([...document.querySelectorAll('.rope > .item')].map(x => x.classList[1] + x.querySelector('.shape').getAttribute('d'))).size === new Set([...document.querySelectorAll('.rope > .item .shape')].map(x => x.getAttribute('d'))).size")
	p.expect("!document.querySelector('.rope > .frayed, .rope > .resting')")

	s.kill()
	if err := os.WriteFile(filepath.Join(s.dir, "ws", "go.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.start(strings.TrimPrefix(s.url, "http://"))
	p.expect("document.querySelector('.rope > .turn_end')")
	p.expect("document.querySelector('.rope > .tool_call.frayed .knot.lost')")
	p.expect("(x => x?.classList.contains('rested') && x.previousElementSibling.classList.contains('resting'))([...document.querySelectorAll('.rope > .notice')].find(x => x.innerText.includes('takeover')))")
	p.expect("document.querySelector('.rope > .item:last-child.resting')") // nothing drives it any more
	p.fill("Message", "Again.")
	p.press("Send")
	p.expect("document.querySelectorAll('.rope > .turn_end').length === 2")
	p.expect("document.querySelectorAll('.rope > .user_message.rested').length === 1")
	p.shoot("rope")

	p.press("Inspect edit")
	p.expect("document.querySelector('.inspector header .shape.by-person')")
	p.letters("2")
	p.expect("document.querySelectorAll('.heads .item').length === 2 && document.querySelector('.heads .rested')")
	p.expect("document.querySelector('.gantt .time .shape.by-rule') && document.querySelector('.gantt .bar-human + .tie .shape.by-person')")
	p.shoot("rope-timeline")
	wide := "document.querySelectorAll('.gantt .bit').length"
	all := p.js(wide).(float64)
	p.js("document.querySelectorAll('.heads button')[1].click()")
	p.expect(fmt.Sprintf("/zoom=\\d+-\\d+/.test(location.search) && %s < %v && document.querySelectorAll('.heads .item').length === 1", wide, all))
	zoomed := p.js(wide)
	p.open(p.js("location.href").(string))
	p.expect(fmt.Sprintf("%s === %v", wide, zoomed))
	p.expect("document.querySelector('.inspector header .shape.by-person')") // also beside what isn't a conversation
	p.js("[...document.querySelectorAll('.inspector nav button')].find(b => b.innerText === 'Input').click()")
	p.expect("document.querySelector('.inspector').innerText.includes('q.mu.Lock()')")
	p.press("As a table")
	p.expect("location.search.includes('as=table') && document.querySelectorAll('.timeline tbody tr').length > 0")
	p.press("All")
	p.expect(fmt.Sprintf("!location.search.includes('zoom=') && document.querySelectorAll('.timeline tbody tr').length === %v", all))
	p.accessible("the timeline as a table")

	// why: on to why that was so
	p.open(s.url + "/sessions/" + session)
	p.press("Inspect edit")
	p.js("[...document.querySelectorAll('.inspector nav button')].find(b => b.innerText === 'Why').click()")
	p.expect("document.querySelectorAll('.inspector .strand .knot').length > 2")
	p.press("the turn")
	p.expect("location.search.includes('item=turn_end/') && document.querySelector('.inspector').innerText.includes('completed')")
	p.clean(s)
}

// TestNothingTypedIsLost: a message that waits is written anew beside what was being written.
// An output is searched in the server, whole, and kept. Times are of the zone that was chosen.
// Guarantee: V46.
func TestNothingTypedIsLost(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, `
steps:
  - calls:
      - {tool: exec, args: {command: 'echo the needle is first; seq 1 60000; echo the last'}}
  - calls:
      - {tool: exec, args: {command: 'until test -e go.txt; do sleep 0.05; done'}}
  - text: All done.
    calls:
      - {tool: complete_task, args: {summary: Over.}}
`)
	if _, err := chromedp.Run(p.ctx, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, t, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
	}); err != nil {
		t.Fatal(err)
	}
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	session := s.submit(`{"text":"Go.","settings":{"allow":["exec"]}}`)
	s.do("/v1/commands/submit_turn", `{"sessionId":"`+session+`","text":"one line\nand another","queue":"enqueue"}`, nil)
	p.open(s.url + "/sessions/" + session)
	p.expect("document.querySelector('.queued .what')?.innerText === 'one line and another'")
	p.expect("![...document.querySelectorAll('.rope .user_message')].some(x => x.offsetParent && x.innerText.includes('another'))") // it isn't said yet
	p.fill("Message", "half a thought")
	p.press("Edit: one line and another")
	p.expect("document.querySelector('.composer textarea').value === 'one line\\nand another\\n\\nhalf a thought' && !document.querySelector('.queued')")
	if err := os.WriteFile(filepath.Join(s.dir, "ws", "go.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}

	p.letters("6")
	p.enter("echo the needle")
	p.expect("document.querySelector('.output')?.innerText.includes('the last') && !document.querySelector('.output').innerText.includes('the needle')")
	p.tab("Find in the output")
	p.keys("needle")
	p.expect("document.querySelector('.output').innerText.startsWith('the needle is first') && document.querySelector('.output .hit').innerText === 'needle'")
	p.keys(kb.Enter)
	p.shows("It isn't in what follows.")
	p.js("window.kept = []; (real => { URL.createObjectURL = (b) => (kept.push(b.size), real(b)) })(URL.createObjectURL.bind(URL))")
	p.press("Whole output")
	whole := len("the needle is first\nthe last\n") + 348894 // bytes of seq
	p.expect("kept[0] === " + strconv.Itoa(whole))

	at := func() string {
		t.Helper()
		p.open(s.url + "/sessions/" + session + "?tab=events&types=turn.*,queue.*,run.*")
		return p.when("document.querySelector('.events summary .mono')", "document.querySelector('.events summary .mono').innerText").(string)
	}
	hours := func(clock string) int {
		n, err := strconv.Atoi(strings.Split(clock, ":")[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	local := at()
	p.letters("ge")
	p.press("UTC")
	if utc := at(); hours(local) != (hours(utc)+9)%24 {
		t.Errorf("it was %s in Tokyo and %s UTC", local, utc)
	}
	p.letters("gt")
	p.shows(" UTC. It may")
	p.clean(s)
}

// TestWhatIsReadStays: whatever comes, and however much, what one reads stays where it is;
// how much came is said, and leads to it.
// Guarantee: V49.
func TestWhatIsReadStays(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, stepping)
	id := s.submit(`{"text":"Look for it."}`)
	eventually(t, func() bool { return s.ended(id) }, func() string { return "the turn hasn't ended" })
	s.kill()
	s.many(id, "long", "3000")
	s.start("127.0.0.1:0")
	p.open(s.run("console", "--role", "owner"))
	p.shows("Today")
	p.open(s.url + "/sessions/" + id)
	p.expect("document.querySelectorAll('.rope > .item').length > 40")
	p.expect("(b => b.scrollHeight - b.clientHeight - b.scrollTop > 200 || (b.scrollTop -= 300, false))(document.querySelector('.scroll'))")
	p.expect("document.querySelector('.pill') === null")
	// what is in the middle of the screen, and where
	place := func() string {
		return p.js("(x => x.id + ' ' + Math.round(x.getBoundingClientRect().top))(read)").(string)
	}
	p.expect("(window.read = document.elementFromPoint(innerWidth / 2, innerHeight / 2).closest('.item')) !== null")
	before := place()
	s.many(id, "live", "500", "3s")
	p.expect("parseInt(document.querySelector('.pill')?.innerText) > 200")
	p.expect("document.querySelectorAll('.rope > .item').length <= 400")
	if after := place(); after != before {
		t.Errorf("%s is %s", before, after)
	}
	var story told
	s.do("/v1/sessions/"+id+"/story?last=50", "", &story)
	p.js("document.querySelector('.pill').click()")
	p.expect(fmt.Sprintf("document.querySelector('.rope > .item:last-child').id === %q", story.Items[len(story.Items)-1].String()))
	p.expect("!document.querySelector('.pill')")
	p.clean(s)
}

// TestHealthShowsWhatIsCounted: nothing is 0 and not unknown, a refusal is told by its code,
// and a line goes on while one looks.
// Guarantee: V46.
func TestHealthShowsWhatIsCounted(t *testing.T) {
	t.Parallel()
	p := browse(t)
	s := serve(t, asking)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	p.letters("gh")
	row := func(name string) string {
		return fmt.Sprintf("[...document.querySelectorAll('#page .row')].find(r => r.querySelector('.name').innerText === %q)", name)
	}
	p.expect(row("sessions_ready") + "?.querySelector('.figures').innerText === '0'")
	if status := s.as("belay_wrong", "/v1/caller"); status != http.StatusUnauthorized {
		t.Fatalf("a token that isn't known: %d", status)
	}
	p.expect("/unauthorized \\d/.test(" + row("requests_refused_total") + "?.innerText)")
	p.expect(row("requests_refused_total") + ".querySelector('polyline').getAttribute('points').split(' ').length > 1")
	p.expect(row("store_position") + "?.closest('section').innerText.includes('views_lag')")
	p.clean(s)
}
