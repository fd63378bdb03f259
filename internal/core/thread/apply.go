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
	s.applyFamily(e)
	s.count(e)
	s.applyCost(e)
	s.applyWindow(e)
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
		if p.Pause != nil {
			s.applyPause(*p.Pause, p.Reason)
		}
		if p.Mode != "" {
			s.Widest = belay.Mode(p.Mode)
		}
		if p.Boundary != "" {
			s.Outer = p.Boundary
		}
		if p.Hold != nil {
			s.applyHold(*p.Hold)
		}
		if p.Reported != nil {
			s.Reported = *p.Reported
		}
	case event.LimitChanged:
		s.applyLimit(p)
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
			s.Restore = &restore{Started: e.Seq, HistoryRollbackStarted: p}
		}
		s.Undo = ""
	case event.HistoryRollbackCompleted:
		s.wentBack(p)
		if p.Scope == event.ScopeThread {
			s.forget()
		}
	case event.TurnFailed:
		s.Queue = slices.DeleteFunc(s.Queue, func(q Queued) bool { return q.Turn == e.IDs.Turn })
	}
	if s.Turn != nil && (e.IDs.Turn == s.Turn.Turn || e.IDs.Turn == "") {
		s.applyTurn(e)
	}
}

// tick adds the time since the last fact to the turn's active time if it was
// driven. A takeover means that the driver had gone at an unknown time, so the
// gap isn't counted.
func (s *State) tick(e event.Envelope) {
	if p, ok := e.Data.(event.RunStatus); ok && p.Phase == "takeover" {
		return
	}
	if s.driven() && e.Time.After(s.Last) {
		s.Turn.Active += e.Time.Sub(s.Last)
		s.Purse.spend(belay.Amounts{Time: belay.Duration(e.Time.Sub(s.Last))})
	}
	if wait := s.Turn.retryWait(s.Last, e.Time); wait > 0 {
		s.Turn.Waited += wait
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
	s.Told, s.Anew = false, false
	if !q.Rest && s.Depth > 0 {
		s.Borrowed = borrowed{After: s.Charged}
		if q.Limits != nil {
			s.Borrowed.Limit = belay.Amounts{MicroUSD: q.Limits.MicroUSD, Tokens: q.Limits.Tokens}
		}
	}
	s.Turn = &Turn{Queued: q, Begun: true, Completion: p.Completion, Limits: p.Limits, Agent: p.Agent}
}

func (s *State) applyTurn(e event.Envelope) {
	t := s.Turn
	switch p := e.Data.(type) {
	case event.ContextResolved:
		s.looked(p)
	case event.ThreadUpdated:
		if p.Hold == nil && p.Pin == nil && p.Compact == nil && p.Pause == nil && p.Place == "" {
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
		sum := p.Sum()
		if e.IDs.Call != "" || p.Summary() { // of a model that judged a call or summarised: no answer of the turn
			sum.Priced = 0
		}
		t.Cost = t.Cost.Add(sum)
	case event.PermissionEvaluated:
		s.applyVerdict(e, p)
	case event.HookStarted:
		s.Turn.check(e, p.Hook, nil)
		t.sampled(e.IDs.Call, p.Hook, false, nil)
	case event.HookCompleted:
		t.Usage = t.Usage.Add(p.Usage)
		t.sampled(e.IDs.Call, p.Hook, true, p.Output)
		s.Turn.check(e, p.Hook, func(k *checked) { k.Decision, k.Code, k.Reason = policy.Decision(p.Decision), p.Code, p.Reason })
	case event.HookFailed:
		t.Usage = t.Usage.Add(p.Usage)
		t.sampled(e.IDs.Call, p.Hook, true, nil)
		s.Turn.check(e, p.Hook, func(k *checked) { k.Failed, k.Reason = true, p.Problem.Message })
	case event.PermissionRequested:
		if c := t.call(e.IDs.Call); c != nil {
			c.Stands = p.Stands
		}
	case event.ActionRequired:
		s.Turn.applyAsk(e, p)
	case event.ActionResolved:
		s.applyAnswer(e, p)
	case event.ToolArgs:
		if c := t.call(e.IDs.Call); c != nil {
			c.edited(p)
		}
	case event.ToolStarted:
		if c := t.call(e.IDs.Call); c != nil {
			t.Refusals = 0
			c.started(p)
			if p.Waits {
				c.Phase, c.Since = CallWaits, e.Time
			}
		}
	case event.ToolProgress:
		if c := t.call(e.IDs.Call); c != nil {
			c.Told = event.CutText(p.String(), maxSaid)
		}
	case event.TaskProgress:
		if p.Check != nil {
			s.applyCheck(e, *p.Check)
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
		t.Limits, t.Low, t.Short = *p.Limits, "", false
	}
	t.forgetDenials()
	t.Refusals = 0
	for _, c := range t.calls() {
		if c.Phase == CallJudged && c.Verdict != policy.Deny && (c.Attempt == 0 || c.Again != nil) {
			c.Phase = CallProposed
		}
	}
}

// forgetDenials lets calls be judged afresh that were denied before.
func (t *Turn) forgetDenials() {
	t.Tracked = slices.DeleteFunc(t.Tracked, func(o tracked) bool { return o.Denied })
}

func (s *State) applyStatus(p event.RunStatus) {
	t := s.Turn
	if p.Phase == phaseLent {
		t.Short = true
	}
	if p.Status == "cancelling" {
		t.Stop = &Stop{By: p.By, Reason: p.Reason, Back: p.Phase == phaseRollback, Grace: p.Phase == phaseGrace}
	}
	if p.Phase == "takeover" {
		s.recall()
	}
	if p.Phase != "takeover" || t.Step == nil {
		return
	}
	if t.Step.Phase == stepRequested {
		t.Step.Phase = stepOrphaned
	}
	for _, c := range t.Step.Calls {
		if c.Phase == CallRunning {
			c.Phase = CallOrphaned
		}
	}
}

func (t *Turn) request(e event.Envelope, p event.ModelRequested) {
	if t.Step == nil || t.Step.ID != e.IDs.Step {
		t.Step = &Step{ID: e.IDs.Step, Kind: p.Kind, Note: p.Note, Limit: p.Limit, Begun: t.Active + t.Waited}
		t.Steps++
		t.Nudged = t.Nudged || p.Kind == KindNudge
	}
	t.Short = false
	st := t.Step
	st.From, st.To = p.From, p.To
	st.Attempt, st.Phase, st.Problem, st.MaxOutput = p.Attempt, stepRequested, nil, p.MaxOutput
	st.Search = p.Search
	if low := lowBy(p.Limit); low != "" {
		t.Low = low
	}
	st.Asked = event.Route{Provider: p.Provider, Model: p.Model}
	if p.Tokens > 0 {
		st.Tokens, st.Fixed = p.Tokens, p.Fixed
	}
}

func (t *Turn) answered(p event.ModelCompleted) {
	st := t.Step
	if st == nil {
		return
	}
	st.Phase, st.Stop, st.Misfit, st.Searched = stepAnswered, p.Stop, p.Misfit, len(p.Searches) > 0
	t.Partial, t.PartialText = nil, ""
	t.Answers++
	t.Usage = t.Usage.Add(p.Usage)
	for _, c := range p.Calls {
		st.Calls = append(st.Calls, &Call{ID: c.ID, Name: c.Name, Args: c.Args, ArgsRef: c.ArgsRef, ArgsHash: c.ArgsHash, Path: c.Path, Paths: c.Paths, Links: c.Links, Problem: c.Problem})
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
	st.Phase = stepOpen
	t.Partial, t.PartialText = p.PartialRef, p.Partial
	if p.Problem.Class == "cancelled" {
		return
	}
	t.Failed++
	t.Lost += p.Offset
	st.Failures++
	st.Failed++
	st.Phase, st.Problem = stepFailed, &p.Problem
	st.RetryAt = p.RetryAt
}

func (s *State) end(e event.Envelope, o belay.Outcome, reason string) {
	for _, q := range append([]Queued{s.Turn.Queued}, s.Turn.Joined...) {
		if k := s.known(q.Turn); k != nil {
			k.End, k.Outcome, k.Tokens = e.Seq, o, s.Counts.total()
		}
	}
	if s.Turn.Stop != nil && s.Turn.Stop.Back {
		s.Undo = s.Turn.Turn
	}
	if s.Turn.Step != nil && s.Turn.Step.Searched {
		s.taintedBy([]string{searchTaint}, e.Seq)
	}
	for _, c := range s.Turn.calls() { // the turn ended before the taint stage could say so
		if c.Phase == CallOver {
			s.taintedBy(c.Taint, e.Seq)
		}
	}
	if s.Turn.Kept != "" {
		s.Keep = s.keep(s.Turn.Kept, "after")
	}
	if o != belay.Completed || s.Turn.Completion == belay.CompletionRequired {
		s.endProcs()
	}
	s.writesOff()
	s.Prev = &Ended{Turn: s.Turn.Turn, Outcome: o, Reason: reason}
	s.Turn = nil
}

// find is the first element that matches, to be read or changed; nil if there is none.
func find[T any](s []T, match func(*T) bool) *T {
	for i := range s {
		if match(&s[i]) {
			return &s[i]
		}
	}
	return nil
}

func keep[T any](s []T, n int) []T {
	if len(s) > n {
		return slices.Delete(s, 0, len(s)-n)
	}
	return s
}
