package simulate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// Why no rule is suggested for a question.
const (
	UnfitTaint       = "taint"          // content from outside is in the conversation
	UnfitDestructive = "destructive"    // it can destroy something
	UnfitEscape      = "escape-attempt" // it could leave its boundary
	UnfitUnparsable  = "unparsable"     // what it does can't be determined
	UnfitSecret      = "secret"         // it reads a secret
	UnfitOutside     = "outside"        // it touches files outside the workspace
	UnfitRerun       = "rerun"          // the same call was lost before
	UnfitOther       = "other"          // no rule of the user's can say less than too much about it
)

// unfit is why no rule is suggested for what a call asks; empty when one may be.
func unfit(v policy.Verdict, r *policy.Request) string {
	foreign := func(t policy.Taint) bool { return t.Kind != policy.TaintWorkspace }
	switch {
	case slices.Contains(v.Tags, "taint") || slices.ContainsFunc(r.Taint, foreign):
		return UnfitTaint
	case slices.Contains(v.Tags, policy.TagSecret):
		return UnfitSecret
	case r.Rerun:
		return UnfitRerun
	case r.Tool.Command == nil && r.Tool.Destructive:
		return UnfitDestructive
	case slices.ContainsFunc(r.Paths, func(p string) bool { return !policy.Inside(p) }):
		return UnfitOutside
	}
	worst := ""
	for _, c := range r.Commands {
		switch c.Class {
		case policy.ReadOnly, policy.WriteWorkspace, policy.Network:
		case policy.Destructive:
			worst = cmp.Or(worst, UnfitDestructive)
		case policy.EscapeAttempt:
			worst = UnfitEscape
		default:
			return UnfitUnparsable
		}
	}
	return worst
}

// AskStats counts the recorded calls that a set asks about, by the rule that would
// spare the question. Take every decision, then Suggest.
type AskStats struct {
	Decisions int            `json:"decisions"`
	Asked     int            `json:"asked"`           // by the set, as of now
	Unfit     map[string]int `json:"unfit,omitempty"` // asks for which nothing is suggested, by reason
	Lost      int            `json:"lost,omitempty"`  // decisions that can't be judged again
	Others    int            `json:"others,omitempty"`
	wishes    map[string]*wish
}

type wish struct {
	draft
	count int
}

// maxWishes bounds what is counted by rule; questions beyond are in Others.
const maxWishes = 20_000

// now is a call as the gate would ask a person about it.
func now(c *Case) policy.Request {
	r := c.Request
	r.Headless = false
	return r
}

// Take counts a recorded decision.
func (a *AskStats) Take(c *Case, set *policy.Set) {
	a.Decisions++
	if c.Lost != "" {
		a.Lost++
		return
	}
	r := now(c)
	v := policy.Evaluate(set, &r)
	if v.Decision != policy.Ask {
		return
	}
	a.Asked++
	why := unfit(v, &r)
	var rules []draft
	if why == "" {
		if rules = drafts(v, r, policy.Allow); len(rules) == 0 || len(rules) > maxDrafts {
			why = UnfitOther
		}
	}
	if why != "" {
		if a.Unfit == nil {
			a.Unfit = map[string]int{}
		}
		a.Unfit[why]++
		return
	}
	for _, rule := range rules {
		a.wish(rule)
	}
}

func (a *AskStats) wish(d draft) {
	key, err := json.Marshal([]any{d.Match, d.on, d.also})
	if err != nil {
		return // a draft holds nothing that JSON can't
	}
	if a.wishes == nil {
		a.wishes = map[string]*wish{}
	}
	w := a.wishes[string(key)]
	switch {
	case w == nil && len(a.wishes) >= maxWishes:
		a.Others++
		return
	case w == nil:
		w = &wish{draft: d}
		a.wishes[string(key)] = w
	}
	if d.on != "" && !slices.Contains(w.is, d.is[0]) {
		if size := len(strings.Join(w.is, "")) + len(d.is[0]); len(w.is) >= maxValues || size > maxWritten {
			a.Others++
			return
		}
		w.is = append(w.is, d.is[0])
	}
	w.count++
	for _, e := range d.Examples.Match {
		if ex := &w.Examples; len(ex.Match) < maxShown && !slices.ContainsFunc(ex.Match, func(o policy.Example) bool { return o.String() == e.String() }) {
			ex.Match = append(ex.Match, e)
		}
	}
}

// Bounds of the calls that a suggested rule names: how many, and their bytes.
const (
	maxValues  = 20
	maxWritten = 1_500
)

// maxShown is how many examples a suggested rule has at most.
const maxShown = 3

// Suggestion is a rule that would have spared questions, and its blast radius:
// everything recorded that it speaks of.
type Suggestion struct {
	Rule     policy.Rule `json:"rule"`
	Spared   int         `json:"spared"`   // calls that are asked about, and would be allowed
	Matched  int         `json:"matched"`  // calls that it speaks of
	Allowed  int         `json:"allowed"`  // of these, allowed already
	Asked    int         `json:"asked"`    // of these, still asked about
	Denied   int         `json:"denied"`   // of these, denied as before
	Sessions int         `json:"sessions"` // with calls that it speaks of
	Seen     []string    `json:"seen"`     // different commands or files of them, at most ten
	More     int         `json:"more"`     // different ones besides
	Examples int         `json:"examples"` // that were tried and hold

	name     string
	with     map[*policy.Set]*policy.Set // the sets that calls are judged by, with the rule
	unsafe   bool
	seen     map[string]bool
	sessions map[belay.SessionID]bool
}

