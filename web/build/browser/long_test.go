package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// stepping is a turn of several steps.
const stepping = `
steps:
  - text: Round ${n} looks for it.
    repeat: 5
    calls:
      - {tool: grep, args: {pattern: "no${n}x"}}
  - text: All done.
    calls:
      - {tool: complete_task, args: {summary: All rounds.}}
`

// TestALongSessionCostsThePageNoMore: the first items are there within a second, each item
// is reached by its link, and the memory of the page stays what it is, whatever comes and
// however far one scrolls. In CI the session is shorter; the sizes are printed.
// Guarantee: V50.
func TestALongSessionCostsThePageNoMore(t *testing.T) {
	t.Parallel()
	facts, opened, linked, scrolled, lasts := 20_000, 4, 3, 2_000, 30*time.Second
	full := os.Getenv("BELAY_CONSOLE") == "full"
	if full {
		facts, opened, linked, scrolled, lasts = 1_000_000, 20, 20, 100_000, 5*time.Minute
	}
	p := browse(t)
	s := serve(t, stepping)
	id := s.submit(`{"text":"Look for it."}`)
	eventually(t, func() bool { return s.ended(id) }, func() string { return "the turn hasn't ended" })
	s.kill()
	has := s.many(id, "long", strconv.Itoa(facts))
	s.start("127.0.0.1:0")
	p.open(s.run("console", "--role", "owner"))
	p.expect("document.querySelector('#page h1')")

	var took []time.Duration
	for range opened {
		p.open("about:blank")
		p.open(s.url + "/sessions/" + id)
		took = append(took, time.Duration(p.when("document.querySelectorAll('.rope .item').length > 20", "performance.now()").(float64))*time.Millisecond)
	}
	slices.Sort(took)
	t.Logf("%d facts: the first items after %s to %s", has, took[0], took[len(took)-1])
	if p95 := took[(len(took)*95+99)/100-1]; full && p95 > time.Second {
		t.Errorf("p95 is %s", p95)
	}

	for range linked { // any item is reached by its link
		var page told
		s.do(fmt.Sprintf("/v1/sessions/%s/story?limit=60&behind=%d", id, rand.N(facts-200)), "", &page)
		i := page.Items[slices.IndexFunc(page.Items, func(i item) bool { return !i.Begun && i.Kind == "tool_call" })]
		p.open(fmt.Sprintf("%s/sessions/%s?item=%s&at=%d", s.url, id, i, i.Position))
		p.expect(fmt.Sprintf("(x => x && (r => r.height > 0 && r.top >= 0 && r.bottom <= innerHeight)(x.getBoundingClientRect()))(document.getElementById(%q))", i.String()))
		p.expect("document.querySelector('.inspector .shown dl')")
	}

	p.open(s.url + "/sessions/" + id)
	p.expect("document.querySelectorAll('.rope .item').length > 20")
	before := p.heap()
	var heaps []float64 // while facts come
	came := make(chan int, 1)
	go func() { came <- s.many(id, "live", "200", lasts.String()) }()
	n := 0
	for tick := time.NewTicker(lasts / 10); n == 0; {
		select {
		case n = <-came:
		case <-tick.C:
			heaps = append(heaps, p.heap())
		}
	}
	var story told
	s.do("/v1/sessions/"+id+"/story?last=50", "", &story)
	last := story.Items[len(story.Items)-1]
	p.expect(fmt.Sprintf("document.querySelector('.rope > .item:last-child').id === %q", last.String()))
	p.expect("document.querySelectorAll('.rope > .item').length <= 400")
	heaps = append(heaps, p.heap())
	t.Logf("%d facts in %s: the heap went from %.1f to %.1f MB", n, lasts, before, heaps)

	seen := map[string]bool{}
	for stuck := 0; len(seen) < scrolled; {
		ids, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string]("(b => (b.scrollTop = 0, [...document.querySelectorAll('.rope > .item[id]')].map(x => x.id)))(document.querySelector('.scroll'))"))
		if err != nil {
			t.Fatal(err)
		}
		was := len(seen)
		for _, id := range ids {
			seen[id] = true
		}
		if len(ids) > 400 {
			t.Fatalf("%d rows", len(ids))
		}
		if stuck++; len(seen) > was {
			stuck = 0
		}
		if stuck > 400 {
			t.Fatalf("it stays at %d items", len(seen))
		}
		time.Sleep(20 * time.Millisecond) // a person who scrolls
	}
	far := p.heap()
	t.Logf("after %d items: %.1f MB", len(seen), far)
	if most := max(slices.Max(heaps), far); most > 60 {
		t.Errorf("the heap has %.1f MB", most)
	}
	if half := len(heaps) / 2; slices.Min(heaps[half:]) > slices.Max(heaps[:half])+10 {
		t.Errorf("the heap isn't flat: %.1f MB", heaps)
	}
	p.clean(s)
}

// told is a window of a story.
type told struct{ Items []item }

type item struct {
	Kind, ItemID, State string
	Position            int64
	Begun               bool `json:"begunBefore"`
}

func (i item) String() string { return i.Kind + "/" + i.ItemID }

// ended reports whether the session's turn has ended.
func (s *server) ended(id string) bool {
	var x struct {
		Session struct {
			Threads []struct{ Turn struct{ Status string } }
		}
	}
	s.do("/v1/sessions/"+id, "", &x)
	return len(x.Session.Threads) > 0 && x.Session.Threads[0].Turn.Status == "ended"
}

// heap is what the page's scripts have in memory, in MB, without what is free to go.
func (p *page) heap() float64 {
	p.t.Helper()
	used, err := chromedp.Run(p.ctx, func(ctx context.Context, t *chromedp.Target) (u runtime.GetHeapUsageResult, err error) {
		if _, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			return u, err
		}
		return cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return used.UsedSize / (1 << 20)
}
