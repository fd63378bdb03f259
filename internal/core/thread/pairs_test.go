package thread

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/testkit/sample"
)

// pairs are about how many a usual run plays, by the seed that BELAY_PAIRS is, or 1; if that is
// full it plays all.
const pairs = 500

// inserted are what comes between two lines of a scenario.
var inserted = map[string]func(w *world){
	"a share of a budget": func(w *world) {
		w.handle(belay.GiveGrant{Budget: &belay.BudgetGrant{ID: "share", Limit: belay.Amounts{Tokens: 60_000}, Amount: belay.Amounts{Tokens: 1_000}}})
	},
	"a takeover": func(w *world) { w.handle(belay.TakeOver{Epoch: 1000}) },
	"a pause":    func(w *world) { w.handle(belay.PauseThread{Op: event.Paused}) },
	"a compaction": func(w *world) {
		w.handle(belay.CompactThread{Rules: w.keepRules()})
	},
	"a question": func(w *world) {
		if _, asked := wanted[core.CallModel](w); asked {
			w.model(`ask_user{"question":"which?"}`)
		}
	},
	"a give-up": func(w *world) {
		gone := event.Problem{Class: "lost", Code: "GIVEN_UP", Message: "it gave no sign of life"}
		if _, is := wanted[core.CallModel](w); is {
			w.fail("transient SILENT")
		} else if e, is := wanted[core.RunTool](w); is {
			w.tells(e.IDs, event.ToolFailed{Name: e.Name, Attempt: e.Attempt, Final: true, Problem: gone})
		} else if _, is := wanted[core.Compact](w); is {
			w.compacted("uncompacted", []string{"transient"})
		} else if e, is := wanted[core.CheckCall](w); is {
			w.tells(e.IDs, event.HookFailed{Hook: hookOf(e), Point: "permission_request", Problem: gone, Charge: event.ChargeAll})
		}
	},
	"agents that end": func(w *world) {
		for i := range 2 * maxEndedChildren {
			w.add(agentsOf(w.d.s.lastIDs(), int(w.d.s.Seq)+i), nil)
		}
	},
}

// TestPairs inserts each of these before each line of each scenario, plays the lines behind
// it as far as they still mean something, and then answers whatever the thread wants. It
// promises that from there, wherever that is,
//
//   - the thread comes to rest: no decision follows the other without end, no effect is
//     wanted for ever, and nothing waits that nobody wakes;
//   - each turn ends once, each call of an answer ends once, and so does each compaction;
//   - each reservation is charged once, and what was given of a budget came back;
//   - a decision that asks for budget decides nothing that the answer could change;
//   - the state is bounded.
//
// It says nothing of sessions and quotas: their slices are the matter of their own tests.
//
// Guarantee: O5, O12.
func TestPairs(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	all, kinds := 0, slices.Sorted(maps.Keys(inserted))
	for _, file := range files {
		all += len(commandsOf(t, file)) * len(kinds)
	}
	few := os.Getenv("BELAY_PAIRS") != "full"
	seed, _ := strconv.ParseUint(cmp.Or(os.Getenv("BELAY_PAIRS"), "1"), 10, 64)
	rng := rand.New(rand.NewPCG(seed, 0))
	played := 0
	for _, file := range files {
		lines, w := commandsOf(t, file), newWorld(t)
		for at := range lines {
			w.do(lines[at])
			for _, kind := range kinds {
				if !w.d.s.Open || few && rng.IntN(all) >= sample.Of(pairs) {
					continue
				}
				played++
				p := &pair{world: w.copied(), what: fmt.Sprintf("%s behind %q, line %d of %s", kind, lines[at], at+1, filepath.Base(file))}
				p.seen = p.decides
				inserted[kind](p.world)
				p.settle()
				p.rest(lines[at+1:])
				p.drain()
				p.laws()
			}
		}
	}
	if t.Logf("%d of %d pairs", played, all); played == 0 {
		t.Error("no pair was played")
	}
}

func commandsOf(t *testing.T, file string) (lines []string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(bytes.NewReader(raw)); sc.Scan(); {
		if line, is := strings.CutPrefix(sc.Text(), "> "); is {
			lines = append(lines, line)
		}
	}
	return lines
}

// copied is a world like w that goes its own way.
func (w *world) copied() *world {
	c := newWorld(w.t)
	saved, _ := w.d.Save()
	if err := c.d.Load(saved); err != nil {
		w.t.Fatal(err)
	}
	c.now, c.rules, c.forgets, c.checks, c.quiet = w.now, w.rules, w.forgets, w.checks, true
	c.blobs, c.names, c.counts, c.log = maps.Clone(w.blobs), maps.Clone(w.names), maps.Clone(w.counts), slices.Clone(w.log)
	return c
}

