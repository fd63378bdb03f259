package policy

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Bounds of checkers.
const (
	maxCheckers       = 50
	maxCheckerTimeout = 5 * time.Minute
	checkerTimeout    = 10 * time.Second
)

// Limit is how long the checker may take.
func (c *Checker) Limit() time.Duration {
	if c.Timeout > 0 {
		return time.Duration(c.Timeout)
	}
	return checkerTimeout
}

// Fails is the verdict when the checker gives none.
func (c *Checker) Fails() Decision { return cmp.Or(c.OnError, Deny) }

// checker checks one checker.
func (s *Set) checker(c Checker) error {
	where := "checker " + short(c.ID)
	given := 0
	for _, set := range []bool{c.Name != "", len(c.Argv) > 0, c.URL != ""} {
		if set {
			given++
		}
	}
	want := map[string]bool{"builtin": c.Name != "", "process": len(c.Argv) > 0, "http": c.URL != ""}
	switch {
	case !idForm.MatchString(c.ID):
		return bad("%q is no id of a checker", short(c.ID)).At(where)
	case slices.ContainsFunc(s.checkers, func(o checker) bool { return o.ID == c.ID }):
		return bad("two checkers have this id").At(where).WithHint("rename one of them")
	case !want[c.Kind] || given != 1:
		return bad("the kind %q doesn't fit: builtin has a name, process an argv, http a url", short(c.Kind)).At(where)
	case c.Timeout < 0 || time.Duration(c.Timeout) > maxCheckerTimeout:
		return bad("its timeout is more than %s", maxCheckerTimeout).At(where)
	case rank(c.OnError) == 0 && c.OnError != "":
		return bad("on_error %q is none of allow, ask, deny", short(string(c.OnError))).At(where)
	case c.OnError == Allow && (c.Tier == TierWorkspace || c.Tier == TierAgent):
		return bad("a checker of the tier %s can't fail open", c.Tier).At(where).WithHint("on_error: ask, or deny")
	}
	r := &Rule{ID: c.ID, Tier: c.Tier, Match: c.When, Verdict: Ask}
	ready, err := s.ready(r, &conditions{})
	if err != nil {
		return err.At(where)
	}
	s.checkers = append(s.checkers, checker{c, ready})
	return nil
}

// checker is a Checker made ready.
type checker struct {
	Checker
	when rule
}

// Checkers are those that judge a call, in the order of the document.
func (s *Set) Checkers(r Request) []Checker {
	if s == nil || len(s.checkers) == 0 || r.Tool.Handled != "" {
		return nil
	}
	var out []Checker
	subjects := subjectsOf(&r)
	for i := range s.checkers {
		c := &s.checkers[i]
		if slices.ContainsFunc(subjects, func(sub subject) bool { return c.when.speaks(&r, &sub) }) {
			out = append(out, c.Checker)
		}
	}
	return out
}

// checks tells whether a checker may judge calls of a tool.
func (s *Set) checks(t belay.ToolSpec) bool {
	return t.Handled == "" && slices.ContainsFunc(s.checkers, func(c checker) bool { return c.when.forTool(strings.ToLower(t.Name)) })
}

// With joins a verdict with what a checker said: the stricter one counts.
func (v Verdict) With(c Checker, d Decision, code, reason string) Verdict {
	hit := Hit{Rule: "checker/" + c.ID, Tier: cmp.Or(c.Tier, TierDefault), Decision: d}
	v.Matched = append(slices.Clone(v.Matched), hit)
	if rank(d) > rank(v.Decision) {
		v.Decision, v.Source, v.Rule, v.Tier, v.Priority = d, "checker", hit.Rule, hit.Tier, 0
		v.ReasonCode, v.Reason, v.Hint = cmp.Or(code, "CHECKER"), reason, ""
		v.Tags = union(v.Tags, []string{"safety:" + c.ID})
	}
	lose(&v)
	return v
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a text can always be written
	return string(b)
}
