package browser

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// working is a model that has much to do.
const working = `
steps:
  - text: round ${n}
    repeat: 60
    chunks: 4
    chunkDelay: 20ms
    calls:
      - {tool: grep, args: {pattern: "no${n}x"}}
  - calls:
      - {tool: complete_task, args: {summary: All rounds.}}
`

// TestKilledServersLoseAndRepeatNothing: whatever moment the server dies at, in the end
// the page shows each item of the story once, in its order.
// Guarantee: V49.
func TestKilledServersLoseAndRepeatNothing(t *testing.T) {
	kills := 4
	if os.Getenv("BELAY_CONSOLE") == "full" {
		kills = 40
	}
	p := browse(t)
	s := serve(t, working)
	p.open(s.run("console", "--role", "owner"))
	p.shows("nothing ran today")
	session := s.submit(`{"text":"Work."}`)
	p.open(s.url + "/sessions/" + session)
	p.shows("round 1")
	p.js("document.querySelector('.composer textarea').focus()")
	p.js("document.execCommand('insertText', false, 'a draft')")
	for range kills {
		pause := time.Duration(rand.N(400)) * time.Millisecond
		time.Sleep(pause) // the moment is what is tried
		s.kill()
		s.start(strings.TrimPrefix(s.url, "http://"))
		p.expect("!document.body.innerText.includes('Stale since')")
	}
	p.expect("document.querySelector('.session header .status')?.innerText === 'completed'")
	p.expect("document.querySelector('.composer textarea').value === 'a draft'")
	var story struct {
		Items []struct{ Kind, ItemID string }
	}
	s.do("/v1/sessions/"+session+"/story?last=1000", "", &story)
	var want []string
	for _, i := range story.Items {
		want = append(want, i.Kind+"/"+i.ItemID)
	}
	list, err := json.Marshal(want[max(0, len(want)-100):])
	if err != nil || len(want) < 40 {
		t.Fatalf("%d items, %v", len(want), err)
	}
	shown := "JSON.stringify([...document.querySelectorAll('.rope .item[id]')].map(x => x.id).slice(-100))"
	p.expect(shown + " === " + string(mustJSON(t, string(list))))
	n, err := chromedp.Run(p.ctx, chromedp.Evaluate[int]("(ids => ids.length - new Set(ids).size)([...document.querySelectorAll('.rope .item[id]')].map(x => x.id))"))
	if err != nil || n != 0 {
		t.Errorf("%d items are shown twice, %v", n, err)
	}
	p.clean(s)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
