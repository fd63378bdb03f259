package effect

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/symlinks"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// linked records in its fact where the paths of a call lead: the gate decides by
// that. Paths that don't fit are recorded as unknown, which is stricter.
func (a *answer) linked(mc *event.ModelCall, spec belay.ToolSpec, args []byte, paths []string, budget *int) {
	seen := a.v.e.links(a.rules, spec, args, paths)
	size := 0
	for _, l := range seen {
		size += event.TextLen(l.Path) + event.TextLen(l.Real) + 24
	}
	if size > *budget {
		seen = []event.LinkSeen{{Path: seen[0].Path}}
		size = event.TextLen(seen[0].Path) + 24
	}
	if size > *budget {
		mc.Problem = &event.Problem{Class: tool.BadArguments, Code: "TOO_MANY_FILES", Message: spec.Name + " names paths behind links that are too long for one answer", Hint: "split it into several calls, one answer each"}
		return
	}
	*budget -= size
	mc.Links = seen
}

// links are where the paths of a call lead now: those of commands, and the files
// that it names, which get the name they have within the workspace.
func (e *Performers) links(r *thread.Rules, spec belay.ToolSpec, args []byte, paths []string) (out []event.LinkSeen) {
	for i, p := range paths {
		paths[i] = file.Within(r.Workspace, p)
	}
	for _, l := range symlinks.Of(spec, args, paths, r.Place()) {
		out = append(out, event.LinkSeen{Path: e.c.Secrets.String(l.Path), Real: e.c.Secrets.String(l.Real)})
	}
	if e.c.Surroundings == nil {
		return out
	}
	for _, dir := range policy.GitFolders(spec, args, r.Place()) {
		if at := e.c.Surroundings.Obeys(dir); at != "" {
			out = append(out, event.LinkSeen{Path: dir + policy.GitSettings, Real: at})
		}
	}
	return out
}

// moved returns why a call isn't run: a path of it leads elsewhere than when the
// gate decided, because an earlier call, or another process, made or changed a
// link.
func (e *Performers) moved(r *thread.Rules, spec belay.ToolSpec, eff core.RunTool, args []byte) error {
	now := e.links(r, spec, args, tool.Paths(spec, args))
	if slices.Equal(now, eff.Links) || len(eff.Links) == 1 && eff.Links[0].Real == "" {
		return nil
	}
	what := "a path of it leads elsewhere"
	for _, l := range now {
		if !slices.Contains(eff.Links, l) && l.Real != "" {
			what = event.CutText(l.Path, 200) + " leads to " + event.CutText(l.Real, 200)
			break
		}
	}
	return tool.Failf(tool.Conflict, "PATH_MOVED", "%s was not run: %s now, which is not what was judged", eff.Name, what).
		WithHint("look where the path leads, and make the call again: it is judged by that then")
}
