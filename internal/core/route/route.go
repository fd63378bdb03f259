// Package route decides which model a turn is sent to. Every candidate is judged
// by what the turn needs; excluded ones are listed with the reason. The same
// profile and candidates give the same decision.
package route

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay/event"
)

// Candidate is a model that a turn may be sent to, in the order of preference.
type Candidate struct {
	event.Candidate
	BaseURL string `json:"baseUrl,omitempty"` // where the provider is reached; empty: its own address
	Lacks   string `json:"lacks,omitempty"`   // why it can't be used at all: credential, network, policy
	Known   bool   `json:"known,omitempty"`   // its abilities are known; of one that isn't nothing is refused
}

// Profile is what a turn needs of a model.
type Profile struct {
	Kind   string   `json:"kind"`            // what the turn is for: work, summary, review
	Source string   `json:"source"`          // its origin: settings, agent, default
	Needs  []string `json:"needs,omitempty"` // abilities: tools, images, files, structured_output, reasoning
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
		able := slices.ContainsFunc(all, func(c Candidate) bool { return c.Lacks == "" && len(c.missing(append(p.Needs, n))) == 0 })
		if able && !slices.Contains(p.Needs, n) {
			p.Needs = append(p.Needs, n)
		}
	}
	return p
}

// Decision is the result. Chosen is nil when no candidate qualifies.
type Decision struct {
	Chosen   *Candidate
	Rest     []Candidate // that follow if it fails
	Excluded []event.Excluded
	Gap      []string // needs that no candidate meets
}

// Decide takes the first candidate that has what is needed.
func Decide(p Profile, all []Candidate) Decision {
	var d Decision
	gaps := map[string]int{}
	for i := range all {
		c := &all[i]
		missing := c.missing(p.Needs)
		switch {
		case c.Lacks != "":
			d.Excluded = append(d.Excluded, event.Excluded{Route: c.Route, Reason: c.Lacks})
		case len(missing) > 0:
			d.Excluded = append(d.Excluded, event.Excluded{Route: c.Route, Reason: "capability: " + strings.Join(missing, ", ")})
			for _, m := range missing {
				gaps[m]++
			}
		case d.Chosen == nil:
			d.Chosen = c
		default:
			d.Rest = append(d.Rest, *c)
		}
	}
	if d.Chosen == nil {
		for _, n := range p.Needs {
			if gaps[n] == len(all) {
				d.Gap = append(d.Gap, n)
			}
		}
	}
	return d
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

// Facts are a decision as the log has it. requested is what a person asked for
// by name, or nil.
func (d Decision) Facts(p Profile, candidates []Candidate, mode, source string) []event.Payload {
	out := []event.Payload{event.TaskProfileResolved{Kind: cmp.Or(p.Kind, "work"), Source: cmp.Or(p.Source, "default"), Capabilities: p.Needs, Fallback: fallbackWord(candidates)}}
	switch {
	case d.Chosen == nil:
		return append(out, event.RoutingNotPossible{Reason: d.why(), Gap: d.Gap, Excluded: d.Excluded})
	case len(candidates) == 1:
		return append(out, event.RoutingSingleCandidate{Candidate: d.Chosen.Candidate, Reason: "it is the only one that is set"})
	}
	set := event.RoutingCandidatesResolved{Candidates: []event.Candidate{d.Chosen.Candidate}, Excluded: d.Excluded}
	decided := event.RoutingDecided{Route: d.Chosen.Route, Mode: mode, Source: source, Reason: d.reason(candidates)}
	for _, c := range d.Rest {
		set.Candidates = append(set.Candidates, c.Candidate)
		decided.Fallbacks = append(decided.Fallbacks, c.Route)
	}
	if first := candidates[0].Route; first != d.Chosen.Route {
		decided.Requested = &first
	}
	return append(out, set, decided)
}

func fallbackWord(candidates []Candidate) string {
	if len(candidates) < 2 {
		return "none"
	}
	for _, c := range candidates[1:] {
		if c.Provider != candidates[0].Provider {
			return "any"
		}
	}
	return "same_provider"
}

// reason returns why the chosen one was chosen.
func (d Decision) reason(candidates []Candidate) string {
	if candidates[0].Route == d.Chosen.Route {
		return "it is the first that was named"
	}
	return "those named before it can't be used: " + d.excludedText()
}

func (d Decision) why() string {
	if len(d.Excluded) == 0 {
		return "no model is set"
	}
	return "none of the models can be used: " + d.excludedText()
}

func (d Decision) excludedText() string {
	var list []string
	for _, e := range d.Excluded {
		list = append(list, e.Provider+"/"+e.Model+" ("+e.Reason+")")
	}
	return strings.Join(list, ", ")
}

// Next is the candidate to try after one that failed: the first of those that
// fit and weren't tried. After an overflow only one that is known to read more
// helps.
func Next(p Profile, all []Candidate, tried []event.Route, overflow bool) (c Candidate, left int, ok bool) {
	d := Decide(p, all)
	if d.Chosen == nil {
		return Candidate{}, 0, false
	}
	var most int64
	for _, t := range tried {
		most = max(most, Find(all, t).Context)
	}
	var rest []Candidate
	for _, c := range append([]Candidate{*d.Chosen}, d.Rest...) {
		if !slices.Contains(tried, c.Route) && (!overflow || c.Context > most) {
			rest = append(rest, c)
		}
	}
	if len(rest) == 0 {
		return Candidate{}, 0, false
	}
	return rest[0], len(rest) - 1, true
}

// Find is the candidate of a route; one that isn't among them has only its name.
func Find(all []Candidate, r event.Route) Candidate {
	for _, c := range all {
		if c.Route == r {
			return c
		}
	}
	return Candidate{Candidate: event.Candidate{Route: r}}
}
