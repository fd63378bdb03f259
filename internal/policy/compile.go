package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

func (s *Set) compile() error {
	env := &conditions{}
	taken := make(map[string]string, len(s.doc.Rules))
	s.rules = make([]rule, len(s.doc.Rules))
	for i := range s.doc.Rules {
		r := &s.doc.Rules[i]
		c, err := s.ready(r, env)
		if err != nil {
			return at(r, err)
		}
		if where, ok := taken[c.name]; ok {
			return at(r, bad("two rules have the id %s%s", r.ID, also(where)).WithHint("rename one of them"))
		}
		taken[c.name] = cmp.Or(r.Where, r.ID)
		s.rules[i] = c
	}
	slices.SortStableFunc(s.rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return nil
}

func also(where string) string {
	if where == "" {
		return ""
	}
	return "; the other is at " + where
}

// at gives an error the rule's place.
func at(r *Rule, e *belay.Error) error {
	where := cmp.Or(r.Where, "rule "+r.ID)
	if r.Where != "" && r.ID != "" {
		e.Message = "rule " + r.ID + ": " + e.Message
	}
	return e.At(where)
}

func bad(format string, args ...any) *belay.Error {
	return belay.Errorf(belay.CodeBadPolicy, format, args...).WithHint("docs/policy.md describes the form")
}

var idForm = match.Lazy(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// ready checks one rule and makes it ready.
func (s *Set) ready(r *Rule, env *conditions) (rule, *belay.Error) {
	c := rule{Rule: r, tier: slices.Index(Tiers, cmp.Or(r.Tier, TierDefault))}
	switch {
	case !idForm.Get().MatchString(r.ID):
		return c, bad("%q is no id: lower case letters, digits, . _ and -, at most 64", short(r.ID)).WithHint("id: git-read")
	case c.tier < 0:
		return c, bad("there is no tier %q", short(r.Tier))
	case r.Priority < 0 || r.Priority > 999:
		return c, bad("the priority %d is not from 0 to 999", r.Priority)
	case rank(r.Verdict) == 0:
		return c, bad("the verdict %q is none of allow, ask, deny", short(string(r.Verdict)))
	case r.Firm && c.tier != 0:
		return c, bad("only built-in rules are firm")
	case r.Degrade != "" && r.Degrade != Allow:
		return c, bad("degrade: %q is not allow", short(string(r.Degrade)))
	case r.Degrade == Allow && (c.tier < slices.Index(Tiers, TierUser) || r.Verdict != Allow):
		return c, bad("only an allow of a user or an administrator accepts less than a boundary wants").WithHint("put it into the policy.yaml of the user")
	case len(r.Examples.Match)+len(r.Examples.NoMatch) > maxExamples:
		return c, bad("it has more than %d examples", maxExamples)
	case len(r.Reason) > maxText || len(r.Hint) > maxText || len(r.Code) > 64 || len(r.Boundary) > 64 || len(r.Tags) > 16:
		return c, bad("its texts are too long").WithHint("reason and hint have at most %d bytes, code and boundary 64, and there are at most 16 tags", maxText)
	}
	c.name = r.name()
	if err := c.known(); err != nil {
		return c, err
	}
	if err := c.patternsOf(s); err != nil {
		return c, err
	}
	var err *belay.Error
	if r.If != "" {
		if c.cond, err = env.compile(r.If); err != nil {
			return c, err
		}
	}
	c.sees = seesOf(r)
	b, named := s.Bound(r.Boundary)
	c.network = named && c.tier > 0 && !r.Narrows && b.Is.Network != belay.NetworkNone
	return c, nil
}

// known checks the lists of fixed words.
func (c *rule) known() *belay.Error {
	m := &c.Match
	modes := words(m.Mode)
	for _, l := range []struct {
		name  string
		have  []string
		known []string
	}{
		{"does", m.Does, []string{"reads", "edits", "changes", "runs", "completes", "asks"}},
		{"mode", modes, words(belay.Modes)}, {"flow", m.Flow, []string{"egress", "secret", secretFile, "protected"}},
		{"effect", m.Effect, words([]belay.EffectClass{belay.Pure, belay.Idempotent, belay.Recoverable, belay.AtMostOnce})},
		{"level", optional(m.Level), []string{"L1", "L2", "L3"}},
	} {
		for _, w := range l.have {
			if !slices.Contains(l.known, w) {
				return bad("%s: %q is none of %s", l.name, short(w), strings.Join(l.known, ", "))
			}
		}
	}
	for _, l := range [][]string{m.Tool, m.NotTool, m.Does, modes, m.Agent, m.Capability, m.Effect, m.Host, m.Taint, m.Flow} {
		if len(l) > maxEntries || slices.ContainsFunc(l, func(w string) bool { return w == "" || len(w) > maxText }) {
			return bad("a list has more than %d entries, or one that is empty or too long", maxEntries)
		}
	}
	return nil
}

// patternsOf makes what a rule compares with ready.
func (c *rule) patternsOf(s *Set) *belay.Error {
	var err *belay.Error
	if c.patterns, err = s.tools(c.Tool, c.tier); err != nil {
		return err
	}
	if c.not, err = s.tools(c.NotTool, c.tier); err != nil {
		return err
	}
	if len(c.Tool) > 0 && c.patterns == nil {
		c.patterns = []string{} // a group without tools: no call is meant
	}
	for _, p := range c.patterns {
		if !strings.Contains(p, "*") {
			c.literal = append(c.literal, p)
		}
	}
	for i := range c.Args {
		a, err := argumentOf(&c.Args[i])
		if err != nil {
			return err
		}
		c.args = append(c.args, a)
	}
	if err = c.commandOf(); err != nil {
		return err
	}
	if err := c.pathsOf(); err != nil {
		return err
	}
	for _, h := range c.Host {
		c.hosts = append(c.hosts, hostName(h))
	}
	return nil
}

// tools writes groups out, as a rule of a tier sees them.
func (s *Set) tools(terms []string, tier int) (out []string, _ *belay.Error) {
	for _, t := range lower(terms) {
		name, isGroup := strings.CutPrefix(t, "group:")
		if !isGroup {
			out = append(out, t)
			continue
		}
		found := false
		for _, g := range s.doc.Groups {
			if from := slices.Index(Tiers, cmp.Or(g.Tier, TierDefault)); strings.EqualFold(g.Name, name) && (from <= 0 || from == tier || tier > 0 && from > tier && from >= slices.Index(Tiers, TierUser)) {
				out, found = append(out, lower(g.Tools)...), true
			}
		}
		if !found {
			return nil, bad("there is no group %q", short(name)).WithHint("belay tool list shows the groups; groups: of the file declares more")
		}
	}
	return out, nil
}

func (c *rule) commandOf() (err *belay.Error) {
	m := c.Command
	if m == nil {
		return nil
	}
	for _, w := range m.Class {
		if !slices.Contains(classes, Class(w)) {
			return bad("command.class: %q is none of %s", short(w), strings.Join(words(classes), ", "))
		}
	}
	if len(m.Program)+len(m.NotProgram)+len(m.Subcommand)+len(m.Class)+len(m.Prefix) > maxEntries {
		return bad("command has more than %d entries", maxEntries)
	}
	if m.Matches != "" {
		c.program, err = expression(m.Matches)
	}
	return err
}

func (c *rule) pathsOf() *belay.Error {
	m := c.Path
	if m == nil {
		return nil
	}
	if !slices.Contains([]string{"", "inside", "outside"}, m.Where) {
		return bad("path.where: %q is neither inside nor outside", short(m.Where))
	}
	if !slices.Contains([]string{"", "read", "write"}, m.Access) {
		return bad("path.access: %q is neither read nor write", short(m.Access))
	}
	for _, p := range m.Match {
		if p == "" || len(p) > maxText || len(m.Match) > maxEntries {
			return bad("path.match has an entry that is empty or too long, or more than %d", maxEntries)
		}
		// What denies and asks must not be got round by spelling.
		c.globs = append(c.globs, newGlob(p, c.Verdict != Allow))
	}
	return nil
}

func optional(w string) []string {
	if w == "" {
		return nil
	}
	return []string{w}
}

// words are the texts of a list.
func words[T ~string](list []T) []string {
	return texts(list, func(w T) string { return string(w) })
}

// expression is a regular expression of bounded size. Go's have no
// backtracking: their time is bounded by size times text.
func expression(text string) (*regexp.Regexp, *belay.Error) {
	if len(text) > maxText {
		return nil, bad("a regular expression has %d bytes; %d are the most", len(text), maxText)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, bad("the regular expression can't be read: %v", err).WithHint("it is a Go regular expression (RE2): no look-around, no back references")
	}
	if n, err := instructions(text); err != nil || n > maxInside {
		return nil, bad("the regular expression is too large: it becomes %d instructions; %d are the most", n, maxInside).WithHint("use fewer or smaller repetitions")
	}
	return re, nil
}

func lower(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = strings.ToLower(strings.TrimSpace(s))
	}
	return out
}

func short(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

func seesOf(r *Rule) (s sees) {
	if slices.Contains(r.Mode, belay.ModeBypass) && r.Tier == TierAdmin {
		return sees{true, true, true, true, true}
	}
	if r.Command != nil {
		s.unparsable = slices.Contains(r.Command.Class, string(Unparsable))
		s.escape = slices.Contains(r.Command.Class, string(EscapeAttempt))
	}
	s.secret = len(r.Taint) > 0 && !slices.Equal(r.Taint, []string{"none"})
	s.egress = s.secret || len(r.Host) > 0
	s.keys = s.secret || slices.Contains(r.Flow, secretFile) || r.Path != nil && len(r.Path.Match) > 0 && !slices.ContainsFunc(r.Path.Match, func(p string) bool { return !Secret(p) })
	return s
}
