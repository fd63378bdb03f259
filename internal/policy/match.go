package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// speaks reports whether a rule is about a call: an allow about all parts of it,
// another verdict about one.
func (c *rule) speaks(r *Request, subjects []subject) bool {
	return c.forTool(subjects[0].tool) && fit(c.Verdict, subjects, func(sub subject) bool { return c.misses(r, &sub) == "" })
}

// misses is the first of the matchers of a rule for a tool that doesn't hold for a
// call; empty: the rule speaks. Cheap questions come first; an expression is asked
// only when everything else holds.
func (c *rule) misses(r *Request, sub *subject) string {
	if missed := c.standing(r, sub); missed != "" {
		return missed
	}
	switch {
	case len(c.Flow) > 0 && !c.flows(sub):
		return "flow"
	case len(c.Taint) > 0 && !c.taints(r.Taint):
		return "taint"
	case c.Command != nil && !c.runs(sub):
		return "command"
	case c.Path != nil && !c.touches(sub):
		return "path"
	case len(c.hosts) > 0 && !c.reaches(sub):
		return "host"
	case c.Verdict == Allow && !c.sees.covers(r, sub, sub.egress || sub.starts && c.network):
		return "cover" // an allow that doesn't name what this call could do
	case slices.ContainsFunc(c.args, func(a argument) bool { return !a.holds(sub.args) }):
		return "args"
	case c.cond == nil:
		return ""
	}
	// What can't be answered is not a reason to allow, and one to be careful.
	if holds, ok := c.cond.holds(r, sub); !holds && (ok || c.Verdict == Allow) {
		return "if"
	}
	return ""
}

// standing is misses for what doesn't depend on a call's arguments.
func (c *rule) standing(r *Request, sub *subject) string {
	m := &c.Match
	switch {
	case len(m.Mode) > 0 && !slices.Contains(m.Mode, r.Mode):
		return "mode"
	case len(m.Does) > 0 && !slices.ContainsFunc(m.Does, func(w string) bool { return slices.Contains(sub.does, w) }):
		return "does"
	case len(m.Agent) > 0 && !slices.ContainsFunc(m.Agent, func(p string) bool { return like(p, r.Agent) }):
		return "agent"
	case len(m.Capability) > 0 && !slices.ContainsFunc(m.Capability, func(w string) bool { return slices.Contains(r.Tool.Capabilities, w) }):
		return "capability"
	case len(m.Effect) > 0 && !slices.Contains(m.Effect, string(cmp.Or(r.Tool.Effect, belay.AtMostOnce))):
		return "effect"
	case m.Level != "" && (len(r.Level) != 2 || r.Level < m.Level):
		return "level"
	case m.Rerun && !r.Rerun:
		return "rerun"
	case sub.steers && c.tier > 0 && !slices.Contains(c.literal, sub.tool):
		return "tool" // tools that steer the turn match only by name
	}
	return ""
}

func (c *rule) flows(sub *subject) bool {
	return slices.ContainsFunc(c.Flow, func(w string) bool {
		return w == "egress" && sub.egress || w == "secret" && sub.secret || w == "protected" && sub.guards != "" || w == secretFile && sub.keys != ""
	})
}

func (c *rule) taints(taint []Taint) bool {
	return slices.ContainsFunc(c.Taint, func(w string) bool {
		switch w {
		case "none":
			return len(taint) == 0
		case "any":
			return tainted(taint)
		case "secret":
			return mayLeakSecret(taint)
		}
		return slices.ContainsFunc(taint, func(t Taint) bool { return t.Kind == w })
	})
}