func (w *world) tells(ids belay.IDs, p event.Payload) { w.add([]core.Fact{{IDs: ids, Data: p}}, nil) }

// wanted is the first effect of its kind that the thread wants.
func wanted[E core.Effect](w *world) (e E, is bool) {
	w.supply()
	for _, eff := range w.d.Next(w.now).Effects {
		if e, is = eff.(E); is {
			return e, true
		}
	}
	return e, false
}

func hookOf(e core.CheckCall) string {
	if e.Request != nil {
		return e.Checker
	}
	return checkerPrefix + e.Checker
}

// pair is a scenario with something inserted.
type pair struct {
	*world
	what string
}

// rest plays the lines of people, and those of models and tools that are waited for.
func (p *pair) rest(lines []string) {
	for _, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		_, asked := wanted[core.CallModel](p.world)
		switch verb {
		case "submit", "interrupt", "remove", "resume", "advance", "rules", "budget", "takeover", "compact", "pin", "unpin", "use", "share", "widest", "queue":
		case "model", "fail":
			if !asked {
				continue
			}
		case "result", "error", "retry":
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			if calls := p.d.s.Turn.calls(); n > len(calls) || calls[n-1].Phase != CallRunning {
				continue
			}
		default:
			continue
		}
		p.do(line)
	}
}

// drain answers what the thread wants until it wants nothing more.
func (p *pair) drain() {
	moved, before := 0, int64(0)
	for round := range 400 {
		s := &p.d.s
		if p.settle(); s.Seq != before {
			moved, before = round, s.Seq
		}
		p.supply()
		rd := p.d.Next(p.now)
		if p.cancels(rd) || slices.ContainsFunc(rd.Effects, p.serve) || p.answers(round) {
			continue
		}
		switch g := s.Purse.asked(); {
		case g != nil && !g.Refused && round%3 < 2:
			p.handle(belay.GiveGrant{Budget: &belay.BudgetGrant{ID: g.ID, Limit: s.Purse.Limit, Amount: g.Least}}) // in parts
		case g != nil && !g.Refused:
			p.answerBudget([]string{"refuse"})
		case s.Paused() != nil:
			p.handle(belay.PauseThread{Op: event.Resumed})
		case !rd.Wake.IsZero():
			p.now = rd.Wake
		case s.Turn == nil && len(s.Queue) == 0 && s.Prev != nil && s.Prev.Turn == "last":
			return
		case s.Turn == nil && len(s.Queue) == 0: // the thread takes another turn, which is told what ended
			p.do("submit last")
		case round%2 == 0 && len(s.Turn.calls()) > 0:
			for _, c := range s.Turn.calls() {
				give := belay.GiveGrant{Call: c.ID}
				if c.Use != nil {
					give = belay.GiveGrant{Use: &belay.GrantUse{Grant: c.Use.Grant, Call: c.ID}}
				}
				p.handle(give)
			}
		case round-moved > 8:
			p.t.Errorf("%s: nothing wakes the turn: %+v", p.what, s.Turn)
			return
		case g == nil && s.Turn != nil: // budget comes from elsewhere
			p.handle(belay.GiveGrant{Budget: &belay.BudgetGrant{Limit: s.Purse.Limit}})
		}
	}
	p.t.Errorf("%s: it doesn't come to rest: %+v", p.what, p.d.Next(p.now))
}

// cancels ends what is under way and not wanted any more, as a driver does.
func (p *pair) cancels(rd core.Ready) (some bool) {
	_, asks := wanted[core.CallModel](p.world)
	if t := p.d.s.Turn; t != nil && t.Step != nil && t.Step.Phase == stepRequested && !asks {
		p.fail("cancelled")
		return true
	}
	for _, c := range p.d.s.Turn.calls() {
		runs := slices.ContainsFunc(rd.Effects, func(e core.Effect) bool { r, is := e.(core.RunTool); return is && r.IDs.Call == c.ID })
		if c.Phase == CallRunning && !runs {
			p.tells(p.d.s.callIDs(c), event.ToolFailed{Name: c.Name, Attempt: c.Attempt, Final: true, Problem: event.Problem{Class: "cancelled", Code: "CANCELLED"}})
			some = true
		}
	}
	return some
}

// answers answers a question as a person, in turn with yes and no.
func (p *pair) answers(round int) bool {
	asks := []*Ask{}
	if t := p.d.s.Turn; t != nil {
		asks = append(asks, t.Ask)
	}
	for _, c := range p.d.s.Turn.calls() {
		asks = append(asks, c.Ask)
	}
	i := slices.IndexFunc(asks, func(a *Ask) bool { return a != nil && a.Open })
	if i < 0 || round%5 == 4 { // nobody answers in time
		return false
	}
	p.handle(belay.RespondAction{Action: asks[i].Action, Decision: decisions(asks[i].Kind)[round%2], Message: "so"})
	return true
}

