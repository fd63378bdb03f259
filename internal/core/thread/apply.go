package thread

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/policy"
)

// Apply folds one fact. It never fails and never decides: what it doesn't know
// it only counts.
func (d *Decider) Apply(e event.Envelope) {
	s := &d.s
	s.tick(e)
	s.Seq, s.Last, s.Stream = e.Seq, e.Time, e.Stream
	s.applyProcess(e)
	switch p := e.Data.(type) {
	case event.ThreadStarted:
		s.Open, s.Session, s.Thread, s.Workspace = true, e.IDs.Session, e.IDs.Thread, p.Workspace
		s.Line = p.Queue
		s.Files.saw(e.Seq, p.Files)
		s.LostKeys = keep(append(s.LostKeys, p.Lost...), maxTracked)
		s.taintedBy(p.Taint, e.Seq)
		if p.ImportedFrom != nil {
			s.taintedBy([]string{tainted("import", p.ImportedFrom.Format)}, e.Seq)
		}
	case event.ThreadUpdated:
		if p.Use != nil {
			s.Use = *p.Use
		}
		if p.Hold != nil {
			s.applyHold(*p.Hold)
		}
		if p.Reported != nil {
			s.Reported = *p.Reported
		}
	case event.ContextResolved:
		s.taintedBy(p.Taint, e.Seq)
	case event.ActionResolved:
		s.cleared(p.Taint)
	case event.PolicyChanged:
		if p.Kind == "rules" && p.Op == "loaded" {
			s.governed(p)
		}
		if p.Kind == "grant" {
			s.applyGrant(e, p)
		}
	case event.ArtifactChanged:
		s.applyArtifact(e, p)
	case event.TurnSubmitted:
		s.enqueue(e, p)
	case event.QueueChanged:
		s.applyQueue(e, p)
	case event.TurnStarted:
		s.begin(e, p)
	case event.HistoryRollbackStarted:
		if p.Plan != nil { // without files to restore its end is the fact after it
			s.Restore = &Restore{Started: e.Seq, HistoryRollbackStarted: p}
		}
		s.Undo = ""
	case event.HistoryRollbackCompleted:
		s.wentBack(p)
	case event.TurnFailed:
		s.Queue = slices.DeleteFunc(s.Queue, func(q Queued) bool { return q.Turn == e.IDs.Turn })
	}
	if s.Turn != nil && (e.IDs.Turn == s.Turn.Turn || e.IDs.Turn == "") {
		s.applyTurn(e)
	}
}

// tick adds the time since the last fact to the turn's active time if it was
// driven. A takeover says that the driver had gone: nobody knows when, so the
// gap counts for nothing.
func (s *State) tick(e event.Envelope) {
	if p, ok := e.Data.(event.RunStatus); ok && p.Phase == "takeover" {
		return
	}
	if s.Turn != nil && s.driven() && e.Time.After(s.Last) {
		s.Turn.Active += e.Time.Sub(s.Last)
	}
}

func (s *State) begin(e event.Envelope, p event.TurnStarted) {
	i := slices.IndexFunc(s.Queue, func(q Queued) bool { return q.Turn == e.IDs.Turn })
	if i < 0 {
		return
	}
	q := s.Queue[i]
	q.Rules = p.Rules
	q.Place, q.Mode, q.Into, q.At, q.Line = 0, "", "", time.Time{}, ""
	s.Queue = slices.Delete(s.Queue, i, i+1)
	s.recall()
	if k := s.known(q.Turn); k != nil {
		k.Start = e.Seq
	}
	s.Back = false
	s.Turn = &Turn{Queued: q, Begun: true, Completion: p.Completion, Limits: p.Limits}
}

