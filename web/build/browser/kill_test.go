package browser

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// working is a model that has much to do, and asks now and then.
func working(parts int) string {
	one := `
  - text: round ${n}
    repeat: 3
    chunks: 4
    chunkDelay: 10ms
    calls:
      - {tool: grep, args: {pattern: "no${n}x"}}
  - calls:
      - {tool: exec, args: {command: "git push origin main"}}`
	return "steps:" + strings.Repeat(one, parts) + "\n  - calls:\n      - {tool: complete_task, args: {summary: All rounds.}}\n"
}

// TestKillsAndCutsLoseAndRepeatNothing: whatever moment the server dies at or the network is
// cut, the page shows each item of the story once and in its order, and what a button did
// was done once. In CI these are a tenth of the kills and cuts, by the seed that is printed.
// Guarantee: V49.
func TestKillsAndCutsLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	troubles := 20
	if os.Getenv("BELAY_CONSOLE") == "full" {
		troubles = 200
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d kills and cuts by the seed %d", troubles, seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	p := browse(t)
	s := serve(t, working(troubles))
	w := s.wire()
	p.open(w.url + "/" + s.run("console", "--role", "owner")[len(s.url)+1:])
	p.shows("nothing ran today")
	session := s.submit(`{"text":"Work."}`)
	p.open(w.url + "/sessions/" + session)
	p.shows("round 1")
	notes := 0
	for n := range troubles {
		p.js("(x => x && x.click())([...document.querySelectorAll('.question .button')].find(b => b.innerText.startsWith('Deny…') && !document.querySelector('.question textarea')))")
		switch chance.IntN(3) { // what a person does meanwhile
		case 0:
			p.js("(x => x && x.click())([...document.querySelectorAll('.question .button')].findLast(b => /^(Allow once|Deny it)/.test(b.innerText)))")
		case 1:
			if p.js("document.querySelector('.composer textarea').value === '' && (document.querySelector('.composer textarea').focus(), true)") == true {
				notes++
				p.js(fmt.Sprintf("document.execCommand('insertText', false, 'note %d.')", notes))
			}
			p.js("[...document.querySelectorAll('.composer .button')].find(b => b.innerText.trim() === 'Send').click()")
		}
		time.Sleep(time.Duration(chance.IntN(150)) * time.Millisecond) // the moment is what is tried
		away := time.Duration(chance.IntN(250)) * time.Millisecond
		switch kind := chance.IntN(4); kind {
		case 0, 1:
			if kind == 1 {
				w.cut()
			}
			s.kill()
			s.start(strings.TrimPrefix(s.url, "http://"))
		case 2:
			w.cut()
			time.Sleep(away)
		case 3:
			w.stall(away)
		}
		w.mend()
		p.expect("!document.body.innerText.includes('Stale since')")
		newest := s.told(session)
		p.expect(fmt.Sprintf("document.getElementById(%q)", newest[len(newest)-1]))
		shown := p.rope()
		log := s.told(session)
		from := slices.Index(log, shown[0])
		if from < 0 || len(log)-from < len(shown) || !slices.Equal(log[from:from+len(shown)], shown) {
			t.Fatalf("after %d troubles the page shows\n%s\nand the log has\n%s", n+1, strings.Join(shown, "\n"), strings.Join(log[max(0, from):], "\n"))
		}
	}
	facts := map[string]int{}
	for line := range strings.Lines(s.run("events", session, "--json")) {
		var e struct {
			Type, ActionID string
			Payload        struct{ Text struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch e.Type {
		case "action.resolved":
			facts[e.ActionID]++
		case "turn.submitted", "turn.steered":
			facts[e.Payload.Text.Text]++
		}
	}
	said, answered := 0, 0
	for what, n := range facts {
		if n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
		if strings.HasPrefix(what, "note ") {
			said++
		} else if what != "Work." {
			answered++
		}
	}
	t.Logf("%d messages and %d answers were given", said, answered)
	if draft := p.js("document.querySelector('.composer textarea').value"); said < notes-1 || said < notes && draft == "" {
		t.Errorf("%d of %d messages came, and %q is in the text field", said, notes, draft)
	}
	p.clean(s)
}

// rope are the newest items that the page shows, at most 100.
func (p *page) rope() []string {
	p.t.Helper()
	ids, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string]("[...document.querySelectorAll('.rope > .item[id]')].map(x => x.id).filter(x => !x.startsWith('question/')).slice(-100)"))
	if err != nil || len(ids) == 0 {
		p.t.Fatalf("%v, %v", ids, err)
	}
	return ids
}

// told are the newest items of a story that a page shows in any case, by the log.
func (s *server) told(session string) (ids []string) {
	s.t.Helper()
	var page told
	s.do("/v1/sessions/"+session+"/story?last=1000", "", &page)
	for _, i := range page.Items {
		if i.Kind != "question" { // an open one has its answers instead, and may be answered meanwhile
			ids = append(ids, i.String())
		}
	}
	return ids
}
