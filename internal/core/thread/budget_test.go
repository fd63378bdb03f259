package thread

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/model/price"
)

// spenders are a session with a budget, and threads of it whose commands to one
// another arrive in any order that keeps each stream's own.
type spenders struct {
	t      *rapid.T
	now    time.Time
	d      map[belay.StreamID]core.Decider
	seq    map[belay.StreamID]int64
	mail   map[belay.StreamID][]belay.Command
	rules  belay.Ref
	raw    []byte
	turns  int
	open   map[string]int64 // reservations by stream and request, in millionths
	closed map[string]int   // times that each was charged
	spent  int64
	calls  int64 // that began
	first  int64 // what was spent when the first turn ended by the budget

	answers int   // of each turn, before it ends by itself
	share   int64 // of what an answer may take, one in so many that it takes
}

// twoPrices is a model whose output costs twice its input.
var twoPrices = core.Candidate{Prices: &price.List{Rates: price.Rates{Input: 1e6, Output: 2e6}}}

func newSpenders(t *rapid.T, limit belay.Amounts, to core.Candidate) *spenders {
	to.Provider, to.Model, to.Context = "a", "x", 100_000
	rules := Rules{Workspace: "/ws", Tokens: 500, Boundary: Boundary{Level: "L0"}, Tools: testTools(),
		Models:   Models{Routes: []core.Candidate{to}},
		Settings: belay.Settings{Provider: "a", Model: "x", Mode: belay.ModeAcceptEdits, Approvals: belay.ApprovalsDeny, Completion: belay.CompletionConversational, Limits: belay.DefaultLimits}}
	raw, _ := json.Marshal(rules)
	s := &spenders{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), d: map[belay.StreamID]core.Decider{}, seq: map[belay.StreamID]int64{}, mail: map[belay.StreamID][]belay.Command{},
		rules: belay.Ref{Digest: belay.DigestOf(raw), Size: int64(len(raw))}, raw: raw, open: map[string]int64{}, closed: map[string]int{}}
	s.mail[togetherStream] = []belay.Command{belay.CreateSession{Workspace: "/ws", Settings: belay.Settings{Budget: limit}}}
	s.deliver(togetherStream)
	return s
}

func (s *spenders) decider(id belay.StreamID) core.Decider {
	if s.d[id] == nil {
		switch id.Kind() {
		case belay.KindSession:
			s.d[id] = session.New(id)
		case belay.KindTask:
			s.d[id] = task.New(id)
		default:
			s.d[id] = New(id)
		}
	}
	return s.d[id]
}

// add folds facts, keeps the books of the test, and takes what follows.
func (s *spenders) add(id belay.StreamID, facts []core.Fact, sends []core.Send) {
	d := s.decider(id)
	for {
		for _, f := range facts {
			s.seq[id]++
			d.Apply(event.Envelope{Stream: id, Seq: s.seq[id], Time: s.now, IDs: f.IDs, Data: f.Data})
			switch p := f.Data.(type) {
			case event.CostEstimated:
				s.open[string(id)+p.For] = p.Amount
			case event.CostRecorded:
				key := string(id) + p.For
				if s.closed[key]++; s.closed[key] > 1 || p.Amount > s.open[key] {
					s.t.Fatalf("%s: charged %d of %d, %d times", key, p.Amount, s.open[key], s.closed[key])
				}
				s.spent += p.Amount
			case event.TurnFailed:
				if p.Outcome == belay.OverBudget && s.first == 0 {
					s.first = s.spent
				}
			case event.ToolStarted:
				if p.Attempt == 1 {
					s.calls++
				}
			case event.ToolFailed:
				if asked := d.(*Decider).s.Purse.asked(); p.Problem.Code == lows[belay.BudgetCalls].code && (asked == nil || !asked.Refused) {
					s.t.Fatalf("a call is refused that the session wasn't asked for: %+v", asked)
				}
			}
		}
		for _, x := range sends {
			s.mail[x.To] = append(s.mail[x.To], x.Command)
		}
		for refs := d.Missing(); len(refs) > 0; refs = d.Missing() {
			_ = d.Supply(refs[0], s.raw)
		}
		rd := d.Next(s.now)
		if facts, sends = rd.Decided, rd.Sends; len(facts) == 0 {
			return
		}
	}
}

// deliver brings a stream its next command.
func (s *spenders) deliver(id belay.StreamID) {
	c := s.mail[id][0]
	s.mail[id] = s.mail[id][1:]
	facts, sends, err := s.decider(id).Handle(belay.Order{Principal: "user:ann", Session: "sess_1", Stream: id, Command: c}, s.now)
	if err != nil {
		s.t.Fatalf("%s: %v", belay.CommandName(c), err)
	}
	s.add(id, facts, sends)
}

