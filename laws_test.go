package belay_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
)

// TestLaw holds the parts together against what docs/guarantees.md promises,
// where a promise is about more than one package or about what nobody says.
func TestLaw(t *testing.T) {
	for _, law := range []struct {
		claim string
		try   func(*testing.T)
	}{
		{"deny beats ask beats allow", denyBeatsAskBeatsAllow},
		{"silent tools are at most once", silentToolsAreAtMostOnce},
		{"downtime costs no turn its time", downtimeCostsNoTime},
		{"late answers don't count", lateAnswersDontCount},
		{"interrupting hides no lost call", interruptingHidesNoLostCall},
		{"crash loops end", crashLoopsEnd},
		{"calls of one answer count too", callsOfOneAnswerCount},
		{"stricter rules hold for what hasn't begun", stricterRulesHold},
		{"an interrupt meets the turn it names", anInterruptMeetsItsTurn},
		{"announced before it is done", announcedBeforeItIsDone},
		{"time of a stream never goes back", timeNeverGoesBack},
		{"results come in the order of the calls", resultsComeInOrder},
		{"told how the turn before ended", toldHowTheTurnBeforeEnded},
		{"bringing a command starts nothing", bringingACommandStartsNothing},
		{"commands wait without secrets", commandsWaitWithoutSecrets},
		{"ids of calls follow from their place", idsFollowFromTheirPlace},
		{"newer facts stop an older program", newerFactsStopAnOlderProgram},
	} {
		t.Run(law.claim, law.try)
	}
}

// Guarantee: G1.
func denyBeatsAskBeatsAllow(t *testing.T) {
	order := []policy.Decision{"", policy.Allow, policy.Ask, policy.Deny}
	for i, a := range order {
		for j, b := range order {
			if got, want := policy.Join(a, b), order[max(i, j)]; got != want {
				t.Errorf("%q and %q: got %q, want %q", a, b, got, want)
			}
		}
	}
}

// loop drives one thread's decider without an engine.
type loop struct {
	t   *testing.T
	d   *thread.Decider
	now time.Time
	seq int64
	log []event.Envelope
}

const (
	loopSession = belay.SessionID("sess_law")
	loopThread  = belay.ThreadID("thr_law")
)

// newLoop opens a thread under rules and submits a turn to it.
func newLoop(t *testing.T, settings belay.Settings, tools ...belay.ToolSpec) *loop {
	t.Helper()
	return newLoopUnder(t, thread.Rules{Settings: settings, Tools: tools})
}

