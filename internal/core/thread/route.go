package thread

import (
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/route"
)

// longWait is a wait that another model is better than.
const longWait = 20 * time.Second

// A turn may have so many failed requests: some, and one for so many steps. A
// provider that fails now and then is lived with, one that fails all the time
// isn't paid for.
const (
	failuresFree     = 20
	stepsPerFailure  = 5
	circuitOpen      = "CIRCUIT_OPEN"
	classOverflow    = "overflow"
	classRefused     = "refused"
	classRateLimited = "rate_limited"
)

// choose sends the turn to a model, where there are several, and when a turn
// continues under other rules.
func choose(s *State, r *Rules, _ time.Time, rd *core.Ready) bool {
	t := s.Turn
	switch {
	case t.NoRoute != "":
		s.fail(rd, belay.Failed, "NO_ROUTE", t.NoRoute)
		return true
	case t.Route.Provider == "" && len(r.Routes) > 0:
		rd.Decided = append(rd.Decided, r.routing(s.ids(), t.Task, t.needs())...)
		return true
	}
	return false
}

// needs are the abilities that what was sent along with a turn needs of a model.
func (t *Turn) needs() []string { return needsOf(append([]Queued{t.Queued}, t.Joined...)) }

func needsOf(turns []Queued) (needs []string) {
	for _, q := range turns {
		needs = append(needs, q.Needs...)
	}
	return needs
}

// needed is the ability that an attachment needs; text is read by every model.
func needed(a belay.Attachment) string {
	switch {
	case strings.HasPrefix(a.Ref.Media, "image/"):
		return route.Images
	case a.Ref.Media != "" && !strings.HasPrefix(a.Ref.Media, "text/"):
		return route.Files
	}
	return ""
}

// routing are the facts of the choice among the rules' candidates.
func (r *Rules) routing(ids belay.IDs, task belay.TaskID, needs []string) []core.Fact {
	if len(r.Routes) == 0 {
		return nil
	}
	mode := "preferred"
	if len(r.Routes) == 1 {
		mode = "fixed"
	}
	var out []core.Fact
	profile := r.Profile.With(needs, r.Routes)
	for _, p := range route.Decide(profile, r.Routes).Facts(profile, r.Routes, mode, "user") {
		f := core.Fact{IDs: ids, Data: p}
		if _, ofTask := p.(event.TaskProfileResolved); ofTask {
			if task == "" {
				continue // a turn of nobody's task has no profile to tell
			}
			f.IDs.Task = task
		}
		out = append(out, f)
	}
	return out
}

// applyRoute folds where a turn's requests go.
func (t *Turn) applyRoute(p event.Payload) {
	switch p := p.(type) {
	case event.RoutingDecided:
		t.Route, t.NoRoute = p.Route, ""
	case event.RoutingSingleCandidate:
		t.Route, t.NoRoute = p.Candidate.Route, ""
	case event.RoutingNotPossible:
		t.NoRoute = p.Reason
	case event.RoutingFallbackApplied:
		t.Tried = append(t.Tried, p.From)
		t.Route = p.To
		if st := t.Step; st != nil {
			st.Problem, st.Failures, st.RetryAt = nil, 0, time.Time{}
		}
	}
}

// givesUp reports whether the route of a request that failed is of no more use.
func (s *State) givesUp(now time.Time) bool {
	t := s.Turn
	p := t.Step.Problem
	if !p.Retryable || t.Step.Failures >= maxModelFailures || t.spent() {
		return true
	}
	return p.Code == circuitOpen || p.Class == classRateLimited && t.Step.RetryAt.Sub(now) > longWait
}

// spent reports whether the turn's budget of failed requests is used up.
func (t *Turn) spent() bool { return t.Failed >= failuresFree+t.Steps/stepsPerFailure }

// fallback sends a request that failed to the next model of the chain, if one
// could do better. What a model refuses isn't taken to another one.
func (s *State) fallback(r *Rules, rd *core.Ready) bool {
	t := s.Turn
	p := t.Step.Problem
	if len(r.Routes) < 2 || p.Class == classRefused || t.spent() {
		return false
	}
	from := t.Route
	to, left, ok := route.Next(r.Profile.With(t.needs(), r.Routes), r.Routes, append(t.Tried[:len(t.Tried):len(t.Tried)], from), p.Class == classOverflow)
	if !ok {
		return false
	}
	rd.Decided = append(rd.Decided, s.fact(event.RoutingFallbackApplied{From: from, To: to.Route, Left: left,
		Reason: fmt.Sprintf("%s: %s", p.Code, event.CutText(p.Message, 300))}))
	return true
}

// failedForGood ends a turn whose request nobody answers.
func (s *State) failedForGood(rd *core.Ready) {
	st := s.Turn.Step
	if st.Problem.Retryable && s.Turn.spent() {
		s.fail(rd, belay.Failed, "RETRY_BUDGET", fmt.Sprintf("%d requests of this turn have failed; the last: %s", s.Turn.Failed, st.Problem.Message))
		return
	}
	if st.Problem.Class == classOverflow {
		s.fail(rd, belay.Failed, "CONTEXT_EXCEEDED", st.Problem.Message)
		return
	}
	s.fail(rd, belay.Failed, "MODEL_FAILED", st.Problem.Message)
}

// cost is what the turn's answers cost so far; empty when no price is known.
func (t *Turn) cost() event.CostSum {
	c := t.Cost
	if c.Priced > 0 {
		c.Unpriced = t.Answers - c.Priced
	}
	return c
}

// to is where the turn's requests go.
func (s *State) to(r *Rules) route.Candidate {
	if s.Turn.Route.Provider == "" {
		return route.Candidate{Candidate: event.Candidate{Route: event.Route{Provider: r.Settings.Provider, Model: r.Settings.Model}}, BaseURL: r.Settings.BaseURL}
	}
	return route.Find(r.Routes, s.Turn.Route)
}
