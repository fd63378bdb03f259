package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/access"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// TokenCmd is the command "belay token".
type TokenCmd struct {
	Create tokenCreateCmd `cmd:"" use:"create_token" help:"Make a token; it is printed once and kept nowhere."`
	List   tokenListCmd   `cmd:"" use:"list_tokens" default:"1" help:"List the tokens and what they allow."`
	Revoke tokenRevokeCmd `cmd:"" use:"revoke_token" help:"Revoke a token, from the next request on."`
}

type tokenCreateCmd struct {
	Role   string `default:"operator" placeholder:"ROLE" help:"What it may do: owner, operator (give work), approver (answer asks), viewer (default operator)."`
	Tenant string `default:"default" placeholder:"NAME" help:"The tenant that it gives access to; default."`
	Name   string `placeholder:"TEXT" help:"What you call it."`
	For    string `placeholder:"TIME" help:"How long it is good, such as 720h; for ever."`
}

// tokenMade is a new token, as JSON.
type tokenMade struct {
	Token string `json:"token"`
	tokenShown
}

// tokenShown is an access.TokenShown, as JSON.
type tokenShown struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Role    auth.Role `json:"role"`
	Tenant  string    `json:"tenant"`
	Created time.Time `json:"created"`
	Until   time.Time `json:"until,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Used    time.Time `json:"used,omitzero"`
}

// aboutTokens is a call about the tokens of the store directory, which is created if make
// is set.
func aboutTokens(a *command.Program, name string, make bool) (*app.Call, error) {
	all, err := a.ServerTokens(make)
	return (&app.Runtime{Tokens: all, Principal: a.Principal(), Now: a.Now}).Call(name), err
}

func (c *tokenCreateCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	var until time.Time
	if c.For != "" {
		d, err := time.ParseDuration(c.For)
		if err != nil || d <= 0 {
			return 0, belay.Errorf(belay.CodeUsage, "%q is not a length of time such as 720h", c.For).At("--for").WithHint("--for 720h")
		}
		until = a.Now().Add(d).Truncate(time.Second)
	}
	call, err := aboutTokens(a, "create_token", true)
	if err != nil {
		return 0, err
	}
	made, err := access.IssueToken(ctx, call, &access.CreateToken{Role: auth.Role(c.Role), Tenant: c.Tenant, Name: c.Name, Until: until})
	if err != nil {
		return 0, command.Flagged(err)
	}
	return a.Show(tokenMade{made.Text, tokenShown(made.TokenShown)}, func() {
		fmt.Fprintf(a.Out, "%s\n", made.Text)
		fmt.Fprintf(a.Err, "token %s of role %s in tenant %s; it is shown this once\n", made.ID, made.Role, made.Tenant)
	})
}

type tokenListCmd struct{}

func (c *tokenListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	call, err := aboutTokens(a, "list_tokens", false)
	if err != nil {
		return 0, err
	}
	all, err := access.Tokens(ctx, call, &access.ListTokens{})
	if err != nil {
		return 0, err
	}
	rows := make([]tokenShown, len(all.Tokens))
	for i, t := range all.Tokens {
		rows[i] = tokenShown(t)
	}
	return term.PrintRows(&a.Env, rows, "", "TOKEN\tROLE\tTENANT\tSTATE\tMADE\tUSED\tNAME", func(x tokenShown) []any {
		state := "good"
		switch {
		case !x.Revoked.IsZero():
			state = "revoked"
		case !x.Until.IsZero() && !a.Now().Before(x.Until):
			state = "expired"
		}
		used := "never"
		if !x.Used.IsZero() {
			used = term.Ago(a.Now().Sub(x.Used)) + " ago"
		}
		return []any{x.ID, x.Role, x.Tenant, state, term.Ago(a.Now().Sub(x.Created)) + " ago", used, term.Line(x.Name)}
	})
}

type tokenRevokeCmd struct {
	ID string `arg:"" help:"The token's id, or the beginning of it."`
}

func (c *tokenRevokeCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	call, err := aboutTokens(a, "revoke_token", false)
	if err != nil {
		return 0, err
	}
	gone, err := access.WithdrawToken(ctx, call, &access.RevokeToken{ID: c.ID})
	if err != nil {
		return 0, err
	}
	return a.Say(tokenShown(*gone), "revoked %s", gone.ID)
}