// Bounds of what a suggestion remembers of the calls that it speaks of.
const (
	shownSeen = 10
	maxSeen   = 5_000
)

// Suggest makes rules of the most frequent questions, at least least times each
// and at most most of them. Each is to Take every decision again, which gives it
// its blast radius; Sound then selects those to show.
func (a *AskStats) Suggest(set *policy.Set, least, most int) []*Suggestion {
	var often []*wish
	for _, w := range a.wishes {
		if w.count >= least {
			often = append(often, w)
		}
	}
	slices.SortFunc(often, func(x, y *wish) int {
		return cmp.Or(cmp.Compare(y.count, x.count), strings.Compare(x.ID, y.ID), strings.Compare(x.Reason, y.Reason), slices.Compare(x.is, y.is))
	})
	var out []*Suggestion
	var taken []policy.Rule
	for _, w := range often[:min(len(often), 2*most)] {
		rule := w.rule()
		rule.ID = fresh(set, taken, rule.ID)
		proven(&rule)
		with, err := add(set, rule)
		if err != nil {
			continue
		}
		taken = append(taken, rule)
		out = append(out, &Suggestion{Rule: rule, Examples: len(rule.Examples.Match), name: rule.Name(), with: map[*policy.Set]*policy.Set{set: with}, seen: map[string]bool{}, sessions: map[belay.SessionID]bool{}})
	}
	return out
}

// Take holds a recorded decision against the suggestion. set is what the call is
// judged by without it.
func (s *Suggestion) Take(c *Case, set *policy.Set) {
	if c.Lost != "" {
		return
	}
	with := s.withOf(set)
	r := now(c)
	if with == nil || !with.Speaks(s.name, &r) && !s.part(with, r) {
		return
	}
	before, after := policy.Evaluate(set, &r), policy.Evaluate(with, &r)
	s.Matched++
	s.remember(c)
	switch {
	case after.Decision == policy.Deny:
		s.Denied++
	case before.Decision == policy.Allow:
		s.Allowed++
	case after.Decision == policy.Ask:
		s.Asked++
	default:
		s.Spared++
		s.unsafe = s.unsafe || unfit(before, &r) != ""
	}
}

// withOf is a set with the rule, made once for each; nil when the rule doesn't go
// with it, which makes it no suggestion.
func (s *Suggestion) withOf(set *policy.Set) *policy.Set {
	with, made := s.with[set]
	if !made {
		var err error
		if with, err = add(set, s.Rule); err != nil {
			with, s.unsafe = nil, true
		}
		s.with[set] = with
	}
	return with
}

// part reports whether the rule speaks of a command of a line, not of all.
func (s *Suggestion) part(with *policy.Set, r policy.Request) bool {
	return len(r.Commands) > 1 && slices.ContainsFunc(with.Consider(&r), func(c policy.RuleTrace) bool { return c.Rule == s.name && c.Misses == "" })
}

func (s *Suggestion) remember(c *Case) {
	if !s.sessions[c.IDs.Session] && len(s.sessions) < maxSeen {
		s.sessions[c.IDs.Session] = true
		s.Sessions = len(s.sessions)
	}
	what := About(c.Request)
	if s.seen[what] || len(s.seen) >= maxSeen {
		return
	}
	s.seen[what] = true
	if len(s.Seen) < shownSeen {
		s.Seen = append(s.Seen, what)
		return
	}
	s.More++
}

// Sound are the suggestions that spare at least least questions and, of all that
// was recorded, allow nothing that taint, a destructive command or an attempt to
// escape made the gate ask about; at most most, the most useful first.
func Sound(all []*Suggestion, least, most int) []*Suggestion {
	var out []*Suggestion
	for _, s := range all {
		if !s.unsafe && s.Spared >= least {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *Suggestion) int { return cmp.Compare(b.Spared, a.Spared) })
	return out[:min(len(out), most)]
}

// About is what a call is about, in a few words: its command line, its files, or
// nothing.
func About(r policy.Request) string {
	const most = 120
	words := slices.Clone(r.Paths)
	for _, c := range r.Commands {
		words = append(words, strings.TrimSpace(c.Name+" "+strings.Join(c.Args, " "))+";")
	}
	text := strings.TrimSuffix(strings.Join(words, " "), ";")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// UnfitWords are the reasons for which no rule is suggested.
var UnfitWords = map[string]string{
	UnfitTaint: "content from outside was in the conversation", UnfitDestructive: "they can destroy something", UnfitEscape: "they could leave their boundary",
	UnfitUnparsable: "what they do can't be determined", UnfitSecret: "they read a secret", UnfitOutside: "they touch files outside the workspace",
	UnfitRerun: "the same call was lost before", UnfitOther: "no narrow rule can speak of them",
}