func (s *State) applyTurn(e event.Envelope) {
	t := s.Turn
	switch p := e.Data.(type) {
	case event.ThreadUpdated:
		if p.Hold == nil {
			t.changeRules(p)
		}
		if p.Rules != nil {
			t.Since = e.Seq
		}
	case event.RunStatus:
		s.applyStatus(p)
	case event.ModelRequested:
		if t.Step == nil || t.Step.ID != e.IDs.Step {
			s.Recall = false
		}
		t.request(e, p)
	case event.ModelCompleted:
		t.answered(p)
	case event.ModelFailed:
		t.modelFailed(p)
	case event.RoutingDecided, event.RoutingSingleCandidate, event.RoutingNotPossible, event.RoutingFallbackApplied:
		t.applyRoute(p)
	case event.CostRecorded:
		t.Cost.MicroUSD += p.Amount
		if e.IDs.Call == "" { // else of a model that judged a call, which is no answer of the turn
			t.Cost.Priced++
		}
	case event.PermissionEvaluated:
		if c := t.call(e.IDs.Call); c != nil {
			c.Judged, c.Verdict = true, policy.Decision(p.Decision)
			c.Reason, c.Hint = p.Reason, p.Hint
			if c.Blocked == nil {
				c.Tags = p.Tags
			}
			c.decided(p)
			s.standsOn(c, p)
		}
		s.usedGrant(p)
	case event.HookStarted:
		s.check(e, p.Hook, nil)
	case event.HookCompleted:
		t.Usage = t.Usage.Add(p.Usage)
		s.check(e, p.Hook, func(k *Checked) { k.Decision, k.Code, k.Reason = policy.Decision(p.Decision), p.Code, p.Reason })
	case event.HookFailed:
		t.Usage = t.Usage.Add(p.Usage)
		s.check(e, p.Hook, func(k *Checked) { k.Failed, k.Reason = true, p.Problem.Message })
	case event.PermissionRequested:
		if c := t.call(e.IDs.Call); c != nil {
			c.Stands = p.Stands
		}
	case event.ActionRequired:
		s.applyAsk(e, p)
	case event.ActionResolved:
		s.applyAnswer(e, p)
	case event.ToolArgs:
		if c := t.call(e.IDs.Call); c != nil {
			c.edited(p)
		}
	case event.ToolStarted:
		if c := t.call(e.IDs.Call); c != nil {
			c.Attempt, c.Flying, c.Orphan, c.Recover = p.Attempt, true, false, p.Recover
			c.Taint = p.Taint
			c.Changes, c.Polls, c.Expect, c.Expects = !p.ReadOnly, p.Polling, p.Expect, p.Expects
		}
	case event.SandboxViolation:
		if c := t.call(e.IDs.Call); c != nil {
			c.violated(p)
		}
	case event.ToolResult:
		s.applyResult(e, p)
	case event.ToolFailed:
		s.applyFailure(e, p)
	case event.TurnCompleted:
		s.end(e, belay.Completed, "")
	case event.TurnFailed:
		s.end(e, p.Outcome, p.Reason)
	}
}

// changeRules puts the turn under other rules. What was allowed and hasn't
// begun is judged again; what was denied stays denied.
func (t *Turn) changeRules(p event.ThreadUpdated) {
	if p.Rules != nil { // they name who is asked, too
		t.Rules = *p.Rules
		t.Route, t.Tried, t.NoRoute = event.Route{}, nil, ""
	}
	if p.Limits != nil {
		t.Limits = *p.Limits
	}
	t.forgetDenials()
	if t.Step == nil {
		return
	}
	for i := range t.Step.Calls {
		c := &t.Step.Calls[i]
		if c.Attempt > 0 && c.Again == nil || c.Over || c.Verdict == policy.Deny {
			continue
		}
		c.Judged = false
	}
}

// forgetDenials lets calls be judged afresh that were denied before.
func (t *Turn) forgetDenials() {
	t.Tracked = slices.DeleteFunc(t.Tracked, func(o Tracked) bool { return o.Denied })
}

func (s *State) applyStatus(p event.RunStatus) {
	t := s.Turn
	if p.Status == "cancelling" {
		t.Stop = &Stop{By: p.By, Reason: p.Reason, Back: p.Phase == phaseRollback}
	}
	if p.Phase == "takeover" {
		s.recall()
	}
	if p.Phase != "takeover" || t.Step == nil {
		return
	}
	t.Step.Orphan = t.Step.Flying
	for i := range t.Step.Calls {
		t.Step.Calls[i].Orphan = t.Step.Calls[i].Flying
	}
}

