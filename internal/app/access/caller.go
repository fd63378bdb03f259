package access

import (
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// CallerShown is who asks.
type CallerShown struct {
	app.Fresh
	ID     string       `json:"tokenId,omitempty"` // empty: a person at a terminal
	Name   string       `json:"name,omitempty"`
	Role   auth.Role    `json:"role"`
	Tenant string       `json:"tenant"`
	Scopes []auth.Scope `json:"scopes"` // what the role may do, in x-scope's words
	Until  time.Time    `json:"until,omitzero"`
}

func caller(_ context.Context, c *app.Call, f app.Fresh, _ app.Query) (*CallerShown, error) {
	out := &CallerShown{Fresh: f, ID: c.By.TokenID, Name: c.By.Name, Role: c.By.Role, Tenant: c.By.Tenant, Scopes: []auth.Scope{}}
	for _, s := range auth.Scopes {
		if c.By.May(s) {
			out.Scopes = append(out.Scopes, s)
		}
	}
	if c.By.TokenID == "" {
		return out, nil
	}
	all, err := c.Tokens.List()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(t auth.Token) bool { return t.ID == c.By.TokenID }); i >= 0 {
		out.Name, out.Until = all[i].Name, all[i].Until
	}
	return out, nil
}

// EndToken is what sign_out takes.
type EndToken struct{}

// SignOut makes the caller's token worthless.
func SignOut(_ context.Context, c *app.Call, _ *EndToken) (*TokenShown, error) {
	if c.By.TokenID == "" {
		return nil, belay.Errorf(belay.CodeBadState, "no token asks this").WithHint("belay token revoke ID makes a token worthless")
	}
	gone, err := c.Tokens.Revoke(c.By.TokenID)
	if err != nil {
		return nil, err
	}
	out := Shown(gone)
	return &out, nil
}
