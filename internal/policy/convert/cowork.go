package convert

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// coworkAction is an action and the tools that take it here.
type coworkAction struct {
	name   string
	allow  []string // tools that do nothing but this
	others []string // for asks and denies besides
	access string   // of commands that name files
}

// coworkActions are all of them. Permission to write a file includes creating
// it.
var coworkActions = []coworkAction{
	{"file.read", []string{"read", "list", "glob", "grep"}, nil, "read"},
	{"file.write", []string{"edit"}, []string{"write", "patch"}, "write"},
	{"file.create", nil, []string{"write", "patch"}, "write"},
	{"file.delete", nil, []string{"patch"}, "write"},
	{"file.rename", nil, []string{"patch"}, "write"},
	{"file.move", nil, []string{"patch"}, "write"},
	{"network.request", nil, []string{"web_fetch", "web_search"}, ""},
	{"connector.read", nil, []string{"mcp__*"}, ""},
	{"connector.action", nil, []string{"mcp__*"}, ""},
}

var coworkVerdicts = map[string]policy.Decision{"allow": policy.Allow, "allow_with_confirm": policy.Ask, "deny": policy.Deny}

// rule is a rule on its way.
type coworkRule struct {
	source
	action string
	when   *node
	exact  bool     // it names one action, and is tried before those with *
	all    bool     // it speaks of every call of its actions
	lacks  []string // what of it nothing here knows
}

// cowork reads the policy of Cowork.
type cowork struct{ *draft }

// read reads a policy of version 1.0. Rules that name an action come before
// those with a *, then they count in their order; the first that fits decides.
// Folders that were granted are the workspace here.
func (d cowork) read(root *node) {
	if version := root.at("version"); version == nil || version.kind != text || version.text != "1.0" {
		d.mistake(root.line, "it isn't a policy of version 1.0")
		return
	}
	list := d.objects(root, "rules")
	if root.at("rules") == nil {
		d.mistake(root.line, "it has no list of rules")
	}
	rules := make([]*coworkRule, len(list))
	for i, n := range list {
		if rules[i] = d.source(n); d.err != nil {
			return
		}
	}
	ordered := slices.Clone(rules)
	slices.SortStableFunc(ordered, func(a, b *coworkRule) int {
		switch {
		case a.exact == b.exact:
			return 0
		case a.exact:
			return -1
		}
		return 1
	})
	coworkPriorities(ordered)
	for i, r := range ordered {
		if r.says == policy.Deny && slices.ContainsFunc(ordered[:i], func(b *coworkRule) bool { return b.says != policy.Deny && sharesAction(b.action, r.action) }) {
			r.why = append(r.why, "a deny is final here: it wins over rules that come first there")
		}
	}
	for _, r := range rules {
		d.rule(r)
	}
	if def := d.want(root, "defaults", object); def != nil {
		d.fallback(def, ordered)
	}
}

// coworkPriorities gives rules that come first a higher priority. Where one
// decision follows the same one it needs none of its own. If there are more
// changes than priorities the last ones only ask.
func coworkPriorities(ordered []*coworkRule) {
	p, last := 900, policy.Decision("")
	for _, r := range ordered {
		if r.says == policy.Deny {
			continue
		}
		if last != "" && r.says != last {
			p--
		}
		last = r.says
		r.base.Priority = max(p, 1)
		if p < 1 && r.says == policy.Allow {
			r.says = policy.Ask
			r.why = append(r.why, "there are too many rules in turn: it asks")
		}
	}
}

func sharesAction(a, b string) bool {
	return slices.ContainsFunc(coworkActions, func(c coworkAction) bool { return policy.Like(a, c.name) && policy.Like(b, c.name) })
}

