// Package auth identifies callers and what they may do: principals, their roles
// and tenants, and the scopes that commands and reads need. It promises that a
// role or a scope it doesn't know may do nothing.
package auth

import (
	"context"

	"github.com/belay-run/belay"
)

// Role is what a token may do.
type Role string

// The roles. An operator gives work and steers it, an approver answers what
// agents ask: one who has both duties needs the owner's token or two.
const (
	Owner    Role = "owner"    // everything, tokens and profiles too
	Operator Role = "operator" // read, submit, interrupt, resume
	Approver Role = "approver" // read, answer asks
	Viewer   Role = "viewer"   // read
)

// Roles lists the roles, the mightiest first.
var Roles = []Role{Owner, Operator, Approver, Viewer}

// Scope is what a command or a read needs.
type Scope string

const (
	Read   Scope = "read"   // look at sessions, facts and settings
	Work   Scope = "work"   // give work, steer it, change it
	Answer Scope = "answer" // decide what an agent may do
	Reply  Scope = "reply"  // answer questions: which of them, the command decides
	Own    Scope = "own"    // delete sessions and bring in others, trust files
	Admin  Scope = "admin"  // what is about the process, and so about all tenants
)

// Scopes lists the scopes.
var Scopes = []Scope{Read, Work, Answer, Reply, Own, Admin}

// May reports whether a role has a scope.
func (r Role) May(s Scope) bool {
	switch s {
	case Read:
		return r == Owner || r == Operator || r == Approver || r == Viewer
	case Work:
		return r == Owner || r == Operator
	case Answer:
		return r == Owner || r == Approver
	case Reply:
		return r.May(Answer) || r.May(Work)
	case Own, Admin:
		return r == Owner
	}
	return false
}

// Principal is the caller that a token identifies.
type Principal struct {
	Tenant  string // whose store: nothing of another one can be seen
	Role    Role
	TokenID string // which token; never the token
	Name    string // as facts name a caller without a token, such as user:ann
}

// Person is the owner of a store at a terminal.
func Person(name string) Principal {
	return Principal{Tenant: DefaultTenant, Role: Owner, Name: name}
}

// Agent is an agent that acts by a call of its model.
func Agent(thread belay.ThreadID) Principal {
	return Principal{Tenant: DefaultTenant, Role: Operator, Name: "agent:" + string(thread)}
}

// String is the principal as facts name it.
func (p Principal) String() string {
	if p.Name != "" {
		return p.Name
	}
	return "token:" + p.TokenID
}

// May reports whether a principal has a scope. A process holds the memory of all
// tenants, so only a principal of the default tenant has Admin.
func (p Principal) May(s Scope) bool {
	return p.Role.May(s) && (s != Admin || p.Tenant == DefaultTenant)
}

type key struct{}

// With gives a context its principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// From returns the context's principal; false when the request was not
// authenticated.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(key{}).(Principal)
	return p, ok
}

// Check reports whether the context's principal has a scope: unauthorized when
// there is no principal, forbidden when it hasn't.
func Check(ctx context.Context, s Scope) error {
	p, ok := From(ctx)
	if !ok {
		return belay.Errorf(belay.CodeUnauthorized, "the request has no token").WithHint("send the header Authorization: Bearer TOKEN; belay token create makes one")
	}
	switch {
	case p.May(s):
		return nil
	case !p.Role.May(s):
		return belay.Errorf(belay.CodeForbidden, "a token of role %s may not do this: it needs the scope %s", p.Role, s).
			WithHint("use a token of another role; belay token create --role ROLE makes one")
	}
	return belay.Errorf(belay.CodeForbidden, "a token of tenant %s may not do this: the process holds what other tenants have", p.Tenant).
		WithHint("use an owner's token of the tenant %s, which belay token create --role owner makes", DefaultTenant)
}
