package host

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/mcp"
	"github.com/belay-run/belay/internal/secret/vault"
	"github.com/belay-run/belay/internal/tool"
)

// logins are those that wait for a person, the oldest first.
type logins struct {
	mu   sync.Mutex
	wait []*waiting
}

// waiting is a login to a server that waits for a person.
type waiting struct {
	id string
	ws string
	*mcp.Login
	server string
}

// maxLogins is how many logins may wait; the oldest makes room.
const maxLogins = 16

// grants are what logins gained, in the person's secrets.
func (h *Host) grants() *mcp.Grants {
	return &mcp.Grants{
		Vault: func() (vault.Vault, error) { return h.c.Env.Vault("", h.c.Models.Secrets) },
		Hide:  func(name, value string) { h.c.Models.Secrets.Add(name, value) },
		Now:   h.c.Now,
	}
}

// find is a server of a workspace.
func (w *Workspaces) find(ctx context.Context, ws, name string) (*app.Place, *config.Server, error) {
	p, err := w.host.At(ctx, ws)
	if err != nil {
		return nil, nil, err
	}
	servers, _, err := p.Servers(ctx)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(servers, func(s config.Server) bool { return s.Name == name })
	if i < 0 {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "there is no MCP server %q", name).WithHint("belay mcp list shows those that count here")
	}
	return p, &servers[i], servers[i].Err
}

// LoginServer begins a login to a server.
func (w *Workspaces) LoginServer(ctx context.Context, in *app.LoginAsked) (*app.LoginBegun, error) {
	_, s, err := w.find(ctx, in.Workspace, in.Server)
	if err != nil {
		return nil, err
	}
	a := mcp.Asked{Redirect: in.Redirect, Scopes: in.Scopes, Client: in.Client}
	if in.Secret != "" {
		r, ok := manifest.ParseReference(in.Secret)
		if !ok || r.Kind == "file" {
			return nil, belay.Errorf(belay.CodeUsage, "the secret of a client is named, not given").At("clientSecret").WithHint("secret:NAME, after belay secret set NAME")
		}
		if a.Secret, err = w.host.Input(in.Workspace).Resolve(r); err != nil {
			return nil, err
		}
	}
	l, err := w.host.servers.Login(ctx, &s.Server, a)
	if failed, ok := errors.AsType[*tool.Error](err); ok {
		return nil, belay.Errorf(belay.CodeUnreachable, "%s", failed.Message).At(s.Where).WithHint("belay mcp test %s", s.Name)
	}
	if err != nil {
		return nil, err
	}
	one := &waiting{string(belay.NewID("login")), in.Workspace, l, in.Server}
	all := &w.host.logins
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.wait) >= maxLogins {
		all.wait[0].Cancel()
		all.wait = all.wait[1:]
	}
	all.wait = append(all.wait, one)
	return &app.LoginBegun{Login: one.id, Server: in.Server, Address: l.Address}, nil
}

// FinishLogin ends a login with the address that the browser was sent to, and looks at
// the server that it is for.
func (w *Workspaces) FinishLogin(ctx context.Context, id, address string) (*app.ServerTest, error) {
	one := w.host.logins.of(id)
	if one == nil {
		return nil, belay.Errorf(belay.CodeNotFound, "no login %q waits", id).WithHint("begin again: a login waits for %s", mcp.LoginTime)
	}
	err := one.Finish(ctx, address)
	if code := belay.CodeOf(err); code == belay.CodeUsage || code == belay.CodeLoginState {
		return nil, err // the right address may still come
	}
	w.host.logins.remove(id)
	if err != nil {
		return nil, err
	}
	return w.TestServer(ctx, one.ws, one.server, false)
}

// of is the login of an id; nil: it doesn't wait.
func (l *logins) of(id string) *waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.wait {
		if one.id == id {
			return one
		}
	}
	return nil
}

func (l *logins) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait = slices.DeleteFunc(l.wait, func(one *waiting) bool { return one.id == id })
}

// LogoutServer forgets the login to a server and reports whether there was one.
func (w *Workspaces) LogoutServer(ctx context.Context, ws, name string) (bool, error) {
	_, s, err := w.find(ctx, ws, name)
	if err != nil {
		return false, err
	}
	had, err := w.host.servers.Grants.Forget(ctx, &s.Server)
	if had && err == nil {
		w.host.tried.refuse(s.Where)
	}
	return had, err
}

// wantsLogin reports whether a server refused because it wants a login.
func wantsLogin(err error) bool {
	e, ok := errors.AsType[*tool.Error](err)
	return ok && e.Code == mcp.CodeNeedsLogin
}
