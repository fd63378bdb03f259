package snapshot

import "github.com/belay-run/belay/event"

// routing folds who is asked, why, and what that costs.
func (f *Fold) routing(p event.Payload) {
	r := &f.s.Routing
	switch p := p.(type) {
	case event.TaskProfileResolved:
		r.Profile = &Profile{p.Kind, p.Source, p.Capabilities, p.Fallback}
	case event.RoutingSingleCandidate:
		r.chose(p.Candidate.Route, "single_candidate", p.Reason)
		r.Candidates, r.Excluded, r.Gap = 1, nil, nil
	case event.RoutingCandidatesResolved:
		r.Candidates, r.Excluded, r.Gap = len(p.Candidates), p.Excluded, nil
	case event.RoutingDecided:
		r.chose(p.Route, "decided", p.Reason)
	case event.RoutingFallbackApplied:
		r.chose(p.To, "fallback", p.Reason)
	case event.RoutingNotPossible:
		r.chose(event.Route{}, "not_possible", p.Reason)
		r.Candidates, r.Excluded, r.Gap = 0, p.Excluded, p.Gap
	case event.RateLimitHit:
		r.Limit = &RateLimit{p.Provider, p.Model, p.RetryAt}
	}
}

func (r *Routing) chose(to event.Route, decision, reason string) {
	r.Provider, r.Model, r.Decision, r.Reason = to.Provider, to.Model, decision, cut(reason)
}
