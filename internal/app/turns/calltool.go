package turns

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/tokens"
)

// CallTool is what call_tool takes.
type CallTool struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Tool    string          `json:"tool"`
	Args    input.Object    `json:"args,omitempty" jsonschema:"the call's arguments, a JSON object"`
}

// callTool makes a turn of one call that the caller wrote: no model is asked. It is
// decided and recorded like any other, and the model reads of it with the next turn.
func callTool(ctx context.Context, r *app.Call, in *CallTool) (*app.Result, error) {
	if err := input.Named("tool", in.Tool); err != nil {
		return nil, err
	}
	th, err := steered(ctx, r, in.Session, in.Thread, "", "")
	if err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	direct := s.Settings
	direct.Provider, direct.Model, direct.BaseURL, direct.Fallback = scripted.DirectName, "", "", nil
	direct.Completion, direct.Instructions = belay.CompletionConversational, "none"
	rules, err := r.Workspaces.Rules(ctx, r.By.String(), s.Workspace, direct)
	if err != nil {
		return nil, err
	}
	args := "{}"
	if in.Args != nil {
		args = string(in.Args.JSON())
	}
	text, err := scripted.DirectCall{Tool: in.Tool, Args: args}.Text()
	if err != nil {
		return nil, err
	}
	content, err := app.Given{Text: text}.Keep(ctx, r.Store, r.Workspaces.Secrets(), tokens.Profile{}, direct)
	if err != nil {
		return nil, err
	}
	turn := belay.TurnID(belay.NewID(belay.PrefixTurn))
	if r.Key != "" {
		turn = belay.TurnID(r.Keyed(belay.PrefixTurn))
	}
	told, err := r.Send(ctx, in.Session, th.Thread.Stream(), belay.SubmitTurn{Turn: turn, Kind: belay.TurnSystem, Text: content, Rules: rules})
	return app.With(told, err, th.Thread, turn)
}
