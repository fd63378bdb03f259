// Package servers has the use cases about MCP servers: those of a workspace with the
// tools that they offer, a trial of one, and the acceptance of what one says of its
// tools.
package servers

import (
	"context"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature. They start programs with the rights of the
// process, so only its owner may.
func Commands() []app.Command {
	return []app.Command{
		app.Define("test_mcp_server", auth.Own, true, "Start an MCP server, read what it has, and end it: what it offers, what it printed, what its boundary stopped.", local(ofNamed, Test)),
		app.Define("trust_mcp_server", auth.Own, true, "Accept the tools of an MCP server as it defines them now: they count from the next turn on.", local(ofNamed, Trust)),
		app.Define("login_mcp_server", auth.Own, true, "Begin a login to an MCP server: a person goes on with it in a browser, at the address of the answer, within ten minutes.", local(ofLogin, Login)),
		app.Define("finish_mcp_login", auth.Own, true, "End a login to an MCP server with the address that the browser was sent back to. The token is kept with the secrets.", Finish),
		app.Define("logout_mcp_server", auth.Own, true, "Forget the login to an MCP server.", local(ofNamed, Logout)),
	}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineRead(app.Read{Name: "listMcpServers", Path: "/v1/mcp/servers", Tag: "reads", Doc: "List the MCP servers of a workspace, with the tools that they offer.",
			Query: []read.Param{{Name: "workspace", Doc: "The folder; the server's own when it is left out."}}}, list),
	}
}

// Listed are the MCP servers of a workspace.
type Listed struct {
	app.Fresh
	Servers []app.Server `json:"servers"` // by name
}

func list(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*Listed, error) {
	ws, err := c.Workspaces.Workspace(ctx, q.Values.Get("workspace"))
	if err != nil {
		return nil, input.At("query workspace", err)
	}
	all, err := c.Workspaces.Servers(ctx, ws)
	return &Listed{f, all}, err
}

// Named is what test_mcp_server and trust_mcp_server take.
type Named struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the folder whose server it is; the server's own when it is left out"`
	Name      string `json:"server" jsonschema:"the MCP server"`
}

// Subject is what records of the commands are about.
func (n *Named) Subject() string { return "MCP server " + n.Name }

func ofNamed(n *Named) *string { return &n.Workspace }

func ofLogin(l *app.LoginAsked) *string { return &l.Workspace }

// local performs a command in the workspace that a request names.
func local[I, O any](named func(*I) *string, f func(context.Context, *app.Call, *I) (*O, error)) func(context.Context, *app.Call, *I) (*O, error) {
	return func(ctx context.Context, c *app.Call, in *I) (*O, error) {
		here := *in
		ws, err := c.Workspaces.Workspace(ctx, *named(in))
		if err != nil {
			return nil, input.At("workspace", err)
		}
		*named(&here) = ws
		return f(ctx, c, &here)
	}
}

// Test tries a server. What is wrong with it is in the answer.
func Test(ctx context.Context, c *app.Call, in *Named) (*app.ServerTest, error) {
	return c.Workspaces.TestServer(ctx, in.Workspace, in.Name, false)
}

// Trust accepts what a server says of its tools now.
func Trust(ctx context.Context, c *app.Call, in *Named) (*app.ServerTest, error) {
	return c.Workspaces.TestServer(ctx, in.Workspace, in.Name, true)
}

// Login begins a login.
func Login(ctx context.Context, c *app.Call, in *app.LoginAsked) (*app.LoginBegun, error) {
	return c.Workspaces.LoginServer(ctx, in)
}

// Finished is what finish_mcp_login takes.
type Finished struct {
	Login   string `json:"login" jsonschema:"the login that was begun"`
	Address string `json:"address" jsonschema:"the address that the browser was sent back to, as it stands there"`
}

// Finish ends a login and tries the server.
func Finish(ctx context.Context, c *app.Call, in *Finished) (*app.ServerTest, error) {
	return c.Workspaces.FinishLogin(ctx, in.Login, in.Address)
}

// LoggedOut is what became of a login.
type LoggedOut struct {
	Server  string `json:"server"`
	Removed bool   `json:"removed"` // false: there was none
}

// Subject is what records of the command are about.
func (l *LoggedOut) Subject() string { return "MCP server " + l.Server }

// Logout forgets a login.
func Logout(ctx context.Context, c *app.Call, in *Named) (*LoggedOut, error) {
	had, err := c.Workspaces.LogoutServer(ctx, in.Workspace, in.Name)
	return &LoggedOut{in.Name, had}, err
}
