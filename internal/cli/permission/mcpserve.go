package permission

import (
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/mcpserve"
)

type mcpServeCmd struct {
	Approver bool `help:"Offer the tool approval_answer too. BELAY_TOKEN has to be a token of this store that may answer: of role approver or owner."`
}

// Help describes the command, with what its flags don't say.
func (*mcpServeCmd) Help() string {
	return "It speaks the Model Context Protocol on its standard streams, for an editor or another agent that starts it; docs/mcp.md has their configuration. Sessions work in the workspace. " +
		"What an agent asks is shown by the client, if it can, else it waits. A server that runs (belay serve) offers the same at /mcp."
}

// Run implements command.Command.
func (c *mcpServeCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if a.In == nil {
		return 0, belay.Errorf(belay.CodeUsage, "there is no standard input to read messages from").WithHint("an MCP client starts it: docs/mcp.md")
	}
	if c.Approver {
		if err := approves(a); err != nil {
			return 0, err
		}
	}
	ws, _, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	templates, err := a.Environment().Templates(ws)
	if err != nil {
		return 0, err
	}
	r, err := a.LocalChat(ctx, ws)
	if err != nil {
		return 0, err
	}
	ctx, stop := a.UntilSignal(ctx)
	defer stop()
	err = mcpserve.Stdio(ctx, mcpserve.New(mcpserve.Config{Runtime: r, May: auth.Person(a.Principal()).May, Approver: c.Approver, Version: command.BuildVersions().Version, Templates: templates}), a.In, a.Out)
	return belay.ExitOK, errors.Join(err, r.Close())
}

// approves reports whether the environment has a token that may answer.
func approves(a *command.Program) error {
	tokens, err := a.ServerTokens(false)
	if err != nil {
		return err
	}
	p, err := tokens.Principal(a.Getenv("BELAY_TOKEN"))
	if err != nil || !p.May(auth.Answer) || p.Tenant != auth.DefaultTenant {
		return belay.Errorf(belay.CodeForbidden, "a client that answers what agents ask needs a token that may").At("--approver").
			WithHint("belay token create --role approver%s; the token goes into the variable BELAY_TOKEN", a.StoreFlag)
	}
	return nil
}