func (d cowork) source(n *node) *coworkRule {
	id, action, decision, reason := d.word(n, "id"), d.word(n, "action"), d.word(n, "decision"), d.word(n, "reason")
	says, known := coworkVerdicts[decision]
	switch {
	case id == "" || action == "":
		d.mistake(n.line, "a rule has an id and an action")
	case !known:
		d.mistake(n.line, "rule %s: the decision %q is none of allow, allow_with_confirm, deny", short(id, 80), short(decision, 80))
	}
	r := &coworkRule{action: action, exact: !strings.Contains(action, "*")}
	r.source = source{text: id + ": " + decision + " " + action, line: n.line, says: says, stem: id, base: policy.Rule{Reason: short(reason, 1000)}}
	if r.base.Tags = textsOf(d.texts(n, "riskTags")); len(r.base.Tags) > 16 {
		r.base.Tags = r.base.Tags[:16]
		r.why = append(r.why, "it has 16 of its tags")
	}
	r.when = d.want(n, "when", object)
	for i, name := range n.names {
		if !n.items[i].read && d.known("rules.0."+name, n.items[i]) == nil {
			r.lacks, n.items[i] = append(r.lacks, short(name, 80)), &node{read: true}
		}
	}
	r.all = len(r.lacks) == 0 && (r.when == nil || len(r.when.names) == 0)
	return r
}

func (d cowork) rule(r *coworkRule) {
	allow := r.says == policy.Allow
	tools, access, commands := coworkTools(r.action, allow)
	if len(tools) == 0 {
		d.drop(&r.source, "no tool here does only this: "+r.action)
		return
	}
	if allow && (strings.HasPrefix(r.action, "network.") || strings.HasPrefix(r.action, "connector.")) {
		d.drop(&r.source, "the addresses that it may reach aren't in the file")
		return
	}
	match, f, lacks, err := d.when(r.when)
	lacks = append(r.lacks, lacks...)
	if err != "" {
		d.drop(&r.source, err)
		return
	}
	if len(lacks) > 0 {
		if r.says != policy.Ask {
			d.drop(&r.source, "no rule here can ask for "+strings.Join(lacks, ", "))
			return
		}
		r.why = append(r.why, "it asks whatever "+strings.Join(lacks, ", ")+" says")
	}
	if commands && !allow && match.Path != nil {
		tools = append(tools, "exec")
		match.Path.Access = access
	}
	match.Tool = tools
	if len(f) > 0 && !d.paths(r, &match, f) {
		return
	}
	d.addAction(&r.source, r.action, match)
}

// addAction makes the rules of an action. Here a tool may do more than the one
// thing that a narrow action means.
func (d cowork) addAction(s *source, action string, m policy.Match) {
	if s.says != policy.Allow && slices.Contains([]string{"file.create", "file.delete", "file.rename", "file.move", "connector.read", "connector.action"}, action) {
		s.why = append(s.why, "the tools that do it here do more, which it "+verb(s.says)+" as well")
	}
	d.add(s, m, nil, nil)
	if s.says != policy.Allow && strings.HasPrefix(action, "network.") {
		d.add(s, policy.Match{Tool: exec, Command: &policy.CommandMatch{Class: []string{string(policy.Network)}}}, example("curl example.com"), nil)
	}
	d.done(s)
}

// coworkTools are the tools that an action, or a pattern of them, is about.
func coworkTools(action string, allow bool) (tools []string, access string, commands bool) {
	mixed := false
	for _, a := range coworkActions {
		if !policy.Like(action, a.name) {
			continue
		}
		tools = append(tools, a.allow...)
		if !allow {
			tools = append(tools, a.others...)
		}
		commands = commands || a.access != ""
		mixed = mixed || access != "" && access != a.access
		access = a.access
	}
	if mixed {
		access = ""
	}
	if allow && (action == "file.*" || action == "*") {
		tools = append(tools, "write", "patch") // whatever they do to a file is meant
	}
	slices.Sort(tools)
	return slices.Compact(tools), access, commands
}

