package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

// Bounds of checkers.
const (
	maxCheckers       = 50
	maxCheckerTimeout = 5 * time.Minute
	checkerTimeout    = 10 * time.Second
	modelTimeout      = 30 * time.Second
	maxInstructions   = 8 << 10
)

// Limit is how long the checker may take.
func (c *Checker) Limit() time.Duration {
	if c.Timeout > 0 {
		return time.Duration(c.Timeout)
	}
	if c.Kind == "model" {
		return modelTimeout
	}
	return checkerTimeout
}

// Fails is the verdict when the checker gives none.
func (c *Checker) Fails() Decision { return cmp.Or(c.OnError, Deny) }

// checker checks one checker.
func (s *Set) checker(c Checker) error {
	where := "checker " + short(c.ID)
	given := 0
	asks := c.Provider + c.Model + c.Instructions
	for _, set := range []bool{c.Name != "", len(c.Argv) > 0, c.URL != "", asks != ""} {
		if set {
			given++
		}
	}
	want := map[string]bool{"builtin": c.Name != "", "process": len(c.Argv) > 0, "http": c.URL != "", "model": asks != ""}
	switch {
	case !idForm.Get().MatchString(c.ID):
		return bad("%q is no id of a checker", short(c.ID)).At(where)
	case slices.ContainsFunc(s.checkers, func(o checker) bool { return o.ID == c.ID }):
		return bad("two checkers have this id").At(where).WithHint("rename one of them")
	case !want[c.Kind] || given != 1:
		return bad("the kind %q doesn't fit: builtin has a name, process an argv, http a url, model a provider, a model and instructions", short(c.Kind)).At(where)
	case c.Kind == "model" && (c.Provider == "" || c.Model == "" || strings.TrimSpace(c.Instructions) == ""):
		return bad("a model that judges calls needs a provider, a model and instructions").At(where).WithHint("instructions: say what to ask about and what to deny")
	case len(c.Instructions) > maxInstructions:
		return bad("its instructions have %d bytes; %d are the most", len(c.Instructions), maxInstructions).At(where)
	case c.Kind == "model" && c.OnError == Allow:
		return bad("a model that judges calls can't fail open").At(where).WithHint("on_error: ask, or deny")
	case c.Kind == "builtin" && builtinCheckers[c.Name] == nil:
		return bad("there is no built-in checker %q", short(c.Name)).At(where).WithHint("secret-forms, hidden-text")
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
func (s *Set) Checkers(r *Request) []Checker {
	if s == nil || len(s.checkers) == 0 || r.Tool.Handled != "" {
		return nil
	}
	var out []Checker
	r = s.asConfined(r)
	subjects := subjectsOf(r)
	for i := range s.checkers {
		c := &s.checkers[i]
		if c.when.speaks(r, subjects) {
			out = append(out, c.Checker)
		}
	}
	return out
}

// Reviewers are the checkers that are models.
func (s *Set) Reviewers() (all []Checker) {
	for i := 0; s != nil && i < len(s.checkers); i++ {
		if c := s.checkers[i].Checker; c.Kind == "model" {
			all = append(all, c)
		}
	}
	return all
}

// HasCheckers reports whether any checker may have to be asked about a call.
func (s *Set) HasCheckers() bool { return s != nil && len(s.checkers) > 0 }

// Wants are the checkers that have to be asked about a call before it has its
// verdict, besides the built-in ones: none, when it is denied without them.
func (s *Set) Wants(r *Request) []Checker {
	asked := s.Checkers(r)
	asked = slices.DeleteFunc(asked, func(c Checker) bool { return c.Kind == "builtin" })
	if len(asked) == 0 {
		return nil
	}
	allowed := *r
	allowed.Checks = nil
	for _, c := range asked {
		allowed.Checks = append(allowed.Checks, Check{ID: c.ID, Decision: Allow})
	}
	if Evaluate(s, &allowed).Decision == Deny {
		return nil
	}
	return asked
}

// checked joins a verdict with what checkers said. One that said nothing counts
// like one that failed.
func (s *Set) checked(v *Verdict, r *Request) {
	r = s.asConfined(r)
	for _, c := range s.Checkers(r) {
		if c.Kind == "builtin" {
			if d, reason := builtinCheckers[c.Name](r); d != Allow {
				v.join(c, d, "", reason)
			}
			continue
		}
		i := slices.IndexFunc(r.Checks, func(k Check) bool { return k.ID == c.ID })
		switch {
		case i < 0:
			v.join(c, c.Fails(), "CHECKER_FAILED", "checker "+c.ID+" wasn't asked")
		case r.Checks[i].Failed:
			v.join(c, c.Fails(), "CHECKER_FAILED", "checker "+c.ID+" gave no verdict: "+r.Checks[i].Reason)
		default:
			v.join(c, r.Checks[i].Decision, r.Checks[i].Code, cmp.Or(r.Checks[i].Reason, "checker "+c.ID+" says so"))
		}
	}
}

// builtinCheckers are those that need nothing but the call.
var builtinCheckers = map[string]func(*Request) (Decision, string){
	"secret-forms": secretForms,
	"hidden-text":  hiddenText,
}

// keyForms are what keys look like. Source: the forms that their issuers publish.
var keyForms = match.Lazy(`AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{50}|xox[abprs]-[A-Za-z0-9-]{10}|sk-[A-Za-z0-9_-]{20}|AIza[0-9A-Za-z_-]{35}|-----BEGIN [A-Z ]*PRIVATE KEY-----|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.`)

// secretForms asks about a call that can send out something that looks like a key.
func secretForms(r *Request) (Decision, string) {
	sends := slices.ContainsFunc(subjectsOf(r), func(sub subject) bool { return sub.egress })
	if sends && keyForms.Get().Match(r.Args) {
		return Ask, "its arguments hold something that looks like a key, and it can send data out"
	}
	return Allow, ""
}

// hiddenText asks about arguments with characters that a person doesn't see or
// that show a text in another order.
func hiddenText(r *Request) (Decision, string) {
	text := string(r.Args)
	var decoded any
	if json.Unmarshal(r.Args, &decoded) == nil {
		text = fmt.Sprint(decoded)
	}
	if strings.ContainsFunc(text, func(c rune) bool {
		return c == 0x7f || c >= 0x80 && c < 0xa0 || c >= 0x200b && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x2060 && c <= 0x2069 || c == 0xfeff || c >= 0xe0000 && c <= 0xe007f
	}) {
		return Ask, "its arguments hold invisible characters"
	}
	return Allow, ""
}

// Question is what a checker outside of the runtime gets about a call, as JSON.
// It answers with an Answer.
type Question struct {
	Version   int             `json:"version"` // 1
	Checker   string          `json:"checker"`
	Call      string          `json:"call"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args,omitempty"`
	Paths     []string        `json:"paths,omitempty"`
	Commands  []Command       `json:"commands,omitempty"`
	Links     []Link          `json:"links,omitempty"`
	Mode      belay.Mode      `json:"mode"`
	Agent     string          `json:"agent,omitempty"`
	Workspace string          `json:"workspace"`
	Taint     []Taint         `json:"taint,omitempty"`
}

// Answer is what a checker says.
type Answer struct {
	Decision Decision `json:"decision"` // allow, ask, deny
	Reason   string   `json:"reason,omitempty"`
	Code     string   `json:"code,omitempty"`
}

// Bounds of an answer, in bytes.
const (
	MaxAnswer = 16 << 10
	maxReason = 500
	maxCode   = 64
)

// ReadAnswer reads what a checker wrote: one JSON object and nothing else.
func ReadAnswer(raw []byte) (Answer, error) {
	var a Answer
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, fmt.Errorf("it isn't the JSON of an answer: %v", err)
	}
	if rest := bytes.TrimSpace(raw[d.InputOffset():]); len(rest) > 0 {
		return a, errors.New("more follows after the answer")
	}
	if rank(a.Decision) == 0 || len(a.Reason) > maxReason || len(a.Code) > maxCode {
		return a, fmt.Errorf("the decision is none of allow, ask, deny, or its texts are longer than %d and %d bytes", maxReason, maxCode)
	}
	return a, nil
}

// checks reports whether a checker may judge calls of a tool.
func (s *Set) checks(t belay.ToolSpec) bool {
	return t.Handled == "" && slices.ContainsFunc(s.checkers, func(c checker) bool { return c.when.forTool(strings.ToLower(t.Name)) })
}

// join joins a verdict with what a checker said: the stricter one counts.
func (v *Verdict) join(c Checker, d Decision, code, reason string) {
	hit := Hit{Rule: "checker/" + c.ID, Tier: cmp.Or(c.Tier, TierDefault), Decision: d}
	v.Matched = append(slices.Clone(v.Matched), hit)
	if Join(v.Decision, d) != v.Decision {
		v.Decision, v.Source, v.Rule, v.Tier, v.Priority = d, "checker", hit.Rule, hit.Tier, 0
		v.ReasonCode, v.Reason, v.Hint = cmp.Or(code, "CHECKER"), reason, ""
		v.Tags = union(v.Tags, []string{"safety:" + c.ID})
	}
	markOverridden(v)
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a text can always be written
	return string(b)
}