// waiting are the streams that have mail.
func (s *spenders) waiting() (ids []belay.StreamID) {
	for id, mail := range s.mail {
		if len(mail) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// asking are the threads whose request is out, whose calls run, or whose conversation is
// shortened.
func (s *spenders) asking() (ids []belay.StreamID) {
	for id, d := range s.d {
		if d, ok := d.(*Decider); ok && (requested(d) || running(d) != nil || d.s.Compacting.runs()) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func requested(d *Decider) bool {
	return d.s.Turn != nil && d.s.Turn.Step != nil && d.s.Turn.Step.Phase == stepRequested
}

func running(d *Decider) *Call {
	if i := slices.IndexFunc(d.s.Turn.calls(), func(c *Call) bool { return c.Phase == CallRunning }); i >= 0 {
		return d.s.Turn.Step.Calls[i]
	}
	return nil
}

// shortened ends a compaction in one of the ways that there are.
func (s *spenders) shortened(id belay.StreamID, how int) {
	c := s.d[id].(*Decider).s.Compacting
	used := belay.Usage{Input: c.Tokens, Output: 100, Reported: true}
	failed := event.ContextCompactionFailed{Trigger: c.Trigger, Strategy: c.Strategy, Started: c.Started, Problem: event.Problem{Class: "transient", Code: "EMPTY", Message: "no"}}
	switch how {
	case 0, 1:
		s.add(id, []core.Fact{{IDs: c.IDs, Data: event.ContextCompactionCompleted{Trigger: c.Trigger, Started: c.Started, TokensAfter: c.Tokens / 2, Usage: used, Charge: event.ChargeAnswer}}}, nil)
	case 2:
		s.add(id, []core.Fact{{IDs: c.IDs, Data: failed}}, nil)
	default:
		failed.Charge = event.ChargeAll
		s.add(id, []core.Fact{{IDs: c.IDs, Data: failed}}, nil)
	}
}

func (s *spenders) submit(n int) {
	s.turns++
	s.mail[togetherStream] = append(s.mail[togetherStream], belay.SubmitWork{Thread: belay.ThreadID(fmt.Sprint("thr_", n)), Task: belay.TaskID(fmt.Sprint("task_", s.turns)), Turn: belay.TurnID(fmt.Sprint("turn_", s.turns)),
		Text: belay.Content{Text: "x", Tokens: 10}, Rules: s.rules})
}

// ends ends a thread's request, or its compaction, in one of the ways that there are;
// the last is that its driver died.
func (s *spenders) ends(id belay.StreamID, how int) {
	st := s.d[id].(*Decider)
	call := running(st)
	if how < 4 && st.s.Compacting.runs() && (s.seq[id]%2 == 0 || !requested(st) && call == nil) {
		s.shortened(id, how)
		return
	}
	if how == 4 {
		facts, sends, _ := st.Handle(belay.Order{Session: "sess_1", Stream: id, Command: belay.TakeOver{Epoch: 2}}, s.now)
		s.add(id, facts, sends)
		return
	}
	if call != nil {
		ids := st.s.callIDs(call)
		if how == 2 {
			s.add(id, []core.Fact{{IDs: ids, Data: event.ToolFailed{Name: call.Name, Attempt: call.Attempt, Problem: event.Problem{Class: "internal", Code: "BROKE", Message: "no"}, Final: true}}}, nil)
		} else {
			s.add(id, []core.Fact{{IDs: ids, Data: event.ToolResult{Name: call.Name, Attempt: call.Attempt, Digest: belay.Digest(fmt.Sprint(s.seq[id]))}}}, nil)
		}
		return
	}
	step := st.s.Turn.Step
	most := step.MaxOutput
	switch how {
	case 0: // an answer that ends the turn
		s.add(id, []core.Fact{st.s.fact(event.ModelCompleted{Attempt: step.Attempt, Text: belay.Content{Text: "done"}, Usage: belay.Usage{Input: step.Tokens, Output: most, Reported: true}})}, nil)
	case 1: // a short one with calls, of which one is of no tool: another step follows
		var calls []event.ModelCall
		for i, name := range []string{"read", "edit", "none", "exec", "read", "edit"}[:1+s.seq[id]%6] {
			args := json.RawMessage(fmt.Sprintf(`{"path":"%d"}`, s.seq[id]+int64(i)))
			calls = append(calls, event.ModelCall{ID: belay.CallID(fmt.Sprintf("call_%s_%d_%d", id[len(id)-1:], s.seq[id], i)), Name: name, Args: args, ArgsHash: belay.DigestOf(args), Path: fmt.Sprint(i)})
		}
		s.add(id, []core.Fact{st.s.fact(event.ModelCompleted{Attempt: step.Attempt, Calls: calls, Usage: belay.Usage{Input: step.Tokens, Output: most / 2, Reported: true}})}, nil)
	case 2: // nothing came
		s.add(id, []core.Fact{st.s.fact(event.ModelFailed{Attempt: step.Attempt, Problem: event.Problem{Class: "auth", Code: "AUTH", Message: "no"}})}, nil)
	case 3: // it hung
		s.add(id, []core.Fact{st.s.fact(event.ModelFailed{Attempt: step.Attempt, Charge: event.ChargeAll, Problem: event.Problem{Class: "transient", Code: "SILENT", Message: "no", Retryable: true}, RetryAt: s.now})}, nil)
	}
}

// TestThreadsOfASessionSpendNoMoreThanItsBudget: in any order in which commands of
// the session and its threads arrive, requests and calls end and drivers die; and all that
// wait for the budget, and for the workspace, come to an end.
// Guarantee: E17.
func TestThreadsOfASessionSpendNoMoreThanItsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := belay.Amounts{MicroUSD: rapid.OneOf(rapid.Int64Range(1, 400_000), rapid.Just(int64(5_000_000))).Draw(t, "money"), Calls: rapid.SampledFrom([]int64{0, 1, 2, 5, 30, 60}).Draw(t, "calls")}
		s := newSpenders(t, limit, twoPrices)
		for range rapid.IntRange(40, 120).Draw(t, "moves") {
			mail, out := s.waiting(), s.asking()
			switch move := rapid.IntRange(0, 9).Draw(t, "move"); {
			case move < 2:
				s.submit(rapid.IntRange(1, 4).Draw(t, "thread"))
			case move < 7 && len(mail) > 0:
				s.deliver(rapid.SampledFrom(mail).Draw(t, "stream"))
			case len(out) > 0:
				s.ends(rapid.SampledFrom(out).Draw(t, "request"), rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3, 4}).Draw(t, "how"))
			}
			s.check(limit)
		}
		for range 10_000 { // everything comes to its end
			if mail := s.waiting(); len(mail) > 0 {
				s.deliver(mail[0])
			} else if out := s.asking(); len(out) > 0 {
				s.ends(out[0], 0)
			} else {
				break
			}
			s.check(limit)
		}
		s.atRest(limit)
	})
}

