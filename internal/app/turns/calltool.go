package turns

import (
	"cmp"
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/lib/jcs"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/tokens"
)

// CallTool is what call_tool takes. Without a session id a session is made.
type CallTool struct {
	Session   belay.SessionID    `json:"sessionId,omitempty" jsonschema:"the session; a new one is made when it is left out"`
	Thread    belay.ThreadID     `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Tool      string             `json:"tool"`
	Args      input.Object       `json:"args,omitempty" jsonschema:"the call's arguments, a JSON object"`
	Workspace string             `json:"workspace,omitempty" jsonschema:"folder of a new session; the server's own when it is left out"`
	Title     string             `json:"title,omitempty" jsonschema:"what lists call a new session; the tool when it is left out"`
	Settings  *app.SettingsInput `json:"settings,omitempty" jsonschema:"settings of a new session"`
}

// begin makes the session that the call begins.
func (in *CallTool) begin(ctx context.Context, r *app.Call) error {
	if err := cmp.Or(input.Text("title", in.Title, app.MaxTitle), input.Text("workspace", in.Workspace, 4<<10)); err != nil {
		return err
	}
	s := &submission{Call: r, in: &SubmitTurn{Workspace: in.Workspace, Settings: in.Settings, Title: cmp.Or(in.Title, in.Tool)}, state: &session.State{}}
	ws, settings, _, err := s.settings(ctx)
	if err != nil {
		return err
	}
	mint(r, s.in)
	in.Session = s.in.Session
	id := belay.DeriveID(belay.PrefixCommand, belay.StreamID("create/"+string(in.Session)), 0, 0)
	_, err = r.Engine.Submit(ctx, r.Order(belay.CommandID(id), in.Session, in.Session.Stream(),
		belay.CreateSession{Workspace: ws, Title: s.title(), Settings: settings, Thread: app.FirstThread(in.Session)}))
	return err
}

// callTool makes a turn of one call that the caller wrote: no model is asked. It is
// decided and recorded like any other, and the model reads of it with the next turn.
func callTool(ctx context.Context, r *app.Call, in *CallTool) (*app.Result, error) {
	if err := input.Named("tool", in.Tool); err != nil {
		return nil, err
	}
	switch {
	case in.Session == "":
		if err := in.begin(ctx, r); err != nil {
			return nil, err
		}
	case in.Workspace != "" || in.Title != "" || in.Settings != nil:
		return nil, input.At("sessionId", belay.Errorf(belay.CodeBadCommand, "workspace, title and settings are those of a new session").WithHint("update_thread and label_session change those of a session"))
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
		one, err := jcs.JSON(in.Args.JSON()) // people read it: without the escapes that a client may have sent
		if err != nil {
			return nil, input.At("args", err)
		}
		args = string(one)
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
