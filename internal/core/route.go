package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/price"
)

// Which model a turn is sent to is decided by what the turn needs; candidates
// that are excluded are listed with the reason. The same profile and candidates
// give the same decision.

// Candidate is a model that a turn may be sent to, in the order of preference.
type Candidate struct {
	event.Candidate
	BaseURL string `json:"baseUrl,omitempty"` // where the provider is reached; empty: its own address
	Lacks   string `json:"lacks,omitempty"`   // why it can't be used at all: credential, network, policy
	Known   bool   `json:"known,omitempty"`   // its abilities are known; of one that isn't nothing is refused

	MaxOutput int64 `json:"maxOutput,omitempty"` // tokens that it writes at most; 0: not known

	Prices *price.List `json:"prices,omitempty"` // nil: not known
	Factor float64     `json:"factor,omitempty"` // its tokens by those that are counted; 0 is 1
}

// Profile is what a turn needs of a model.
type Profile struct {
	Kind   string   `json:"kind"`             // what the turn is for: work, summary, review
	Source string   `json:"source"`           // its origin: settings, agent, default
	Needs  []string `json:"needs,omitempty"`  // abilities: tools, images, files, structured_output, reasoning
	Priced bool     `json:"priced,omitempty"` // its money is limited, so that only a model with known prices will do
}

// Abilities that attachments need. A model is sent none that it isn't known to take,
// so one of which nothing is known hasn't got them.
const (
	Images = "images"
	Files  = "files"
)

// With is the profile with the needs of the attachments, as far as one of the
// candidates meets them: where none does, the model gets a note instead.
func (p Profile) With(needs []string, all []Candidate) Profile {
	p.Needs = slices.Clone(p.Needs)
	for _, n := range needs {
		able := slices.ContainsFunc(all, func(c Candidate) bool { return p.lacks(&c) == "" && len(c.missing(append(p.Needs, n))) == 0 })
		if able && !slices.Contains(p.Needs, n) {
			p.Needs = append(p.Needs, n)
		}
	}
	return p
}

// routing is the decision. chosen is nil when no candidate qualifies.
type routing struct {
	chosen   *Candidate
	rest     []Candidate // that follow if it fails
	excluded []event.Excluded
	gap      []string // needs that no candidate meets
}

// decide takes the first candidate that has what is needed.
func (p Profile) decide(all []Candidate) (d routing) {
	gaps := map[string]int{}
	for i := range all {
		c := &all[i]
		missing := c.missing(p.Needs)
		switch {
		case p.lacks(c) != "":
			d.excluded = append(d.excluded, event.Excluded{Route: c.Route, Reason: p.lacks(c)})
		case len(missing) > 0:
			d.excluded = append(d.excluded, event.Excluded{Route: c.Route, Reason: "capability: " + strings.Join(missing, ", ")})
			for _, m := range missing {
				gaps[m]++
			}
		case d.chosen == nil:
			d.chosen = c
		default:
			d.rest = append(d.rest, *c)
		}
	}
	for _, n := range p.Needs {
		if gaps[n] == len(all) { // so none is chosen
			d.gap = append(d.gap, n)
		}
	}
	return d
}

// lacks is why a candidate can't be used whatever it is able to do; empty if it can.
func (p Profile) lacks(c *Candidate) string {
	if c.Lacks == "" && p.Priced && c.Prices == nil {
		return "price"
	}
	return c.Lacks
}

// missing are the needs that the candidate doesn't meet.
func (c *Candidate) missing(needs []string) []string {
	var out []string
	for _, n := range needs {
		if (c.Known || n == Images || n == Files) && !slices.Contains(c.Capabilities, n) {
			out = append(out, n)
		}
	}
	return out
}

// Facts are the decision as the log has it.
func (p Profile) Facts(candidates []Candidate) []event.Payload {
	d := p.decide(candidates)
	out := []event.Payload{event.TaskProfileResolved{Kind: cmp.Or(p.Kind, "work"), Source: cmp.Or(p.Source, "default"), Capabilities: p.Needs, Fallback: fallbackWord(candidates)}}
	switch {
	case len(d.excluded) == 0 && d.chosen == nil:
		return append(out, event.RoutingNotPossible{Reason: "no model is set", Gap: d.gap})
	case d.chosen == nil:
		return append(out, event.RoutingNotPossible{Reason: "none of the models can be used: " + d.excludedText(), Gap: d.gap, Excluded: d.excluded})
	case len(candidates) == 1:
		return append(out, event.RoutingSingleCandidate{Candidate: d.chosen.Candidate, Reason: "it is the only one that is set"})
	}
	set := event.RoutingCandidatesResolved{Candidates: []event.Candidate{d.chosen.Candidate}, Excluded: d.excluded}
	decided := event.RoutingDecided{Route: d.chosen.Route, Address: d.chosen.Address, Mode: "preferred", Source: "user", Reason: "it is the first that was named"}
	for _, c := range d.rest {
		set.Candidates = append(set.Candidates, c.Candidate)
		decided.Fallbacks = append(decided.Fallbacks, c.Route)
	}
	if first := candidates[0].Route; first != d.chosen.Route {
		decided.Requested, decided.Reason = &first, "those named before it can't be used: "+d.excludedText()
	}
	return append(out, set, decided)
}

func fallbackWord(candidates []Candidate) string {
	switch {
	case len(candidates) < 2:
		return "none"
	case slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Provider != candidates[0].Provider }):
		return "any"
	}
	return "same_provider"
}

func (d routing) excludedText() string {
	var list []string
	for _, e := range d.excluded {
		list = append(list, e.Provider+"/"+e.Model+" ("+e.Reason+")")
	}
	return strings.Join(list, ", ")
}

// Next is the candidate to try after some that failed: the first of those that
// fit and weren't tried. After an overflow only one that is known to read more
// helps.
func (p Profile) Next(all []Candidate, tried []event.Route, overflow bool) (c Candidate, left int, ok bool) {
	d := p.decide(all)
	if d.chosen == nil {
		return Candidate{}, 0, false
	}
	var most int64
	for _, t := range tried {
		most = max(most, CandidateOf(all, t).Context)
	}
	rest := slices.DeleteFunc(append([]Candidate{*d.chosen}, d.rest...), func(c Candidate) bool {
		return slices.Contains(tried, c.Route) || overflow && c.Context <= most
	})
	if len(rest) == 0 {
		return Candidate{}, 0, false
	}
	return rest[0], len(rest) - 1, true
}

// CandidateOf is the candidate of a route; one that isn't among them has only its name.
func CandidateOf(all []Candidate, r event.Route) Candidate {
	if i := slices.IndexFunc(all, func(c Candidate) bool { return c.Route == r }); i >= 0 {
		return all[i]
	}
	return Candidate{Candidate: event.Candidate{Route: r}}
}
