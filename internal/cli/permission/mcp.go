package permission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/servers"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/match"
)

// MCPCmd is the command "belay mcp".
type MCPCmd struct {
	List   mcpListCmd   `cmd:"" use:"listMcpServers" default:"withargs" help:"List the MCP servers that count here."`
	Show   mcpShowCmd   `cmd:"" use:"listMcpServers" help:"Show a server and the tools that it offers."`
	Test   mcpTestCmd   `cmd:"" use:"test_mcp_server" help:"Start a server, say what it has and what its boundary stopped, and end it."`
	Trust  mcpTrustCmd  `cmd:"" use:"trust_mcp_server" help:"Accept a server's tools as it defines them now."`
	Add    mcpAddCmd    `cmd:"" help:"Write a server into your configuration file."`
	Remove mcpRemoveCmd `cmd:"" help:"Remove a server from your configuration file."`
	Login  mcpLoginCmd  `cmd:"" use:"login_mcp_server,finish_mcp_login" help:"Log in to a server over HTTP, in a browser."`
	Logout mcpLogoutCmd `cmd:"" use:"logout_mcp_server" help:"Forget the login to a server."`
	Serve  mcpServeCmd  `cmd:"" use:"submit_turn,interrupt_turn,respond_action,read_sessions,read_sessions_id_story,read_search,why,listActions,exportSession" help:"Be an MCP server: give an editor, or another agent, what Belay can do."`
}

type mcpListCmd struct{}

// Run implements command.Command.
func (c *mcpListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := serversHere(ctx, a)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 && !a.JSON {
		fmt.Fprintln(a.Err, "no MCP server counts here; mcp-servers in belay.yaml names some (docs/mcp.md)")
		return belay.ExitOK, nil
	}
	return term.PrintRows(&a.Env, all, "", "NAME\tTYPE\tSTATUS\tTOOLS\tWHAT", func(s app.Server) []any {
		return []any{term.Line(s.Name), s.Type, s.Status, len(s.Tools), term.Line(term.Short(s.Text, 100))}
	})
}

// serversHere are the servers of this workspace.
func serversHere(ctx context.Context, a *command.Program) ([]app.Server, error) {
	ws, _, err := a.EnterChecked(ctx)
	if err != nil {
		return nil, err
	}
	st, err := a.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	return a.Reader(st).Workspaces.Servers(ctx, ws)
}

type mcpShowCmd struct {
	Name string `arg:"" help:"The server."`
}

// Run implements command.Command.
func (c *mcpShowCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := serversHere(ctx, a)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(all, func(s app.Server) bool { return s.Name == c.Name })
	if i < 0 {
		var names []string
		for _, s := range all {
			names = append(names, s.Name)
		}
		return 0, belay.Errorf(belay.CodeNotFound, "there is no MCP server %q here", c.Name).WithHint("%s", match.Hint(c.Name, names, "belay mcp list shows those that count here"))
	}
	s := all[i]
	return a.Show(s, func() {
		fmt.Fprintf(a.Out, "server   %s\nwhat     %s\nwhere    %s\nstatus   %s\n", term.Line(s.Name), term.Line(s.Text), term.Line(s.Where), s.Status)
		if s.Problem != "" {
			fmt.Fprintf(a.Out, "problem  %s\n", term.Line(s.Problem))
		}
		for _, name := range s.Changed {
			fmt.Fprintf(a.Out, "changed  %s: it is not offered; belay mcp trust %s accepts it\n", term.Line(name), term.Line(s.Name))
		}
		printTools(a, s.Tools, s.Prompts)
	})
}

func printTools(a *command.Program, tools []app.ServerTool, prompts []app.ServerPrompt) {
	for _, p := range prompts {
		variables := ""
		if len(p.Variables) > 0 {
			variables = " (" + strings.Join(p.Variables, ", ") + ")"
		}
		fmt.Fprintf(a.Out, "prompt   %s%s: %s\n", term.Line(p.Name), term.Line(variables), term.Line(term.Short(p.Description, 120)))
	}
	for _, t := range tools {
		_, text, _ := strings.Cut(t.Doc, "\n")
		reads := ""
		if t.ReadOnly {
			reads = ", reads"
		}
		fmt.Fprintf(a.Out, "tool     %s (%s%s): %s\n", t.Name, t.Effect, reads, term.Line(term.Short(text, 120)))
	}
}

type mcpTestCmd struct {
	Name string `arg:"" help:"The server."`
}

// Run implements command.Command.
func (c *mcpTestCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return tryServer(ctx, a, c.Name, "test_mcp_server", servers.Test)
}

type mcpTrustCmd struct {
	Name string `arg:"" help:"The server."`
}

// Run implements command.Command.
func (c *mcpTrustCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return tryServer(ctx, a, c.Name, "trust_mcp_server", servers.Trust)
}

func tryServer(ctx context.Context, a *command.Program, name, row string, try func(context.Context, *app.Call, *servers.Named) (*app.ServerTest, error)) (int, error) {
	ws, _, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	st, err := a.Open(ctx, true)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	t, err := try(ctx, a.Reader(st).Call(row), &servers.Named{Workspace: ws, Name: name})
	if err != nil {
		return 0, err
	}
	code, err := a.Show(t, func() { printTest(a, t, row == "trust_mcp_server") })
	if err == nil && t.Problem != "" {
		code = belay.ExitFailed
	}
	return code, err
}

func printTest(a *command.Program, t *app.ServerTest, accepted bool) {
	fmt.Fprintf(a.Out, "runs     %s\n", term.Line(t.Text))
	if t.Boundary != "" {
		fmt.Fprintf(a.Out, "boundary %s, network %s, level %s\n", term.Line(t.Boundary), t.Network, t.Level)
	}
	if t.Problem != "" {
		fmt.Fprintf(a.Out, "failed   %s\n", term.Line(t.Problem))
	} else {
		fmt.Fprintf(a.Out, "answers  %s %s, protocol %s, offers %s\n", term.Line(t.Calls), term.Line(t.Version), t.Protocol, strings.Join(t.Offers, ", "))
	}
	if t.Stopped != "" {
		fmt.Fprintf(a.Out, "stopped  %s\n", term.Line(t.Stopped))
	}
	if t.Hint != "" {
		fmt.Fprintf(a.Out, "try      %s\n", term.Line(t.Hint))
	}
	printTools(a, t.Tools, t.Prompts)
	for _, r := range t.Refused {
		fmt.Fprintf(a.Out, "refused  %s\n", term.Line(r))
	}
	if accepted && t.Problem == "" {
		fmt.Fprintf(a.Out, "accepted %s\n", term.Plural(len(t.Tools), "tool"))
	}
	if t.Printed != "" {
		fmt.Fprintln(a.Out, "printed:")
		for l := range strings.Lines(t.Printed) {
			fmt.Fprintf(a.Out, "  %s\n", term.Line(strings.TrimRight(l, "\r\n")))
		}
	}
}
