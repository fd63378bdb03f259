package snapshot

import (
	"fmt"
	"testing"

	"github.com/belay-run/belay/event"
)

// What is told of a session's models follows what its log says last.
func TestWhoIsAskedAndWhatItCosts(t *testing.T) {
	a, b := event.Route{Provider: "a", Model: "x"}, event.Route{Provider: "b", Model: "y"}
	left := []event.Excluded{{Route: event.Route{Provider: "c", Model: "z"}, Reason: "credential"}}
	f := New("rt_1", "sess_1")
	for _, step := range []struct {
		p    event.Payload
		want string
	}{
		{event.RoutingSingleCandidate{Candidate: event.Candidate{Route: a}, Reason: "the only one"}, "a/x single_candidate 1 [] [] the only one"},
		{event.RoutingCandidatesResolved{Candidates: []event.Candidate{{Route: a}, {Route: b}}, Excluded: left}, "a/x single_candidate 2 [c/z] [] the only one"},
		{event.RoutingDecided{Route: a, Reason: "the first"}, "a/x decided 2 [c/z] [] the first"},
		{event.RoutingFallbackApplied{From: a, To: b, Reason: "503"}, "b/y fallback 2 [c/z] [] 503"},
		{event.RoutingNotPossible{Reason: "nobody", Gap: []string{"images"}}, "/ not_possible 0 [] [images] nobody"},
	} {
		f.routing(step.p)
		r := f.s.Routing
		out := []string{}
		for _, x := range r.Excluded {
			out = append(out, x.Provider+"/"+x.Model)
		}
		if got := fmt.Sprint(r.Provider, "/", r.Model, " ", r.Decision, " ", r.Candidates, " ", out, " ", r.Gap, " ", r.Reason); got != step.want {
			t.Errorf("%T: got %s, want %s", step.p, got, step.want)
		}
	}
	if c := f.Done(true).Routing.Cost; c.Status != "unknown" {
		t.Errorf("before an answer: %+v", c)
	}
	for _, p := range []event.Payload{event.ModelCompleted{}, event.ModelCompleted{}, event.CostRecorded{Cost: event.Cost{Amount: 5}},
		event.CostRecorded{Cost: event.Cost{Unpriced: true}}, event.CostRecorded{Cost: event.Cost{Amount: 2}, Failed: true}} {
		f.Apply(event.Envelope{Stream: "thread/thr_1", Data: p})
	}
	f.routing(event.RateLimitHit{Provider: "b"})
	if r := f.Done(true).Routing; r.Cost != (CostState{"at_least", 7, 1}) || r.Limit.Provider != "b" {
		t.Errorf("with one of two priced: %+v, %+v", r.Cost, r.Limit)
	}
}
