package machine

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/secret/vault"
)

// SecretCmd is the command "belay secret".
type SecretCmd struct {
	Set  secretSetCmd  `cmd:"" help:"Keep a secret, read from the terminal without showing it, or from standard input."`
	List secretListCmd `cmd:"" default:"withargs" help:"List the secrets that are kept, without their values."`
	Rm   secretRmCmd   `cmd:"" help:"Forget a secret."`
}

// Identity names the file that opens the secrets.
type Identity struct {
	Identity string `placeholder:"FILE" help:"The age identity that opens the secrets; secrets.key beside them. [$$BELAY_IDENTITY; $$BELAY_SECRET_KEY holds one itself]"`
}

type secretSetCmd struct {
	Identity
	Name string `arg:"" help:"What it is called, such as OPENAI_API_KEY."`
}

func (c *secretSetCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	v, err := a.Environment().Vault(c.Identity.Identity, a.Secrets())
	if err != nil {
		return 0, err
	}
	if err := vault.CheckName(c.Name); err != nil {
		return 0, err
	}
	if _, err := v.List(); err != nil { // before a key is typed in vain
		return 0, err
	}
	value, err := a.ReadSecret(ctx, c.Name, vault.MaxValue)
	if errors.Is(err, term.ErrInterrupted) {
		return belay.ExitCancelled, nil
	}
	if err != nil {
		return 0, err
	}
	if err := v.Set(ctx, c.Name, value, a.Now()); err != nil {
		return 0, err
	}
	name := term.Line(c.Name)
	return a.SayBeside(vault.Entry{Name: c.Name, At: a.Now().UTC()}, "%s is kept; in belay.yaml it is secret:%s", name, name)
}

type secretListCmd struct{ Identity }

func (c *secretListCmd) Run(_ context.Context, a *command.Program) (int, error) {
	v, err := a.Environment().Vault(c.Identity.Identity, a.Secrets())
	if err != nil {
		return 0, err
	}
	list, err := v.List()
	if err != nil {
		return 0, err
	}
	if len(list) == 0 && !a.JSON {
		fmt.Fprintln(a.Err, "no secret is kept; belay secret set NAME keeps one")
	}
	return term.PrintRows(&a.Env, list, "", "", func(e vault.Entry) []any {
		return []any{term.Line(e.Name), "set " + e.At.Local().Format("2 Jan 2006 15:04")}
	})
}

type secretRmCmd struct {
	Identity
	Name string `arg:"" help:"The secret."`
}

func (c *secretRmCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	v, err := a.Environment().Vault(c.Identity.Identity, a.Secrets())
	if err != nil {
		return 0, err
	}
	if err := v.Remove(ctx, c.Name); err != nil {
		return 0, err
	}
	return a.SayBeside(struct {
		Name    string `json:"name"`
		Removed bool   `json:"removed"`
	}{c.Name, true}, "%s is forgotten", term.Line(c.Name))
}