// atRest looks whether all that was submitted came to its end, and the books balance.
func (s *spenders) atRest(limit belay.Amounts) {
	s.t.Helper()
	l := s.d[togetherStream].(*session.Decider).State().Budget
	if l.Spent.MicroUSD != s.spent || limit.Calls > 0 && l.Spent.Calls != s.calls || len(l.Grants) > 0 || len(s.open) != len(s.closed) {
		s.t.Fatalf("at rest: spent %d and %d calls, the session says %+v; %d reservations, %d charges", s.spent, s.calls, l, len(s.open), len(s.closed))
	}
	for id, d := range s.d {
		if d, ok := d.(*Decider); ok && (d.s.Turn != nil || len(d.s.Queue) > 0 || len(d.s.Purse.Grants) > 0) {
			s.t.Fatalf("%s doesn't come to its end: %+v, %+v", id, d.s.Turn, d.s.Purse)
		}
	}
}

// goesOn ends a request or a call as nothing that goes wrong does: with an answer that
// takes a share of what it may, and with the last one of its turn.
func (s *spenders) goesOn(id belay.StreamID) {
	st := s.d[id].(*Decider)
	if call := running(st); call != nil {
		s.add(id, []core.Fact{{IDs: st.s.callIDs(call), Data: event.ToolResult{Name: call.Name, Attempt: call.Attempt, Digest: belay.Digest(fmt.Sprint(s.seq[id]))}}}, nil)
		return
	}
	if !requested(st) {
		s.shortened(id, 0)
		return
	}
	step := st.s.Turn.Step
	f := event.ModelCompleted{Attempt: step.Attempt, Text: belay.Content{Text: "done"}, Usage: belay.Usage{Input: step.Tokens, Output: step.MaxOutput / s.share, Reported: true}}
	if st.s.Turn.Steps < s.answers && step.Kind == KindNormal {
		args := json.RawMessage(fmt.Sprintf(`{"path":"%d"}`, s.seq[id]))
		f.Text, f.Calls = belay.Content{}, []event.ModelCall{{ID: belay.CallID(fmt.Sprintf("call_%s_%d", id, s.seq[id])), Name: "read", Args: args, ArgsHash: belay.DigestOf(args), Path: fmt.Sprint(s.seq[id])}}
	}
	s.add(id, []core.Fact{st.s.fact(f)}, nil)
}