func newLoopUnder(t *testing.T, rules thread.Rules) *loop {
	t.Helper()
	l := &loop{t: t, d: thread.New(loopThread.Stream()), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	l.do(belay.OpenThread{Workspace: "/ws"})
	l.under(rules, func(ref belay.Ref) belay.Command {
		return belay.SubmitTurn{Turn: "turn_1", Kind: belay.TurnUser, Rules: ref}
	})
	return l
}

// under gives a command that names rules, and supplies them.
func (l *loop) under(rules thread.Rules, c func(belay.Ref) belay.Command) {
	l.t.Helper()
	rules.Settings.Provider, rules.Workspace = "scripted", "/ws"
	raw, err := json.Marshal(rules)
	if err != nil {
		l.t.Fatal(err)
	}
	ref := belay.Ref{Digest: belay.DigestOf(raw), Size: int64(len(raw))}
	l.do(c(ref))
	if err := l.d.Supply(ref, raw); err != nil {
		l.t.Fatal(err)
	}
}

func (l *loop) do(c belay.Command) {
	l.t.Helper()
	if err := l.try(c); err != nil {
		l.t.Fatalf("%s: %v", belay.CommandName(c), err)
	}
}

func (l *loop) try(c belay.Command) error {
	facts, _, err := l.d.Handle(belay.Order{Principal: "user:ann", Session: loopSession, Stream: loopThread.Stream(), Command: c}, l.now)
	l.add(facts...)
	return err
}

func (l *loop) add(facts ...core.Fact) {
	for _, f := range facts {
		l.seq++
		e := event.Envelope{Stream: loopThread.Stream(), Seq: l.seq, Time: l.now, IDs: f.IDs, Data: f.Data}
		l.d.Apply(e)
		l.log = append(l.log, e)
	}
}

// settle decides until effects or nothing is wanted.
func (l *loop) settle() core.Ready {
	l.t.Helper()
	for range 100 {
		rd := l.d.Next(l.now)
		if len(rd.Decided) == 0 {
			return rd
		}
		l.add(rd.Decided...)
	}
	l.t.Fatal("the decider decides without end")
	return core.Ready{}
}

// asked settles, and lets the model answer with calls.
func (l *loop) asked(names ...string) {
	l.t.Helper()
	rd := l.settle()
	if len(rd.Effects) != 1 {
		l.t.Fatalf("wanted: %v, want one request", rd.Effects)
	}
	request, ok := rd.Effects[0].(core.CallModel)
	if !ok {
		l.t.Fatalf("wanted: %s, want a request", rd.Effects[0].Key())
	}
	p := event.ModelCompleted{Attempt: request.Attempt}
	for i, name := range names {
		id := belay.CallID(belay.DeriveID(belay.PrefixCall, loopThread.Stream(), l.seq+1, i))
		p.Calls = append(p.Calls, event.ModelCall{ID: id, Name: name, Args: []byte("{}"), ArgsHash: belay.DigestOf([]byte("{}"))})
	}
	l.add(core.Fact{IDs: request.IDs, Data: p})
}

// turn is the running turn.
func (l *loop) turn() *thread.Turn {
	l.t.Helper()
	turn := l.d.State().Turn
	if turn == nil {
		l.t.Fatal("no turn is running")
	}
	return turn
}

// lost reports whether the log says that a call's outcome is unknown, and how
// often a call was started.
func (l *loop) lost() (lost bool, starts int) {
	for _, e := range l.log {
		switch p := e.Data.(type) {
		case event.ToolFailed:
			lost = lost || p.Problem.Class == "lost"
		case event.ToolStarted:
			starts++
		}
	}
	return lost, starts
}

// A tool whose spec names no effect class may do anything.
// Guarantee: E2.
func silentToolsAreAtMostOnce(t *testing.T) {
	l := newLoop(t, belay.Settings{Mode: belay.ModeDefault}, belay.ToolSpec{Name: "look", ReadOnly: true})
	l.asked("look")
	l.settle()
	l.do(belay.TakeOver{Epoch: 2})
	l.settle()
	if lost, starts := l.lost(); !lost || starts != 1 {
		t.Errorf("lost: %v after %d starts, want true after 1", lost, starts)
	}
}

// Guarantee: E10.
func downtimeCostsNoTime(t *testing.T) {
	l := newLoop(t, belay.Settings{Mode: belay.ModeDefault, Limits: belay.Limits{Time: belay.Duration(time.Minute)}},
		belay.ToolSpec{Name: "look", ReadOnly: true, Effect: belay.Pure})
	l.asked("look")
	l.settle()
	l.now = l.now.Add(10 * time.Hour) // nobody drove it
	l.do(belay.TakeOver{Epoch: 2})
	l.settle()
	if turn := l.turn(); turn.Active != 0 || turn.Step.Kind != thread.KindNormal {
		t.Errorf("after the takeover %s are used and the step is %s", turn.Active, turn.Step.Kind)
	}
}

// The decider may see an answer before it looked at the clock itself.
// Guarantee: G8.
func lateAnswersDontCount(t *testing.T) {
	l := newLoop(t, belay.Settings{Mode: belay.ModeDefault, Approvals: belay.ApprovalsWait, AskTimeout: belay.Duration(time.Hour)}, belay.ToolSpec{Name: "change"})
	l.asked("change")
	l.settle()
	ask := l.turn().Step.Calls[0].Ask
	if ask == nil {
		t.Fatal("nobody is asked")
	}
	l.now = ask.Until
	err := l.try(belay.RespondAction{Action: ask.Action, Decision: "allow"})
	if belay.CodeOf(err) != belay.CodeAlreadyAnswered {
		t.Errorf("an answer at the deadline: got %v, want %s", err, belay.CodeAlreadyAnswered)
	}
	l.settle()
	if _, starts := l.lost(); starts != 0 {
		t.Error("the call ran by a late answer")
	}
}

// Guarantee: E3.
func interruptingHidesNoLostCall(t *testing.T) {
	l := newLoop(t, belay.Settings{Mode: belay.ModeDefault}, belay.ToolSpec{Name: "send", ReadOnly: true, Effect: belay.AtMostOnce})
	l.asked("send")
	l.settle()
	l.do(belay.TakeOver{Epoch: 2})
	l.do(belay.InterruptTurn{})
	l.settle()
	if lost, _ := l.lost(); !lost {
		t.Error("the turn ended and nothing says that the call's outcome is unknown")
	}
	if prev := l.d.State().Prev; prev == nil || prev.Outcome != belay.Cancelled {
		t.Errorf("ended %+v", prev)
	}
}

// A call that takes the runtime down with it each time isn't started for ever.
// Guarantee: E18.
func crashLoopsEnd(t *testing.T) {
	l := newLoop(t, belay.Settings{Mode: belay.ModeDefault}, belay.ToolSpec{Name: "look", ReadOnly: true, Effect: belay.Pure})
	l.asked("look")
	l.settle()
	const crashes = 50
	for epoch := range int64(crashes) {
		if !l.d.InFlight() {
			break
		}
		l.do(belay.TakeOver{Epoch: epoch + 2})
		l.settle()
	}
	if _, starts := l.lost(); starts < 2 || starts >= crashes {
		t.Errorf("%d starts in %d crashes", starts, crashes)
	}
}

// Guarantee: E9.
func callsOfOneAnswerCount(t *testing.T) {
	l := newLoop(t, belay.Settings{Mode: belay.ModeDefault, Limits: belay.Limits{Calls: 1}},
		belay.ToolSpec{Name: "look", ReadOnly: true, Effect: belay.Pure}, belay.ToolSpec{Name: "see", ReadOnly: true, Effect: belay.Pure})
	l.asked("look", "see")
	l.settle()
	if _, starts := l.lost(); starts != 1 {
		t.Errorf("%d calls were started, one is allowed", starts)
	}
}

// The second call waits for the first, so it hasn't begun when the rules change.
// Guarantee: G16.
func stricterRulesHold(t *testing.T) {
	tools := []belay.ToolSpec{{Name: "look", ReadOnly: true, Effect: belay.Pure, Exclusive: true}, {Name: "change"}}
	l := newLoopUnder(t, thread.Rules{Settings: belay.Settings{Mode: belay.ModeDefault}, Tools: tools, Grants: []policy.Grant{{Tool: "change", Kind: "rule"}}})
	l.asked("look", "change")
	l.settle()
	if calls := l.turn().Step.Calls; calls[1].Verdict != policy.Allow || calls[1].Attempt != 0 {
		t.Fatalf("the second call is %+v, want allowed and not begun", calls[1])
	}
	l.under(thread.Rules{Settings: belay.Settings{Mode: belay.ModeNever}, Tools: tools},
		func(ref belay.Ref) belay.Command { return belay.ResumeThread{Rules: ref} })
	l.settle()
	if got := l.turn().Step.Calls[1].Verdict; got != policy.Deny {
		t.Errorf("under rules that deny it, it is %q", got)
	}
}

// An interrupt that comes late must not end the turn after the one it was for.
// Guarantee: E19.
func anInterruptMeetsItsTurn(t *testing.T) {
	l := newLoop(t, belay.Settings{Mode: belay.ModeDefault})
	l.settle()
	if err := l.try(belay.InterruptTurn{Turn: "turn_0"}); belay.CodeOf(err) != belay.CodeBadState {
		t.Errorf("for another turn: got %v, want %s", err, belay.CodeBadState)
	}
	if l.turn().Stop != nil {
		t.Error("the running turn was told to stop")
	}
	l.do(belay.InterruptTurn{Turn: "turn_1"})
	if l.turn().Stop == nil {
		t.Error("the turn that was named goes on")
	}
}
