package thread

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/policy"
)

// calls are those of the running step, if there is one.
func (t *Turn) calls() []*Call {
	if t == nil || t.Step == nil {
		return nil
	}
	return t.Step.Calls
}

// AwaitsOthers reports whether the running turn does nothing but wait for agents.
func (s *State) AwaitsOthers() bool {
	if s.Turn == nil || s.Turn.Step == nil || s.Turn.Step.Phase != stepAnswered {
		return false
	}
	return !slices.ContainsFunc(s.Turn.calls(), func(c *Call) bool { return c.Phase != CallOver && c.Phase != CallWaits }) && !s.Turn.Step.settled()
}

func (t *Turn) call(id belay.CallID) *Call {
	if i := slices.IndexFunc(t.calls(), func(c *Call) bool { return c.ID == id }); i >= 0 && id != "" {
		return t.Step.Calls[i]
	}
	return nil
}

func (s *State) applyVerdict(e event.Envelope, p event.PermissionEvaluated) {
	if c := s.Turn.call(e.IDs.Call); c != nil {
		if c.Phase == CallProposed {
			c.Phase = CallJudged
		}
		c.Verdict, c.Reason, c.Hint = policy.Decision(p.Decision), p.Reason, p.Hint
		if c.Phase != CallRan {
			c.Tags = p.Tags
		}
		c.decided(p)
		s.approvalContext(c, p)
	}
	s.usedGrant(p)
}

func (c *Call) started(p event.ToolStarted) {
	c.Attempt, c.Phase, c.Recover, c.Internal = p.Attempt, CallRunning, p.Recover, p.Boundary == boundaryNone && c.Bound == nil
	c.Taint, c.Told = p.Taint, ""
	c.Changes, c.Polls, c.Expect, c.Expects = !p.ReadOnly, p.Polling, p.Expect, p.Expects
}

func (t *Turn) applyAsk(e event.Envelope, p event.ActionRequired) {
	a := &Ask{Action: e.IDs.Action, Kind: p.Kind, Until: p.Until, Open: true, Again: p.Again, Budget: p.Budget}
	if c := t.call(e.IDs.Call); c != nil {
		if p.Kind == "permission" {
			a.bounded(p.Boundary, p.Bounds)
		}
		c.Ask = a
		t.askedWider(c, a, p)
		return
	}
	if p.Kind == "permission" { // for a call that isn't there: nothing would wait for the answer
		return
	}
	t.Ask = a
}

func (s *State) applyAnswer(e event.Envelope, p event.ActionResolved) {
	s.Answers = keep(append(s.Answers, answer{e.IDs.Action, p.Decision, p.By, e.Time}), maxAnswers)
	open := s.OpenAsk(e.IDs.Action)
	ask, c := open.Ask, open.Call
	if ask == nil {
		return
	}
	ask.Open, ask.Decision, ask.Message = false, p.Decision, p.Message.Text
	if p.By != "deadline" { // somebody looks at what it does
		s.Turn.Refusals = 0
	}
	switch ask.Kind {
	case askForm:
		c.Phase = CallJudged
		c.Sample.Allowed = c.Input.Request != nil && p.Decision == "answer"
	case "permission":
		s.Turn.answeredWider(c, ask, p)
		c.Again = nil
		c.Verdict = policy.Deny
		if p.Decision == "allow" {
			c.Verdict = policy.Allow
		}
		c.Reason, c.Hint = p.By+" said no", ""
		switch {
		case p.By == "deadline":
			c.Reason = p.Message.Text
		case p.Message.Text != "":
			c.Reason += ": " + p.Message.Text
		}
	case "continue":
		if s.Turn.GaveUp = p.Decision != "allow"; !s.Turn.GaveUp {
			s.Turn.Failing = nil
		}
	case askBudget:
		switch asked := s.Purse.asked(); {
		case p.Decision == "deny":
			s.Turn.Low = ask.Budget.Kind
		case p.Decision == "allow" && asked != nil: // the session has the answer, and gives what there is
			asked.Refused = false
		}
	}
}

func (s *State) applyResult(e event.Envelope, p event.ToolResult) {
	t := s.Turn
	c := t.call(e.IDs.Call)
	if c == nil {
		return
	}
	if c.inFlight() && c.Phase != CallWaits {
		s.paced(c.Name, p.Millis, nil)
	}
	c.Phase = CallOver
	t.Calls++
	t.ran(c)
	s.Purse.ran(c)
	if c.Check != "" {
		c.Ended = &callEnd{Exit: p.Exit, Output: lastLines(p.Output.Text)}
		return
	}
	t.Failing, t.Denied, t.Step.Worked, t.Refusals = nil, false, true, 0
	s.LostKeys = slices.DeleteFunc(s.LostKeys, func(k string) bool { return k == c.key() })
	s.Files.saw(e.Seq, p.Files)
	s.works(p.Instructions)
	t.track(c, p.Digest, nil)
}

