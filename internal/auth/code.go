package auth

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
)

// How long a code can be traded, and how long the token is good that it is traded for.
const (
	codeWithin = 5 * time.Minute
	codeLasts  = 30 * 24 * time.Hour
	ownerLasts = 12 * time.Hour
)

func (x Token) isCode() bool { return x.Lasts != 0 }

// CreateCode makes a code of 128 bits that a client trades for a token of the default
// tenant: once, and within five minutes. It can't do anything else.
func (t *Tokens) CreateCode(name string, role Role) (string, Token, error) {
	if !slices.Contains(Roles, role) {
		return "", Token{}, belay.Errorf(belay.CodeUsage, "%q is none of %s", role, rolesText()).WithHint("use one of them; an operator gives work")
	}
	text, hash := random("", 16)
	now := t.now().UTC().Truncate(time.Second)
	made := Token{ID: belay.NewID(PrefixID), Name: name, Role: role, Tenant: DefaultTenant, Hash: hash, Created: now, Until: now.Add(codeWithin), Lasts: codeLasts}
	if role == Owner {
		made.Lasts = ownerLasts
	}
	err := t.change(func(all []Token) ([]Token, error) {
		return append(slices.DeleteFunc(all, func(x Token) bool { return x.isCode() && !now.Before(x.Until) }), made), nil
	})
	if err != nil {
		return "", Token{}, err
	}
	return text, made, nil
}

// Trade returns the token that a code is good for. The code is gone with it.
func (t *Tokens) Trade(code string) (string, Token, error) {
	hash := hashOf(code)
	text, tokenHash := random(prefix, 32)
	var made Token
	err := t.change(func(all []Token) ([]Token, error) {
		now := t.now().UTC().Truncate(time.Second)
		i := slices.IndexFunc(all, func(x Token) bool { return x.isCode() && x.Hash == hash && now.Before(x.Until) })
		if i < 0 {
			return nil, belay.Errorf(belay.CodeUnauthorized, "the code is not known here: each counts once, and for five minutes").WithHint("belay console makes another")
		}
		made = all[i]
		made.Hash, made.Created, made.Until, made.Lasts = tokenHash, now, now.Add(made.Lasts), 0
		all[i] = made
		return all, nil
	})
	if err != nil {
		return "", Token{}, err
	}
	return text, made, nil
}

// Untraded reports whether a code can still be traded.
func (t *Tokens) Untraded(id string) (bool, error) {
	all, err := t.read()
	return slices.ContainsFunc(all, func(x Token) bool { return x.ID == id && x.isCode() && t.now().Before(x.Until) }), err
}