func (t *Turn) request(e event.Envelope, p event.ModelRequested) {
	if t.Step == nil || t.Step.ID != e.IDs.Step {
		t.Step = &Step{ID: e.IDs.Step, Kind: p.Kind, Note: p.Note, Limit: p.Limit, From: p.From, To: p.To, Begun: t.Active}
		t.Steps++
		t.Nudged = t.Nudged || p.Kind == KindNudge
	}
	st := t.Step
	st.Attempt, st.Flying, st.Orphan, st.Problem = p.Attempt, true, false, nil
}

func (t *Turn) answered(p event.ModelCompleted) {
	st := t.Step
	if st == nil {
		return
	}
	st.Flying, st.Orphan, st.Answered, st.Stop, st.Misfit = false, false, true, p.Stop, p.Misfit
	t.Partial, t.PartialText = nil, ""
	t.Answers++
	t.Usage = t.Usage.Add(p.Usage)
	for _, c := range p.Calls {
		st.Calls = append(st.Calls, Call{ID: c.ID, Name: c.Name, Args: c.Args, ArgsRef: c.ArgsRef, ArgsHash: c.ArgsHash, Path: c.Path, Paths: c.Paths, Links: c.Links, Problem: c.Problem})
	}
	if len(p.Calls) == 0 {
		st.Text = p.Text
	}
}

func (t *Turn) modelFailed(p event.ModelFailed) {
	st := t.Step
	if st == nil {
		return
	}
	st.Flying, st.Orphan = false, false
	t.Partial, t.PartialText = p.PartialRef, p.Partial
	if p.Problem.Class == "cancelled" {
		return
	}
	t.Failed++
	st.Failures++
	st.Failed++
	st.Problem = &p.Problem
	st.RetryAt = p.RetryAt
}

func (t *Turn) call(id belay.CallID) *Call {
	if t == nil || t.Step == nil || id == "" {
		return nil
	}
	return t.Step.call(id)
}

func (s *State) applyAsk(e event.Envelope, p event.ActionRequired) {
	a := &Ask{Action: e.IDs.Action, Kind: p.Kind, Until: p.Until, Open: true, Again: p.Again}
	if c := s.Turn.call(e.IDs.Call); c != nil {
		if p.Kind == "permission" {
			a.bounded(p.Boundary, p.Bounds)
		}
		c.Ask = a
		s.askedWider(c, a, p)
		return
	}
	if p.Kind == "permission" { // for a call that isn't there: nothing would wait for the answer
		return
	}
	s.Turn.Ask = a
}

func (s *State) applyAnswer(e event.Envelope, p event.ActionResolved) {
	s.Answers = keep(append(s.Answers, Answer{e.IDs.Action, p.Decision, p.By, e.Time}), maxAnswers)
	ask, c := s.openAsk(e.IDs.Action)
	if ask == nil {
		return
	}
	ask.Open, ask.Decision, ask.Message = false, p.Decision, p.Message.Text
	switch ask.Kind {
	case "permission":
		s.answeredWider(c, ask, p)
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
	}
}

func (s *State) applyResult(e event.Envelope, p event.ToolResult) {
	t := s.Turn
	c := t.call(e.IDs.Call)
	if c == nil {
		return
	}
	if c.Flying {
		s.paced(c.Name, p.Millis, nil)
	}
	c.Flying, c.Orphan, c.Over = false, false, true
	t.Calls++
	t.ran(c)
	t.Failing, t.Denied = nil, false
	s.LostKeys = slices.DeleteFunc(s.LostKeys, func(k string) bool { return k == c.key() })
	s.Files.saw(e.Seq, p.Files)
	t.track(c, p.Digest, "", false)
}

