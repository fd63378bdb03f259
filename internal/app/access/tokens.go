package access

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
)

// CreateToken is what create_token takes.
type CreateToken struct {
	Role   auth.Role `json:"role" jsonschema:"what it may do: owner, operator, approver, viewer"`
	Tenant string    `json:"tenant,omitempty" jsonschema:"whose sessions; default when it is left out"`
	Name   string    `json:"name,omitempty" jsonschema:"what you call it"`
	Until  time.Time `json:"until,omitzero" jsonschema:"until when it is good; for ever when it is left out"`
}

// TokenCreated is a new token.
type TokenCreated struct {
	Text     string `json:"token,omitempty"`    // shown this once; left out of a repetition
	Repeated bool   `json:"repeated,omitempty"` // it was made before, under this key
	TokenShown
}

// TokenShown is a token without its text.
type TokenShown struct {
	ID      string    `json:"tokenId"`
	Name    string    `json:"name,omitempty"`
	Role    auth.Role `json:"role"`
	Tenant  string    `json:"tenant"`
	Created time.Time `json:"created"`
	Until   time.Time `json:"until,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Used    time.Time `json:"used,omitzero"` // last, to the hour
}

// Shown is a token without its text.
func Shown(t auth.Token) TokenShown {
	return TokenShown{t.ID, t.Name, t.Role, t.Tenant, t.Created, t.Until, t.Revoked, t.Used}
}

// Subject is the token as records of commands name it.
func (t *TokenShown) Subject() string {
	return fmt.Sprintf("token %s of role %s in tenant %s", t.ID, t.Role, t.Tenant)
}

// IssueToken makes a token. Repeated under its key it answers without the text, which is
// kept nowhere.
func IssueToken(_ context.Context, c *app.Call, in *CreateToken) (*TokenCreated, error) {
	if err := input.Text("name", in.Name, auth.MaxName); err != nil {
		return nil, err
	}
	if !in.Until.IsZero() && !in.Until.After(c.Now()) {
		return nil, input.At("until", belay.Errorf(belay.CodeBadCommand, "%s has passed", in.Until.UTC().Format(time.RFC3339)).WithHint("name a time to come"))
	}
	want := auth.Token{ID: belay.NewID(auth.PrefixID), Name: in.Name, Role: in.Role, Tenant: in.Tenant, Until: in.Until}
	if c.Key != "" {
		want.ID = c.Keyed(auth.PrefixID)
	}
	if want.Tenant == "" {
		want.Tenant = auth.DefaultTenant
	}
	text, made, err := c.Tokens.CreateOnce(want)
	switch belay.CodeOf(err) {
	case belay.CodeUsage:
		err = input.At("role", err)
	case belay.CodeBadID:
		err = input.At("tenant", err)
	case belay.CodeIDConflict:
		err = input.At("header Idempotency-Key", err)
	}
	if err != nil {
		return nil, err
	}
	return &TokenCreated{Text: text, Repeated: text == "", TokenShown: Shown(made)}, nil
}

// ListTokens is what list_tokens takes.
type ListTokens struct{}

// TokensShown are tokens, the oldest first, revoked ones too.
type TokensShown struct {
	Tokens []TokenShown `json:"tokens"`
}

// Tokens lists the tokens of all tenants.
func Tokens(_ context.Context, c *app.Call, _ *ListTokens) (*TokensShown, error) {
	all, err := c.Tokens.List()
	if err != nil {
		return nil, err
	}
	out := &TokensShown{make([]TokenShown, len(all))}
	for i, t := range all {
		out.Tokens[i] = Shown(t)
	}
	return out, nil
}

// RevokeToken is what revoke_token takes.
type RevokeToken struct {
	ID string `json:"tokenId" jsonschema:"the token's id, or the beginning of it"`
}

// WithdrawToken makes a token worthless. One that is worthless already stays as it is.
func WithdrawToken(_ context.Context, c *app.Call, in *RevokeToken) (*TokenShown, error) {
	gone, err := c.Tokens.Revoke(in.ID)
	if belay.CodeOf(err) == belay.CodeNotFound {
		err = input.At("tokenId", c.Hinted(err, "list_tokens lists them"))
	}
	if err != nil {
		return nil, err
	}
	out := Shown(gone)
	return &out, nil
}
