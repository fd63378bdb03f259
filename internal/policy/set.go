package policy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Bounds of a document. A rule that is longer than this isn't written by hand.
const (
	MaxRules   = 20_000
	maxGroups  = 1_000
	maxCaps    = 1_000
	maxEntries = 1_000  // of one list of a rule
	maxText    = 2_000  // bytes of a reason, a pattern, an expression
	maxInside  = 10_000 // instructions of a regular expression
)

// Set is rules made ready: checked, and in order. It never changes.
type Set struct {
	doc      Document
	digest   belay.Digest
	rules    []rule // the strongest voice first
	groups   map[string][]string
	modes    map[belay.Mode]bool // that a rule of the default tier or an admin's speaks of
	checkers []checker
}

// rule is a Rule made ready.
type rule struct {
	*Rule
	name     string
	tier     int
	patterns []string // of tools, in lower case, groups written out; nil holds for every tool
	literal  []string // of those the ones without *
	not      []string // excluded tools, as patterns
	args     []argument
	program  *regexp.Regexp
	globs    []glob
	hosts    []string
	cond     *condition
	sees     sees
	network  bool // the boundary that it gives has one
}

// sees is which of the things that a plain allow doesn't cover a rule names.
type sees struct{ unparsable, escape, egress, secret, keys bool }

// Compile checks a document and makes it ready. An error is a *belay.Error with
// the rule's place.
func Compile(d Document) (*Set, error) {
	s, err := prepare(d)
	if err != nil {
		return nil, err
	}
	if err := s.tried(); err != nil {
		return nil, err
	}
	return s, nil
}

// prepare is Compile without the examples.
func prepare(d Document) (*Set, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadPolicy, "the rules can't be written as JSON: %v", err)
	}
	if d.Version > FormatVersion {
		return nil, belay.Errorf(belay.CodePolicyNewer, "the rules are of version %d; this build reads %d", d.Version, FormatVersion).WithHint("update belay, or write them in the older form")
	}
	switch {
	case len(d.Rules) > MaxRules:
		return nil, belay.Errorf(belay.CodeBadPolicy, "there are %d rules; %d are the most", len(d.Rules), MaxRules).WithHint("put tools into groups, and use patterns")
	case len(d.Groups) > maxGroups || len(d.Caps) > maxCaps || len(d.OwnerOnly) > maxEntries || len(d.Checkers) > maxCheckers:
		return nil, belay.Errorf(belay.CodeBadPolicy, "there are too many groups, caps, owner's tools or checkers").WithHint("at most %d, %d, %d, %d", maxGroups, maxCaps, maxEntries, maxCheckers)
	}
	s := &Set{doc: d, digest: belay.DigestOf(raw), groups: map[string][]string{}, modes: map[belay.Mode]bool{}}
	for _, g := range d.Groups {
		name := strings.ToLower(g.Name)
		s.groups[name] = append(s.groups[name], lower(g.Tools)...)
	}
	if err := s.compile(); err != nil {
		return nil, err
	}
	for _, c := range d.Checkers {
		if err := s.checker(c); err != nil {
			return nil, err
		}
	}
	s.permit()
	return s, nil
}

// Document is what the set was made of. It must not be changed.
func (s *Set) Document() *Document { return &s.doc }

// Digest names the set: it is that of its document's JSON.
func (s *Set) Digest() belay.Digest { return s.digest }

// Encode is the document as it is kept.
func (s *Set) Encode() ([]byte, error) { return json.Marshal(s.doc) }

// Decode reads what Encode wrote and makes it ready.
func Decode(raw []byte) (*Set, error) {
	var d Document
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, belay.Errorf(belay.CodeBadPolicy, "the rules can't be read: %v", err)
	}
	return Compile(d)
}

// permit notes what modes there are rules for.
func (s *Set) permit() {
	for i := range s.rules {
		r := &s.rules[i]
		if r.tier == 0 && r.Verdict != Deny || r.Tier == TierAdmin && r.Verdict == Allow {
			for _, m := range r.Mode {
				if m != belay.ModeBypass || r.Tier == TierAdmin {
					s.modes[m] = true
				}
			}
		}
	}
}

// Permits reports whether a mode has rules: bypass only has if an administrator
// permits it.
func (s *Set) Permits(m belay.Mode) bool { return s.modes[m] }

// NeedsArgs reports whether judging a call of a tool looks at its arguments.
func (s *Set) NeedsArgs(t belay.ToolSpec) bool {
	if t.Command != nil || t.HostArg != "" {
		return true
	}
	return s.checks(t) || slices.ContainsFunc(s.about(strings.ToLower(t.Name)), func(r *rule) bool { return len(r.args) > 0 || r.cond != nil })
}

// about are the rules that speak of a tool, in lower case, the strongest voice first.
func (s *Set) about(tool string) (out []*rule) {
	for i := range s.rules {
		if r := &s.rules[i]; r.forTool(tool) {
			out = append(out, r)
		}
	}
	return out
}

// forTool reports whether a rule speaks of a tool, in lower case.
func (c *rule) forTool(tool string) bool {
	if c.not != nil && slices.ContainsFunc(c.not, func(p string) bool { return like(p, tool) }) {
		return false
	}
	return c.patterns == nil || slices.ContainsFunc(c.patterns, func(p string) bool { return like(p, tool) })
}