func (s *State) applyFailure(e event.Envelope, p event.ToolFailed) {
	t := s.Turn
	c := t.call(e.IDs.Call)
	if c == nil {
		return
	}
	if c.Flying && !standsNoMore(p.Problem.Code) {
		s.paced(c.Name, p.Millis, &p.Problem)
	}
	c.Flying, c.Orphan = false, false
	s.Files.saw(e.Seq, p.Files)
	if !p.Final {
		switch c.RetryAt = p.RetryAt; {
		case p.Problem.Code == CodeViolation:
			c.blocked(p)
		case standsNoMore(p.Problem.Code):
			c.unallowed(p.Problem)
		}
		return
	}
	c.Over = true
	t.Calls++
	t.ran(c)
	if p.Problem.Class != "skipped" {
		t.Denied = p.Problem.Class == "denied"
	}
	if p.Problem.Code == codeSameFailure {
		t.refusedAgain(c)
	}
	switch p.Problem.Class {
	case "denied":
		t.track(c, "", p.Problem.Code, true)
		return
	case "cancelled", "skipped":
		return
	case "lost":
		s.LostKeys = keep(append(s.LostKeys, c.key()), maxTracked)
	}
	if p.Problem.Code == codeNotAlone {
		return // a matter of form, not of the call
	}
	if c.Attempt > 0 || c.Problem != nil {
		t.track(c, "", p.Problem.Code, false)
	}
	if f := c.Name + " " + p.Problem.Code; !slices.Contains(t.Failing, f) {
		t.Failing = append(t.Failing, f)
	}
}

// track counts identical calls with identical ends. A call that can change
// things makes what others returned before stale, so it clears their counts;
// what was denied stays counted, because that has changed nothing about it.
func (t *Turn) track(c *Call, result belay.Digest, code string, denied bool) {
	k := Tracked{Key: c.key()}
	i := slices.IndexFunc(t.Tracked, func(o Tracked) bool { return o.Key == k.Key })
	if i >= 0 {
		k = t.Tracked[i]
		t.Tracked = slices.Delete(t.Tracked, i, i+1)
	}
	if k.Step == t.Steps && k.Same > 0 && code == "" {
		// The same call twice in one answer is one try.
		t.Tracked = append(t.Tracked, k)
		return
	}
	k.Step = t.Steps
	if code != "" {
		if k.Code != code {
			k.Code, k.Fails = code, 0
		}
		k.Fails++
		k.Result, k.Same = "", 0
	} else {
		if k.Result != result {
			k.Result, k.Same = result, 0
		}
		k.Same++
		k.Code, k.Fails = "", 0
	}
	k.Denied = denied
	if c.Changes && !denied {
		t.Tracked = slices.DeleteFunc(t.Tracked, func(o Tracked) bool { return !o.Denied })
	}
	t.Tracked = keep(append(t.Tracked, k), maxTracked)
	if k.Same >= loopAt && !c.Polls {
		t.Loop = c.Name
	}
}

// refusedAgain counts calls that were not run because they had failed in the
// same way before; a model that insists is in a loop.
func (t *Turn) refusedAgain(c *Call) {
	key := c.key()
	for i := range t.Tracked {
		k := &t.Tracked[i]
		if k.Key != key {
			continue
		}
		if k.Fails++; k.Fails >= sameFailures+loopAt {
			t.Loop = c.Name
		}
	}
}

func (s *State) end(e event.Envelope, o belay.Outcome, reason string) {
	if k := s.known(s.Turn.Turn); k != nil {
		k.End, k.Outcome = e.Seq, o
	}
	for _, q := range s.Turn.Joined {
		if k := s.known(q.Turn); k != nil {
			k.End, k.Outcome = e.Seq, o
		}
	}
	if s.Turn.Stop != nil && s.Turn.Stop.Back {
		s.Undo = s.Turn.Turn
	}
	if s.Turn.Step != nil {
		for i := range s.Turn.Step.Calls { // the turn ended before the taint stage could say so
			if c := &s.Turn.Step.Calls[i]; c.Over {
				s.taintedBy(c.Taint, e.Seq)
			}
		}
	}
	if s.Turn.Kept != "" {
		s.Keep = s.keep(s.Turn.Kept, "after")
	}
	if o != belay.Completed || s.Turn.Completion == belay.CompletionRequired {
		s.endProcs()
	}
	s.Prev = &Ended{Turn: s.Turn.Turn, Outcome: o, Reason: reason}
	s.Turn = nil
}

func keep[T any](s []T, n int) []T {
	if len(s) > n {
		return slices.Delete(s, 0, len(s)-n)
	}
	return s
}
