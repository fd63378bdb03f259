package simulate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// covers reports whether a speaks of every call that b speaks of. It says no
// whenever it isn't sure.
func covers(a, b *linted) bool {
	if a.Verdict == policy.Allow && (b.Verdict != policy.Allow || !seesAs(a.Rule, b.Rule)) {
		return false // an allow speaks of less than the same words of another verdict
	}
	return asksForAll(a, b)
}

// asksForAll is covers for the words of two rules, whatever their verdicts.
func asksForAll(a, b *linted) bool {
	if !within(a.tools, b.tools) || !excludes(a.not, b.not, b.tools) {
		return false
	}
	x, y := &a.Match, &b.Match
	switch {
	case !within(x.Does, y.Does), !within(modes(x), modes(y)), !within(x.Agent, y.Agent), !within(x.Capability, y.Capability), !within(x.Effect, y.Effect), !within(x.Taint, y.Taint), !within(x.Flow, y.Flow), !within(x.Host, y.Host):
		return false
	case x.Level != "" && y.Level < x.Level, x.Rerun && !y.Rerun, x.If != "" && x.If != y.If:
		return false
	}
	return commandCovers(x.Command, y.Command) && pathCovers(x.Path, y.Path) && argsCover(x.Args, y.Args)
}

// seesAs reports whether an allow names all that another one names of what a plain
// allow doesn't cover.
func seesAs(a, b *policy.Rule) bool {
	names := func(r *policy.Rule, c policy.Class) bool {
		return r.Command != nil && slices.Contains(r.Command.Class, string(c))
	}
	for _, c := range []policy.Class{policy.Unparsable, policy.EscapeAttempt} {
		if names(b, c) && !names(a, c) {
			return false
		}
	}
	if slices.Contains(b.Mode, belay.ModeBypass) && !slices.Contains(a.Mode, belay.ModeBypass) {
		return false
	}
	return (len(b.Taint) == 0 || len(a.Taint) > 0) && (len(b.Host) == 0 || len(a.Host) > 0)
}

func modes(m *policy.Match) []string {
	out := make([]string, len(m.Mode))
	for i, w := range m.Mode {
		out[i] = string(w)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// within reports whether all that fits b's words fits a's. nil fits anything.
func within(a, b []string) bool {
	if a == nil {
		return true
	}
	for _, w := range b {
		if !slices.ContainsFunc(a, func(p string) bool { return wider(p, w) }) {
			return false
		}
	}
	return len(b) > 0
}

// wider reports whether a pattern fits all that another one fits.
func wider(p, w string) bool {
	if p == w {
		return true
	}
	if strings.Contains(w, "*") && strings.Contains(p, "?") || strings.Contains(w, "?") && !strings.Contains(p, "*") {
		return false
	}
	return policy.Like(p, w)
}

// excludes reports whether nothing that a excludes is meant by b.
func excludes(a, bNot, bTools []string) bool {
	for _, p := range a {
		if slices.ContainsFunc(bNot, func(q string) bool { return wider(q, p) }) {
			continue
		}
		if bTools == nil || slices.ContainsFunc(bTools, func(t string) bool { return isPattern(t) || policy.Like(p, t) }) {
			return false
		}
	}
	return true
}

func commandCovers(a, b *policy.CommandMatch) bool {
	switch {
	case a == nil:
		return true
	case b == nil:
		return false
	case !within(a.Program, b.Program), !within(a.Class, b.Class), !within(a.Subcommand, b.Subcommand), !excludes(a.NotProgram, b.NotProgram, b.Program):
		return false
	case len(a.Prefix) > len(b.Prefix) || !slices.Equal(a.Prefix, b.Prefix[:len(a.Prefix)]):
		return false
	}
	return a.Matches == "" || a.Matches == b.Matches
}

func pathCovers(a, b *policy.PathMatch) bool {
	switch {
	case a == nil:
		return true
	case b == nil:
		return false
	case a.Where != "" && a.Where != b.Where, a.Access != "" && a.Access != b.Access:
		return false
	case len(b.Match) == 0 && b.Where == "inside" && a.Where != "inside":
		return false // of a command that names no file only where: inside speaks
	case len(a.Match) == 0 || slices.Contains(a.Match, "**"):
		return true
	}
	return len(b.Match) > 0 && !slices.ContainsFunc(b.Match, func(g string) bool { return !slices.Contains(a.Match, g) })
}

func argsCover(a, b []policy.ArgMatch) bool {
	for i := range a {
		if !slices.ContainsFunc(b, func(o policy.ArgMatch) bool { return encoded(o) == encoded(a[i]) }) {
			return false
		}
	}
	return true
}

func encoded(a policy.ArgMatch) string {
	raw, err := json.Marshal(a)
	if err != nil {
		return ""
	}
	return string(raw)
}