// when reads the conditions of a rule.
func (d cowork) when(when *node) (m policy.Match, patterns []*node, lacks []string, err string) {
	if when == nil {
		return m, nil, nil, ""
	}
	for _, name := range when.names {
		v := when.at(name)
		switch {
		case name == "pathWithinGrant" && v.kind == boolean:
			m.Path = &policy.PathMatch{Where: "outside"}
			if v.yes {
				m.Path.Where = "inside"
			}
		case name == "matchesPattern" && v.kind == array:
			patterns = v.items
			if slices.ContainsFunc(patterns, func(n *node) bool { return n.kind != text }) || len(patterns) == 0 {
				return m, nil, nil, "its patterns are no texts"
			}
		default:
			lacks = append(lacks, name)
		}
	}
	if len(patterns) > 0 && m.Path == nil {
		m.Path = &policy.PathMatch{}
	}
	return m, patterns, lacks, ""
}

// paths gives a match the patterns of a rule. false says that the rule was
// named as not carried over.
func (d cowork) paths(r *coworkRule, m *policy.Match, patterns []*node) bool {
	allow := r.says == policy.Allow
	var inside []string
	for _, n := range patterns {
		p := strings.ReplaceAll(n.text, `\`, "/")
		parts := strings.Split(p, "/")
		odd := p == "" || slices.ContainsFunc(parts, func(s string) bool { return s != "**" && strings.Contains(s, "**") })
		switch {
		case odd, allow && strings.ContainsAny(p, "?"):
			d.drop(&r.source, "its pattern is none that a rule can hold: "+short(p, 80))
			return false
		case strings.HasPrefix(p, "/"):
			f := absolute(p, allow)
			m.Path.Match = append(m.Path.Match, f.globs...)
			inside = append(inside, f.inside)
		case allow && parts[0] != "**":
			d.drop(&r.source, "it never fits there: paths are absolute")
			return false
		default:
			m.Path.Match = append(m.Path.Match, p)
			if parts[0] == "**" { // there it may be a folder above the workspace
				inside = append(inside, absolute("/"+p, allow).inside)
			}
		}
	}
	if allow || len(inside) == 0 {
		return true
	}
	for _, re := range inside {
		if !d.within(&r.source, *m, re, m.Path.Where == "outside") {
			return false
		}
	}
	return true
}

// fallback reads what is said of calls that no rule speaks of. Action by
// action, since a deny here is final: where rules allow or ask, only what they
// say nothing of may be denied.
func (d cowork) fallback(def *node, ordered []*coworkRule) {
	fallback := d.word(def, "fallback")
	says, known := coworkVerdicts[fallback]
	if !known {
		d.mistake(def.line, "the fallback %q is none of allow, allow_with_confirm, deny", short(fallback, 80))
		return
	}
	if says == policy.Allow {
		d.setting("fallback allow", def.line, Left, "what no rule speaks of is judged here by the mode")
		return
	}
	for _, a := range coworkActions {
		s := &source{text: "fallback " + fallback + " " + a.name, line: def.line, says: says, stem: "fallback " + a.name}
		open, grant := false, true
		for _, r := range ordered {
			if r.says == policy.Deny || !policy.Like(r.action, a.name) {
				continue
			}
			open = true
			grant = grant && len(r.lacks) == 0 && r.when != nil && len(r.when.names) == 1 && r.when.at("pathWithinGrant") != nil && r.when.at("pathWithinGrant").yes
		}
		d.rest(s, a.name, open, grant, slices.ContainsFunc(ordered, func(r *coworkRule) bool { return r.all && policy.Like(r.action, a.name) }))
	}
}

// rest is the fallback of one action. open says that rules allow or ask;
// grant that they do so for granted files alone; full that one of them speaks of
// every call.
func (d cowork) rest(s *source, action string, open, grant, full bool) {
	tools, _, _ := coworkTools(action, false)
	m := policy.Match{Tool: tools}
	switch {
	case full:
		d.noEffect(s, "it never speaks: a rule decides all its calls")
		return
	case s.says == policy.Ask:
		// An ask of the lowest priority is what is left when no rule speaks.
	case open && grant:
		m.Path = &policy.PathMatch{Where: "outside"}
	case open:
		d.drop(s, "a deny is final here: it would win over the rules that allow some of its calls")
		return
	}
	d.addAction(s, action, m)
}
