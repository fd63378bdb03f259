package thread

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Guarantee: E20.
func TestWidthFollowsLatencyAndFailures(t *testing.T) {
	for _, c := range []struct {
		what               string
		base, scale, score int64
		want               int64
	}{
		{"nothing known", 5, maxScale, 0, 5},
		{"as slow as it may be", 5, 1000, 0, 5},
		{"twice as slow", 5, 500, 0, 3},
		{"programs, twice as slow", 2, 500, 0, 1},
		{"quick makes up for some failures", 5, maxScale, 300, 5},
		{"failures", 5, 1000, 400, 3},
		{"failures only", 5, 1000, 1000, 1},
		{"slow and failing", 5, 500, 1000, 1},
		{"never none", 2, 500, 1000, 1},
	} {
		if got := width(c.base, c.scale, c.score); got != c.want {
			t.Errorf("%s: width %d, want %d", c.what, got, c.want)
		}
	}
}

func TestPaceIsBoundedAndWhole(t *testing.T) {
	var s State
	for i := range 3 * maxPaced {
		s.paced(fmt.Sprint("tool", i), 1<<62, nil)
		s.paced(fmt.Sprint("tool", i), -1, &event.Problem{Class: "timeout"})
	}
	if len(s.Pace) != maxPaced || s.Pace[maxPaced-1] != (throughput{Tool: fmt.Sprint("tool", 3*maxPaced-1), Micros: (4*longest*1000 + shortest*1000) / 5, Score: loadCosts}) {
		t.Errorf("%d tools, the last %+v", len(s.Pace), s.Pace[len(s.Pace)-1])
	}
	s = State{}
	for range 20 {
		s.paced("x", 10, &event.Problem{Class: "transient"})
	}
	if s.Pace[0].Score != 1000 {
		t.Errorf("score %d after many failures", s.Pace[0].Score)
	}
	for _, class := range []string{"cancelled", "lost", "skipped"} {
		s.paced("x", 10, &event.Problem{Class: class})
	}
	if s.Pace[0].Score != 1000 {
		t.Error("what never ran to its end counts")
	}
	for range 50 {
		s.paced("x", 10, &event.Problem{Class: "not_found"})
	}
	if s.Pace[0].Score > 10 {
		t.Errorf("score %d although all went well lately", s.Pace[0].Score)
	}
}

// schedTools are tools of every kind of concurrency.
func schedTools() []belay.ToolSpec {
	return append(testTools(),
		belay.ToolSpec{Name: "fetch", Effect: belay.Pure, ReadOnly: true, Capabilities: []string{"network"}},
		belay.ToolSpec{Name: "grep", Effect: belay.Pure, ReadOnly: true, Access: belay.Read},
		belay.ToolSpec{Name: "lint", Effect: belay.Pure, ReadOnly: true, Access: belay.Read, Capabilities: []string{"process"}},
		belay.ToolSpec{Name: "reset", Effect: belay.Idempotent, Exclusive: true, Access: belay.Write})
}

// clash is what must not run together, written down apart from the scheduler.
func clash(a, b belay.ToolSpec, pa, pb string) bool {
	if a.Exclusive || b.Exclusive {
		return true
	}
	if a.Access == "" || b.Access == "" || a.Access == belay.Read && b.Access == belay.Read {
		return false
	}
	return a.PathArg == "" || b.PathArg == "" || pa == pb
}

// schedule plays one answer to its end with random durations, failures and
// crashes, and holds what runs against the rules.
type schedule struct {
	*rapid.T
	w       *world
	specs   map[string]belay.ToolSpec
	started map[belay.CallID]bool
}

// Guarantee: E20.
func TestScheduling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.rules.Tools = schedTools()
		w.do("rules allow=edit allow=exec allow=put allow=reset allow=fetch")
		w.do("open")
		w.do("submit t1")
		p := &schedule{T: rt, w: w, specs: map[string]belay.ToolSpec{}}
		var names []string
		for _, s := range w.rules.Tools {
			p.specs[s.Name] = s
			if s.Handled == "" {
				names = append(names, s.Name)
			}
		}
		for range rapid.IntRange(1, 3).Draw(rt, "steps") {
			if turn := w.d.s.Turn; turn == nil || turn.Step.Phase == stepAnswered {
				break // too many failures: the turn has ended, or a person is asked
			}
			p.started = map[belay.CallID]bool{}
			p.step(names)
		}
		if len(w.d.s.Pace) > len(names) {
			rt.Errorf("%d tools have a pace", len(w.d.s.Pace))
		}
	})
}

