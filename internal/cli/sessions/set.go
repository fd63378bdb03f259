package sessions

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/command"
)

// SetCmd is the command "belay sessions set".
type SetCmd struct {
	ID       string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Mode     string `placeholder:"MODE" help:"How far it may go without asking: default, plan, accept_edits, auto, on_request, on_failure, untrusted, never."`
	Provider string `placeholder:"NAME" help:"Who serves the model."`
	Model    string `placeholder:"NAME" help:"The model."`
	Effort   string `placeholder:"HOW" help:"How much the model reasons: low, medium, high."`
}

// Order implements command.Orderer.
func (c *SetCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	settings := app.SettingsInput{Mode: c.Mode, Provider: c.Provider, Model: c.Model, Effort: c.Effort}
	if (c.Mode + c.Provider + c.Model + c.Effort) == "" {
		return 0, belay.Errorf(belay.CodeUsage, "nothing is to be changed").WithHint("belay sessions set --mode plan")
	}
	id, err := a.SessionID(ctx, r.Store, c.ID)
	if err != nil {
		return 0, err
	}
	res, err := turns.Update(ctx, r.Call("update_thread"), &turns.UpdateThread{Session: id, Settings: settings})
	if err != nil {
		return 0, command.Flagged(err)
	}
	return a.Tell(ctx, r, res, "changed; it counts from the next call that is judged and the next request")
}