// check holds what was charged and is reserved against the limit.
func (s *spenders) check(limit belay.Amounts) {
	s.t.Helper()
	sum := s.spent
	for key, amount := range s.open {
		if s.closed[key] == 0 {
			sum += amount
		}
	}
	if sum > limit.MicroUSD || limit.Calls > 0 && s.calls > limit.Calls {
		s.t.Fatalf("%d is charged or reserved, %d calls began, of %s", sum, s.calls, limit)
	}
}

// A driver may end between the end of a request and its charge: what the end says is charged,
// not all that was reserved.
// Guarantee: M2.
func TestATakeoverChargesWhatIsKnown(t *testing.T) {
	failed := event.Problem{Class: "cancelled", Code: "CANCELLED", Message: "the driver leaves"}
	for name, c := range map[string]struct {
		lines  []string
		end    func(w *world) event.Payload
		output int64
	}{
		"a request that was answered": {nil, func(w *world) event.Payload {
			return event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: "so"}, Usage: belay.Usage{Input: 10, Output: 7, Reported: true}}
		}, 7},
		"a request that took nothing": {nil, func(w *world) event.Payload {
			return event.ModelFailed{Attempt: 1, Problem: failed, Charge: event.ChargeNothing}
		}, 0},
		"a summary that took nothing": {[]string{`model "done" stop=stop`, "compact", "budget give 1usd"}, func(w *world) event.Payload {
			return event.ContextCompactionFailed{Started: w.d.s.Compacting.Started, Problem: failed, Charge: event.ChargeNothing}
		}, 0},
		"a summary that was made": {[]string{`model "done" stop=stop`, "compact", "budget give 1usd"}, func(w *world) event.Payload {
			return event.ContextCompactionCompleted{Started: w.d.s.Compacting.Started, TokensAfter: 10, Charge: event.ChargeAnswer,
				Usage: belay.Usage{Input: 10, Output: 9, Reported: true}}
		}, 9},
		"one that nobody knows of": {nil, nil, mostOutput},
	} {
		w := newWorld(t)
		begin := []string{"rules tokens=1000 route=a/x:100000$2 completion=conversational", "open", "submit t1 tokens=2000 budget=9usd"}
		for _, line := range append(begin, c.lines...) {
			w.do(line)
		}
		if c.end != nil {
			w.add([]core.Fact{w.d.s.fact(c.end(w))}, nil)
		}
		w.do("takeover")
		var took belay.Usage
		for _, e := range w.log {
			if p, ok := e.Data.(event.CostRecorded); ok {
				took = p.Usage
			}
		}
		if took.Output != c.output {
			t.Errorf("%s: %+v was charged", name, took)
		}
	}
}

// TestABudgetIsSpentBeforeAnybodyEndsByIt: where each request can do with a
// hundredth of the budget and nothing fails, at least 90 % of it is spent before the first
// turn is refused more, however many threads there are, however long their turns are and in
// which order things arrive.
// Guarantee: E17.
func TestABudgetIsSpentBeforeAnybodyEndsByIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit, part = 1_000_000, 10_000
		bound := rapid.SampledFrom([]int64{1000, leastOutput, mostOutput}).Draw(t, "output") // of the last as much as there is enough for
		s := newSpenders(t, belay.Amounts{MicroUSD: limit}, core.Candidate{MaxOutput: bound, Prices: &price.List{Rates: price.Rates{Output: part * 1_000_000 / min(bound, leastOutput)}}})
		s.answers = rapid.IntRange(1, 8).Draw(t, "answers")
		s.share = rapid.Int64Range(1, 3).Draw(t, "share")
		for n := range rapid.IntRange(2, 40).Draw(t, "threads") {
			s.submit(n)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		for range 100_000 {
			mail, out := s.waiting(), s.asking()
			switch {
			case len(mail) > 0 && (len(out) == 0 || r.IntN(4) > 0):
				s.deliver(mail[r.IntN(len(mail))])
			case len(out) > 0:
				s.goesOn(out[r.IntN(len(out))])
			default:
				s.atRest(belay.Amounts{MicroUSD: limit})
				if s.first > 0 && s.first < limit*9/10 {
					t.Fatalf("%d were spent when the first turn ended by it", s.first)
				}
				return
			}
			s.check(belay.Amounts{MicroUSD: limit})
		}
		t.Fatal("it goes on without end")
	})
}