func (p *schedule) step(names []string) {
	var calls []event.ModelCall
	for i := range rapid.IntRange(1, 14).Draw(p.T, "calls") {
		name := rapid.SampledFrom(names).Draw(p.T, "tool")
		path := rapid.SampledFrom([]string{"a", "b", "./a"}).Draw(p.T, "path")
		args := json.RawMessage(fmt.Sprintf(`{"path":%q,"n":%d,"step":%d}`, path, i, p.w.d.s.Turn.Steps))
		calls = append(calls, event.ModelCall{Name: name, Args: args, ArgsHash: belay.DigestOf(args), Path: path})
	}
	p.w.answer(calls...)
	id := p.w.d.s.Turn.Step.ID
	for n := 0; ; n++ {
		turn := p.w.d.s.Turn
		if turn == nil || turn.Step.ID != id || turn.Step.settled() {
			break
		}
		if n > 40*len(calls) {
			p.Fatalf("calls are left after %d ends: %+v", n, turn.Step.Calls)
		}
		flying := p.holds()
		if len(flying) == 0 {
			p.wakes()
			continue
		}
		p.ends(rapid.SampledFrom(flying).Draw(p.T, "which"))
	}
	if len(p.started) != len(calls) {
		p.Errorf("%d of %d calls ran", len(p.started), len(calls))
	}
}

// holds checks what runs now and returns it.
func (p *schedule) holds() (flying []int) {
	calls := p.w.d.s.Turn.Step.Calls
	count := map[kind]int{}
	for i := range calls {
		if !calls[i].inFlight() {
			continue
		}
		a := p.specs[calls[i].Name]
		for _, j := range flying {
			if clash(a, p.specs[calls[j].Name], cleanPath(calls[i].Path), cleanPath(calls[j].Path)) {
				p.Fatalf("%s and %s run together", calls[j].Name, calls[i].Name)
			}
		}
		if !p.started[calls[i].ID] {
			p.inOrder(i)
		}
		p.started[calls[i].ID] = true
		flying = append(flying, i)
		if calls[i].Phase != CallOrphaned { // its process is gone: it takes no room until it is begun again
			count[kindOf(a)]++
		}
	}
	if count[kindOther] > 5 || count[kindNetwork] > 5 || count[kindProcess] > 2 {
		p.Fatalf("%v run together", count)
	}
	return flying
}

// inOrder: whatever a call clashes with and that was asked for before it is over.
func (p *schedule) inOrder(i int) {
	calls := p.w.d.s.Turn.Step.Calls
	for j := range i {
		if calls[j].Phase != CallOver && clash(p.specs[calls[i].Name], p.specs[calls[j].Name], cleanPath(calls[i].Path), cleanPath(calls[j].Path)) {
			p.Fatalf("%s (%d) began before %s (%d) was over", calls[i].Name, i, calls[j].Name, j)
		}
	}
}

// wakes lets the time come that something waits for.
func (p *schedule) wakes() {
	for _, ref := range p.w.d.Missing() { // a decider that was loaded knows no rules yet
		if err := p.w.d.Supply(ref, p.w.blobs[ref.Digest]); err != nil {
			p.Fatal(err)
		}
	}
	rd := p.w.d.Next(p.w.now)
	if rd.Wake.IsZero() || !slices.ContainsFunc(rd.Effects, func(e core.Effect) bool { _, ok := e.(core.Timer); return ok }) {
		p.Fatalf("nothing runs and nothing is waited for: %+v", p.w.d.s.Turn.Step.Calls)
	}
	p.w.do("advance " + rd.Wake.Sub(p.w.now).String())
}

func (p *schedule) ends(i int) {
	ms := rapid.SampledFrom([]int{0, 20, 1500, 9000, 60_000}).Draw(p.T, "ms")
	p.w.now = p.w.now.Add(time.Duration(ms) * time.Microsecond)
	text := fmt.Sprint(p.w.d.s.Seq)
	switch rapid.IntRange(0, 9).Draw(p.T, "end") {
	case 0:
		p.w.do(fmt.Sprintf("error %d timeout TIMEOUT ms=%d", i+1, ms))
	case 1:
		p.w.do(fmt.Sprintf("retry %d ms=%d", i+1, ms))
	case 2:
		p.w.do("takeover")
	default:
		p.w.do(fmt.Sprintf("result %d %s ms=%d", i+1, text, ms))
	}
}
