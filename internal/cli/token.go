package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/readfile"
)

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token; it is printed once and kept nowhere."`
	List   tokenListCmd   `cmd:"" default:"1" help:"List the tokens and what they allow."`
	Revoke tokenRevokeCmd `cmd:"" help:"Make a token worthless, from the next request on."`
}

type tokenCreateCmd struct {
	Role   string `default:"operator" placeholder:"ROLE" help:"What it may do: owner, operator (give work), approver (answer asks), viewer (default operator)."`
	Tenant string `default:"default" placeholder:"NAME" help:"Whose sessions; default."`
	Name   string `placeholder:"TEXT" help:"What you call it."`
	For    string `placeholder:"TIME" help:"How long it is good, such as 720h; for ever."`
}

// tokenMade is a new token, as JSON.
type tokenMade struct {
	Token string `json:"token"`
	tokenShown
}

// tokenShown is a token without its hash, as JSON.
type tokenShown struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Role    auth.Role `json:"role"`
	Tenant  string    `json:"tenant"`
	Created time.Time `json:"created"`
	Until   time.Time `json:"until,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

func shownToken(t auth.Token) tokenShown {
	return tokenShown{t.ID, t.Name, t.Role, t.Tenant, t.Created, t.Until, t.Revoked}
}

// tokens are the tokens of the store directory, which is created if make is set.
func (a *app) serverTokens(make bool) (*auth.Tokens, error) {
	dir, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	if make {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, belay.Errorf(belay.CodeStoreReadOnly, "the store's folder can't be made: %s", readfile.Reason(err)).At(dir).WithHint("--store DIR")
		}
	}
	return auth.OpenTokens(dir, a.Now), nil
}

func (c *tokenCreateCmd) run(_ context.Context, a *app) (int, error) {
	var until time.Time
	if c.For != "" {
		d, err := time.ParseDuration(c.For)
		if err != nil || d <= 0 {
			return 0, belay.Errorf(belay.CodeUsage, "%q is not a length of time such as 720h", c.For).At("--for").WithHint("--for 720h")
		}
		until = a.Now().Add(d).Truncate(time.Second)
	}
	tokens, err := a.serverTokens(true)
	if err != nil {
		return 0, err
	}
	text, made, err := tokens.Create(c.Name, auth.Role(c.Role), c.Tenant, until)
	if err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(tokenMade{text, shownToken(made)})
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Out, "%s\n", text)
	fmt.Fprintf(a.Err, "token %s of role %s in tenant %s; it is shown this once\n", made.ID, made.Role, made.Tenant)
	return belay.ExitOK, nil
}

type tokenListCmd struct{}

func (c *tokenListCmd) run(_ context.Context, a *app) (int, error) {
	tokens, err := a.serverTokens(false)
	if err != nil {
		return 0, err
	}
	all, err := tokens.List()
	if err != nil {
		return 0, err
	}
	rows := make([]tokenShown, len(all))
	for i, t := range all {
		rows[i] = shownToken(t)
	}
	return term.PrintRows(&a.Env, rows, "", "TOKEN\tROLE\tTENANT\tSTATE\tMADE\tNAME", func(x tokenShown) []any {
		state := "good"
		switch {
		case !x.Revoked.IsZero():
			state = "revoked"
		case !x.Until.IsZero() && !a.Now().Before(x.Until):
			state = "expired"
		}
		return []any{x.ID, x.Role, x.Tenant, state, term.Ago(a.Now().Sub(x.Created)) + " ago", term.Line(x.Name)}
	})
}

type tokenRevokeCmd struct {
	ID string `arg:"" help:"The token's id, or the beginning of it."`
}

func (c *tokenRevokeCmd) run(_ context.Context, a *app) (int, error) {
	tokens, err := a.serverTokens(false)
	if err != nil {
		return 0, err
	}
	gone, err := tokens.Revoke(c.ID)
	if err != nil {
		return 0, err
	}
	return a.Say(shownToken(gone), "revoked %s", gone.ID)
}
