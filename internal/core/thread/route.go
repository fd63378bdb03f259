package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// longWait is a wait that another model is better than.
const longWait = 20 * time.Second

// A turn may have so many failed requests: some, and one for so many steps. A
// provider that fails now and then is lived with, one that fails all the time
// isn't paid for.
const (
	failuresFree     = 20
	stepsPerFailure  = 5
	mostLost         = 8 << 20 // bytes of text, of all that failed
	circuitOpen      = "CIRCUIT_OPEN"
	classOverflow    = "overflow"
	classRefused     = "refused"
	classRateLimited = "rate_limited"
)

// choose sends the turn to a model, where there are several, and when a turn
// continues under other rules.
func choose(d *decision) bool {
	t := d.Turn
	switch {
	case t.NoRoute != "":
		d.fail(belay.Failed, "NO_ROUTE", t.NoRoute)
		return true
	case t.Route.Provider == "" && len(d.rules.Routes) > 0:
		d.record(d.rules.routing(d.ids(), t.Task, t.needs())...)
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
		return core.Images
	case a.Ref.Media != "" && !strings.HasPrefix(a.Ref.Media, "text/"):
		return core.Files
	}
	return ""
}

// Candidate is the model of a route. Rules of earlier builds don't say where a model is
// reached that isn't the session's own: one of the same provider is reached where that is.
func (r *Rules) Candidate(route event.Route) core.Candidate {
	c := core.CandidateOf(slices.Concat(r.Routes, r.Reviewers), route)
	if c.Provider == r.Settings.Provider {
		c.BaseURL = cmp.Or(c.BaseURL, r.Settings.BaseURL)
	}
	return c
}

// routing are the facts of the choice among the rules' candidates.
func (r *Rules) routing(ids belay.IDs, task belay.TaskID, needs []string) []core.Fact {
	if len(r.Routes) == 0 {
		return nil
	}
	var out []core.Fact
	for _, p := range r.Profile.With(needs, r.Routes).Facts(r.Routes) {
		f := core.Fact{IDs: ids, Data: p}
		if _, ofTask := p.(event.TaskProfileResolved); ofTask {
			if task == "" {
				continue // a turn without a task has no profile
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
			st.Phase, st.Problem, st.Failures, st.RetryAt = stepOpen, nil, 0, time.Time{}
		}
	}
}

// givesUp reports whether the route of a request that failed is of no more use.
func (d *decision) givesUp() bool {
	t := d.Turn
	p := t.Step.Problem
	if !p.Retryable || t.Step.Failures >= maxModelFailures || t.spent() {
		return true
	}
	return p.Code == circuitOpen || p.Class == classRateLimited && t.Step.RetryAt.Sub(d.now) > longWait
}

// spent reports whether the turn's budget of failed requests is used up, by their number or
// by what they left in the store.
func (t *Turn) spent() bool {
	return t.Failed >= failuresFree+t.Steps/stepsPerFailure || t.Lost >= mostLost
}

// fallback sends a request that failed to the next model of the chain, if one
// could do better. What a model refuses isn't taken to another one.
func (d *decision) fallback() bool {
	t := d.Turn
	p := t.Step.Problem
	return p.Class != classRefused && !t.spent() && d.moveOn(p.Class == classOverflow, fmt.Sprintf("%s: %s", p.Code, event.CutText(p.Message, 300)))
}

// moveOn sends requests to the next model of the chain, if there is one; larger means
// that it must read more.
func (d *decision) moveOn(larger bool, reason string) bool {
	t := d.Turn
	if len(d.rules.Routes) < 2 {
		return false
	}
	to, left, ok := d.rules.Profile.With(t.needs(), d.rules.Routes).Next(d.rules.Routes, append(t.Tried[:len(t.Tried):len(t.Tried)], t.Route), larger)
	if ok {
		d.record(d.fact(event.RoutingFallbackApplied{From: t.Route, To: to.Route, Address: to.Address, Left: left, Reason: reason}))
	}
	return ok
}

// failedForGood ends a turn whose request failed on every route.
func (d *decision) failedForGood() {
	st := d.Turn.Step
	if st.Problem.Retryable && d.Turn.spent() {
		left := ""
		if d.Turn.Lost >= mostLost {
			left = fmt.Sprintf(" and left %d MB of text", d.Turn.Lost>>20)
		}
		d.fail(belay.Failed, "RETRY_BUDGET", fmt.Sprintf("%d requests of this turn have failed%s; the last: %s", d.Turn.Failed, left, st.Problem.Message))
		return
	}
	if st.Problem.Class == classOverflow {
		d.fail(belay.Failed, "CONTEXT_FULL", "the conversation doesn't fit into what "+cmp.Or(d.to().Model, "the model")+" reads, and could not be made shorter: "+st.Problem.Message)
		return
	}
	d.fail(belay.Failed, "MODEL_FAILED", st.Problem.Message)
}

// cost is what the turn's answers cost so far; empty when no price is known.
func (t *Turn) cost() event.CostSum {
	c := t.Cost
	if c.Priced > 0 {
		c.Unpriced = t.Answers - c.Priced
	}
	return c
}

// to is where the turn's requests go, with the context that its model is known to have.
func (d *decision) to() core.Candidate {
	c := core.Candidate{Candidate: event.Candidate{Route: event.Route{Provider: d.rules.Settings.Provider, Model: d.rules.Settings.Model}}, BaseURL: d.rules.Settings.BaseURL}
	switch {
	case d.Turn == nil && len(d.rules.Routes) > 0: // a compaction that no turn waits for
		c = d.rules.Routes[0]
	case d.Turn != nil && d.Turn.Route.Provider != "":
		c = d.rules.Candidate(d.Turn.Route)
	}
	c.Context = d.Counts.contextOf(c)
	return c
}
