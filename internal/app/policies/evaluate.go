package policies

import (
	"cmp"
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/simulate"
	"github.com/belay-run/belay/internal/policy"
)

// EvaluatePermission is what evaluate_permission takes.
type EvaluatePermission struct {
	Session   belay.SessionID `json:"sessionId,omitempty" jsonschema:"judged with the session's settings, grants and taint"`
	Thread    belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Workspace string          `json:"workspace,omitempty" jsonschema:"without a session: as in a new session in this folder"`
	Tool      string          `json:"tool" jsonschema:"the tool that would be called"`
	Args      input.Object    `json:"args,omitempty" jsonschema:"its arguments"`
	app.AsOf
}

// PermissionShown is what the rules make of a call.
type PermissionShown struct {
	app.Fresh
	Tool       string             `json:"tool"`
	Decision   policy.Decision    `json:"decision"` // allow, ask, deny
	Source     string             `json:"source"`   // rule, grant, mode, headless
	Rule       string             `json:"rule"`
	Where      string             `json:"where,omitempty"` // file:line:column of the rule; left out: it is built in
	Tier       policy.Tier        `json:"tier"`
	Priority   int                `json:"priority"`
	ReasonCode string             `json:"reasonCode"`
	Reason     string             `json:"reason"`
	Hint       string             `json:"hint,omitempty"`
	Mode       string             `json:"mode"`
	Boundary   string             `json:"boundary,omitempty"` // that its programs would run in
	Tags       []string           `json:"tags,omitempty"`     // risks that the gate sees
	Taint      []string           `json:"taint,omitempty"`    // what the conversation has from outside
	Matched    []simulate.Matched `json:"matched"`            // every rule that spoke, the strongest voice first
	Commands   []simulate.Simple  `json:"commands,omitempty"` // of a command line
	Notes      []string           `json:"notes,omitempty"`
}

func evaluatePermission(ctx context.Context, r *app.Call, f app.Fresh, in *EvaluatePermission) (*PermissionShown, error) {
	if err := cmp.Or(input.ID("threadId", string(in.Thread)), input.Text("tool", in.Tool, app.MaxTitle), input.Text("workspace", in.Workspace, 4<<10)); err != nil {
		return nil, err
	}
	switch {
	case in.Session != "" && in.Workspace != "":
		return nil, input.At("workspace", belay.Errorf(belay.CodeBadCommand, "the session says which folder").WithHint("leave one of the two out"))
	case in.Session == "" && in.Thread != "":
		return nil, input.At("threadId", belay.Errorf(belay.CodeBadCommand, "a thread is one of a session").WithHint("name the session too"))
	}
	ws, settings, err := r.PlaceOf(ctx, in.Session, in.Workspace)
	if err != nil {
		return nil, err
	}
	g, err := r.Workspaces.Ground(ctx, ws)
	if err != nil {
		return nil, err
	}
	q := Question{Tool: in.Tool, Args: string(in.Args.JSON()), Tools: g.Tools.Choose(settings.Tools), Mode: settings.Mode, Allow: settings.Allow, Boundary: settings.Boundary, Alone: settings.Approvals != belay.ApprovalsWait, Shell: settings.Shell}
	if in.Session != "" {
		if err := knows(ctx, r, in, &q); err != nil {
			return nil, err
		}
	}
	e, notes, err := Explain(ctx, r, g, q)
	if err != nil {
		return nil, err
	}
	return &PermissionShown{Fresh: f, Tool: e.Tool, Decision: e.Decision, Source: e.Source, Rule: e.Rule, Where: e.Where, Tier: e.Tier, Priority: e.Priority,
		ReasonCode: e.Code, Reason: e.Reason, Hint: e.Hint, Mode: e.Mode, Boundary: e.Boundary, Tags: e.Tags, Taint: e.Taint,
		Matched: slices.Concat([]simulate.Matched{}, e.Matched), Commands: e.Commands, Notes: notes}, nil
}

// knows adds what a session and its thread know: grants, taint, the use of the
// workspace.
func knows(ctx context.Context, r *app.Call, in *EvaluatePermission, q *Question) error {
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return err
	}
	q.Grants, q.Use = append(q.Grants, s.Grants...), s.Use
	if in.Thread == "" && len(s.Threads) == 0 {
		return nil
	}
	th, err := r.ThreadOf(ctx, s, in.Thread)
	if err != nil {
		return err
	}
	q.Grants, q.Taint = append(q.Grants, th.Grants...), th.Taint
	return nil
}