// serve performs an effect, and reports whether it could.
func (p *pair) serve(eff core.Effect) bool {
	switch e := eff.(type) {
	case core.CallModel:
		said := `"done"`
		if p.d.Rules().completionTool() != "" {
			said = `complete_task{"summary":"done"}`
		}
		p.model(said)
	case core.RunTool:
		p.tells(e.IDs, event.ToolResult{Name: e.Name, Attempt: e.Attempt, Output: belay.Content{Text: "ok"}, Digest: "sha256:ok"})
	case core.CheckCall:
		p.tells(e.IDs, event.HookFailed{Hook: hookOf(e), Point: "permission_request", Problem: event.Problem{Class: "internal"}})
	case core.Compact:
		if e.Tokens < 1_000 {
			p.compacted("uncompacted", []string{"not_smaller"})
		} else {
			p.compacted("compacted", []string{fmt.Sprint(e.Tokens / 3)})
		}
	case core.LookAround:
		p.look("")
	case core.TakeSnapshot:
		p.tells(e.IDs, event.ArtifactChanged{Kind: "snapshot", Op: "taken", Name: e.When, Scope: e.How, Version: "c0ffee"})
	case core.GoBack:
		p.undone("")
	case core.RestoreFiles:
		p.tells(e.IDs, e.Event)
	case core.SendInput:
		p.tells(e.IDs, event.ProcessInput{Number: e.Number, Bytes: 1})
	case core.Verify:
		status := event.CheckPassed
		if p.d.s.Turn.Step == nil { // how it was before
			status = event.CheckNoted
		}
		p.tells(e.IDs, event.TaskProgress{Phase: event.PhaseVerifying, Check: &event.CheckResult{ID: e.Check.ID, Kind: e.Check.Kind, Status: status}})
	default: // time, and what goes on beside the turn
		return false
	}
	return true
}

// decides holds a decision against what it asked for before.
func (p *pair) decides(rd core.Ready) {
	asked := slices.IndexFunc(rd.Decided, isAsk)
	for i, f := range rd.Decided {
		if c, is := f.Data.(event.ContextCompactionStarted); is && asked >= 0 && asked < i {
			p.t.Errorf("%s: it begins to %s and has just asked for budget", p.what, c.Strategy)
		}
	}
}

// laws holds the facts of a thread at rest against each other.
func (p *pair) laws() {
	ends := map[string]int{}
	over := func(what string) {
		if _, known := ends[what]; known { // else it is none of an answer: a check's
			ends[what]--
		}
	}
	for _, e := range p.log {
		switch d := e.Data.(type) {
		case event.TurnSubmitted:
			ends["turn "+string(e.IDs.Turn)]++
		case event.TurnCompleted, event.TurnFailed:
			over("turn " + string(e.IDs.Turn))
		case event.QueueChanged:
			if d.Op == event.QueueJoined { // it ends with the one that took its text
				delete(ends, "turn "+string(d.Turn))
			}
		case event.ModelCompleted:
			for _, c := range d.Calls {
				ends["call "+string(c.ID)]++
			}
		case event.ToolResult:
			over("call " + string(e.IDs.Call))
		case event.ToolFailed:
			if d.Final {
				over("call " + string(e.IDs.Call))
			}
		case event.ContextCompactionStarted:
			ends[fmt.Sprint("compaction ", e.Seq)]++
		case event.ContextCompactionCompleted:
			over(fmt.Sprint("compaction ", d.Started))
		case event.HistoryRollbackCompleted: // what is taken back has no end
			maps.DeleteFunc(ends, func(what string, left int) bool { return left > 0 && strings.HasPrefix(what, "compaction") })
		case event.ContextCompactionFailed:
			over(fmt.Sprint("compaction ", d.Started))
		}
	}
	for what, left := range ends {
		if left != 0 {
			p.t.Errorf("%s: %s began %+d times more than it ended", p.what, what, left)
		}
	}
	coretest.Books(p.t, p.what, p.log)
	p.add(agentsOf(p.d.s.lastIDs(), -1), nil)
	told := slices.DeleteFunc(slices.Clone(p.d.s.Children), func(c *child) bool { return c.News }) // no request, no news
	if saved, _ := p.d.Save(); len(saved) > 1<<20 || len(told) > maxEndedChildren+2 {
		p.t.Errorf("%s: the state has %d bytes and knows %d agents", p.what, len(saved), len(told))
	}
}
