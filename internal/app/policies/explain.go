package policies

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/core/simulate"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/symlinks"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// Question is a hypothetical call, and what is known besides.
type Question struct {
	Tool     string
	Args     string           // an object
	Tools    []belay.ToolSpec // that there are
	Mode     belay.Mode
	Agent    string // whose turn it is
	Allow    []string
	By       string // who allows these
	Grants   []policy.Grant
	Taint    []policy.Taint
	Use      belay.WorkspaceUse
	Level    string // how much of a boundary there is; empty: as much as the machine can apply
	Boundary string
	Alone    bool         // questions can't be answered
	Shell    *belay.Shell // that would run it
	Instead  rulefile.Instead
}

// Explain returns the verdict of the rules of a workspace on a call with its reasons,
// and notes on the call. Nothing is recorded, and nothing runs.
func Explain(ctx context.Context, c *app.Call, g *app.Ground, q Question) (*simulate.Explanation, []string, error) {
	spec, err := tool.Find(q.Tools, q.Tool)
	if err != nil {
		return nil, nil, input.At("tool", c.Hinted(err, match.Hint(q.Tool, tool.Names(q.Tools), "get_tool_inventory lists them")))
	}
	r, notes, err := request(g, spec, q)
	if err != nil {
		return nil, nil, err
	}
	set, err := g.Rules(ctx, q.Instead)
	if err != nil {
		return nil, nil, err
	}
	e := simulate.Explain(set, r)
	return &e, notes, nil
}

// request is a question as the gate gets it.
func request(g *app.Ground, spec belay.ToolSpec, q Question) (r policy.Request, notes []string, err error) {
	if !slices.Contains(belay.Modes, q.Mode) {
		return r, nil, input.At("mode", belay.Errorf(belay.CodeUsage, "there is no mode %q", q.Mode).WithHint("belay run --help lists the modes"))
	}
	args, _, problem := g.Tools.Check(spec.Name, q.Args)
	if len(args) == 0 || args[0] != '{' {
		return r, nil, input.At("args", belay.Errorf(belay.CodeUsage, "the arguments are no JSON object").WithHint("belay tool show %s lists its arguments", spec.Name))
	}
	if problem != nil {
		notes = append(notes, "the tool would refuse these arguments whatever the gate says: "+problem.Message)
	}
	if q.Level == "" {
		q.Level = g.Level
	}
	at := policy.Place{Workspace: g.Workspace, Home: g.Home, Dialect: policy.DialectOf(q.Shell), Shadowed: g.Shadowed}
	paths, at := tool.Paths(spec, args), at.Within(q.Level, q.Boundary)
	for i, p := range paths {
		paths[i] = file.Within(g.Workspace, p)
	}
	at.Links = symlinks.Of(spec, args, paths, at)
	r = policy.Request{Tool: spec, Args: args, Paths: paths, Links: at.Links, Mode: q.Mode, Agent: q.Agent, Headless: q.Alone, Workspace: g.Workspace, Dialect: at.Dialect, Level: q.Level, Network: belay.NetworkFull, Confine: true, Boundary: q.Boundary,
		Commands: policy.CommandsOf(spec, args, at), Taint: q.Taint, Use: q.Use}
	for _, name := range q.Allow {
		r.Grants = append(r.Grants, policy.Grant{Tool: name, Tier: policy.TierUser, Kind: "rule", By: q.By, Dialect: at.Dialect})
	}
	r.Grants = append(r.Grants, q.Grants...)
	return r, notes, nil
}