func (s *State) applyFailure(e event.Envelope, p event.ToolFailed) {
	t := s.Turn
	c := t.call(e.IDs.Call)
	if c == nil {
		return
	}
	if c.inFlight() {
		if c.Phase != CallWaits && !standsNoMore(p.Problem.Code) {
			s.paced(c.Name, p.Millis, &p.Problem)
		}
		c.Phase = CallJudged
	}
	s.Files.saw(e.Seq, p.Files)
	if !p.Final {
		switch c.RetryAt = p.RetryAt; {
		case p.Input != nil:
			c.asked(p)
		case c.Input != nil: // nobody knows the question any more
			c.Phase, c.Input, c.Ask = CallJudged, nil, nil
		case p.Problem.Code == CodeViolation:
			c.blocked(p)
		case standsNoMore(p.Problem.Code):
			c.invalidateApproval(p.Problem)
		}
		return
	}
	c.Phase = CallOver
	t.Calls++
	t.ran(c)
	s.Purse.ran(c)
	if c.Check != "" {
		c.Ended = &callEnd{Problem: &p.Problem, Output: lastLines(p.Output.Text)}
		return
	}
	if p.Problem.Code == codeChecksFailed {
		t.Red++
		t.Verified = nil
		return
	}
	if p.Problem.Class != "skipped" {
		t.Denied = p.Problem.Class == "denied"
	}
	if interfered(p.Problem) { // it isn't the model's doing
		if p.Problem.Class == "lost" {
			s.LostKeys = keep(append(s.LostKeys, c.key()), maxTracked)
		}
		return
	}
	t.track(c, "", &p.Problem)
	t.refused()
	switch {
	case p.Problem.Class == "denied":
		t.Denials++
	case p.Problem.Class == "skipped" || p.Problem.Code == codeNotAlone: // a matter of form, not of the call
	case !t.Step.Worked:
		if f := c.Name + " " + p.Problem.Code; !slices.Contains(t.Failing, f) {
			t.Failing = append(t.Failing, f)
		}
	}
}

// interfered reports whether a call ended by what people or crashes did.
func interfered(p event.Problem) bool {
	return p.Class == "cancelled" || p.Class == "lost" || p.Code == codeSteered
}

// refused counts the answers in a row of whose calls none ran.
func (t *Turn) refused() {
	if t.Step.settled() && !t.Step.Worked && !slices.ContainsFunc(t.Step.Calls, func(c *Call) bool { return c.Attempt > 0 }) {
		t.Refusals++
	}
}

// track counts identical calls with identical ends. A call that can change
// things makes what others returned before stale, so it clears their counts;
// what was denied stays counted, because that has changed nothing about it.
func (t *Turn) track(c *Call, result belay.Digest, p *event.Problem) {
	k := tracked{Key: c.key()}
	i := slices.IndexFunc(t.Tracked, func(o tracked) bool { return o.Key == k.Key })
	if i >= 0 {
		k = t.Tracked[i]
		t.Tracked = slices.Delete(t.Tracked, i, i+1)
	}
	denied := p != nil && p.Class == "denied"
	unrun := p != nil && !denied && c.Attempt == 0 && c.Problem == nil
	switch once := k.Step == t.Steps; { // the same call twice in one answer is one try
	case once && k.Same > 0 && p == nil, once && k.Unrun && unrun && k.Code == p.Code:
	case p != nil && p.Code == codeSameFailure: // as before
		k.Fails++
	case p != nil:
		if k.Code != p.Code {
			k.Code, k.Fails = p.Code, 0
		}
		k.Fails++
		k.Result, k.Same = "", 0
		k.Denied, k.Unrun = denied, unrun
	default:
		if k.Result != result {
			k.Result, k.Same = result, 0
		}
		k.Same++
		k.Code, k.Fails, k.Denied, k.Unrun = "", 0, false, false
	}
	k.Step = t.Steps
	if c.Changes && !denied {
		t.Tracked = slices.DeleteFunc(t.Tracked, func(o tracked) bool { return !o.Denied })
	}
	t.Tracked = keep(append(t.Tracked, k), maxTracked)
	if k.Same >= loopAt && !c.Polls || k.Fails >= sameFailures+loopAt {
		t.Loop = c.Name
	}
}

func (t *Turn) tracked(c *Call) *tracked {
	key := c.key()
	return find(t.Tracked, func(o *tracked) bool { return o.Key == key })
}
