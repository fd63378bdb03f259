package simulate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// never returns why no call of a tool can be what a rule asks for, by what the
// tool declares; empty when one may.
func never(t *belay.ToolSpec, r *policy.Rule) string {
	runs := t.Command != nil
	switch {
	case r.Command != nil && !runs:
		return "command: it runs no command line"
	case r.Path != nil && t.PathArg == "" && !runs:
		return "path: none of its arguments names a file"
	case r.Path != nil && !runs && r.Path.Access != "" && string(t.Access) != r.Path.Access && (t.Access != "" || r.Path.Access == "write"):
		return "path.access: it never does " + r.Path.Access + " a file"
	case len(r.Host) > 0 && t.HostArg == "" && !runs:
		return "host: none of its arguments names a host"
	case len(r.Effect) > 0 && !slices.Contains(r.Effect, string(cmp.Or(t.Effect, belay.AtMostOnce))):
		return "effect: it declares none of " + strings.Join(r.Effect, ", ")
	case len(r.Capability) > 0 && !slices.ContainsFunc(r.Capability, func(w string) bool { return slices.Contains(t.Capabilities, w) }):
		return "capability: it declares none of " + strings.Join(r.Capability, ", ")
	case len(r.Does) > 0 && !slices.ContainsFunc(r.Does, func(w string) bool { return slices.Contains(doings(t), w) }):
		return "does: it never " + strings.Join(r.Does, ", ")
	}
	for i := range r.Args {
		if m := &r.Args[i]; (m.Exists == nil || *m.Exists) && lacks(t, m.Path) {
			return "args: it has no argument " + m.Path
		}
	}
	return ""
}

// doings is what calls of a tool can be.
func doings(t *belay.ToolSpec) []string {
	switch {
	case t.Handled == "complete":
		return []string{"completes"}
	case t.Handled == "ask":
		return []string{"asks"}
	case t.Command != nil:
		return []string{"runs", "changes"}
	case t.ReadOnly && !t.Destructive:
		return []string{"reads"}
	case t.PathArg != "" && t.Access == belay.Write && !t.Destructive:
		return []string{"edits", "changes"}
	}
	return []string{"changes"}
}

// lacks reports whether a tool's schema lists its arguments, and the one that a
// path begins with isn't among them.
func lacks(t *belay.ToolSpec, path string) bool {
	var in struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Patterns   json.RawMessage            `json:"patternProperties"`
		Others     json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(t.Input, &in) != nil || string(in.Others) != "false" || len(in.Patterns) > 0 {
		return false
	}
	name, _, _ := strings.Cut(path, ".")
	return in.Properties[name] == nil
}