// runs holds a simple command against the rule's.
func (c *rule) runs(sub *subject) bool {
	m, cmd := c.Command, sub.cmd
	if cmd == nil {
		return false
	}
	if len(m.Class) > 0 && !slices.Contains(m.Class, string(sub.class)) {
		return false
	}
	if len(m.Program)+len(m.NotProgram)+len(m.Subcommand)+len(m.Prefix) == 0 && c.program == nil {
		return true
	}
	// A line that can't be read has no program that one could rely on.
	if sub.class == Unparsable && c.Verdict == Allow {
		return false
	}
	name := path.Base(cmd.Name)
	if c.Verdict == Allow && strings.Contains(cmd.Name, "/") && !harmless(cmd.Name) {
		return false // a program of that name from somewhere else
	}
	if len(m.Program) > 0 && !slices.ContainsFunc(m.Program, func(p string) bool { return like(p, name) }) {
		return false
	}
	if slices.ContainsFunc(m.NotProgram, func(p string) bool { return like(p, name) }) {
		return false
	}
	if len(m.Subcommand) > 0 && !slices.ContainsFunc(subcommands(cmd.Args, c.Verdict == Allow), func(w string) bool { return slices.Contains(m.Subcommand, w) }) {
		return false
	}
	if len(m.Prefix) > 0 && (len(cmd.Args) < len(m.Prefix) || !slices.Equal(cmd.Args[:len(m.Prefix)], m.Prefix)) {
		return false
	}
	return c.program == nil || c.program.MatchString(strings.Join(append([]string{name}, cmd.Args...), " "))
}

// subcommands are the words that may be the subcommand. For sure it is only the
// first argument; after an option a word may be that option's value or the
// subcommand, so both are.
func subcommands(args []string, sure bool) (out []string) {
	if sure {
		return args[:min(1, len(args))]
	}
	option := false
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			option = true
			continue
		}
		if out = append(out, a); !option {
			break
		}
		option = false
	}
	return out
}

// touches holds the files of a call against the rule's.
func (c *rule) touches(sub *subject) bool {
	fits := func(a access) bool {
		m := c.Path
		if m.Where == "inside" && !a.inside && !(a.own && c.tier == 0) {
			return false
		}
		if m.Where == "outside" && a.inside || m.Access == "write" && !a.write || m.Access == "read" && a.write {
			return false
		}
		return len(c.globs) == 0 || slices.ContainsFunc(c.globs, func(g glob) bool { return g.matches(a.path) })
	}
	if len(sub.paths) == 0 {
		// A command that names no file works on the folder it runs in.
		return sub.cmd != nil && sub.class != Unparsable && c.Path.Where == "inside" && len(c.globs) == 0
	}
	return fit(c.Verdict, sub.paths, fits)
}

// fit holds a list against what a rule asks for: all must fit an allow, one is enough
// for the rest.
func fit[T any](verdict Decision, list []T, fits func(T) bool) bool {
	if verdict == Allow {
		return !slices.ContainsFunc(list, func(x T) bool { return !fits(x) })
	}
	return slices.ContainsFunc(list, fits)
}

// reaches is touches for hosts.
func (c *rule) reaches(sub *subject) bool {
	return len(sub.hosts) > 0 && fit(c.Verdict, sub.hosts, func(h string) bool {
		return h != "" && slices.ContainsFunc(c.hosts, func(p string) bool { return like(p, h) })
	})
}

// MayChange reports whether some call of a tool could change something: whether
// any verdict but a deny is possible. Arguments that aren't known yet are taken
// to be those that a rule asks for.
func (s *Set) MayChange(r *Request) bool {
	if s == nil || !s.Permits(r.Mode) || !Changes(r.Tool) {
		return false
	}
	sub := subject{tool: strings.ToLower(r.Tool.Name), does: []string{"runs", "changes", "edits"}}
	asks := r.Mode != "never" && !r.Headless
	may := slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.Of(r.Tool.Name) })
	for _, c := range s.about(sub.tool) {
		if c.standing(r, &sub) != "" {
			continue
		}
		looks := c.Command != nil || c.Path != nil || len(c.args)+len(c.hosts)+len(c.Flow)+len(c.Taint) > 0 || c.cond != nil
		if c.Command != nil && slices.Equal(c.Command.Class, []string{string(ReadOnly)}) {
			continue
		}
		if slices.Equal(c.Does, []string{"edits"}) && (r.Tool.PathArg == "" || r.Tool.Destructive) {
			continue
		}
		switch {
		case c.Verdict == Deny && !looks && !slices.Equal(c.Does, []string{"edits"}):
			return false
		case c.Verdict == Allow, c.Verdict == Ask && asks:
			may = true
		}
	}
	return may
}
